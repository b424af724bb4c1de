package method

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page and the lines around what is made of the rows.
const (
	page        = "../../../docs/threads-methods.md"
	pageBegin   = "<!-- methods: made of handlers/threads/method by make generate -->\n"
	pageEnd     = "<!-- end of methods -->\n"
	errorsBegin = "<!-- errors: made of handlers/threads/method by make generate -->\n"
	errorsEnd   = "<!-- end of errors -->\n"
)

// notation is how a field is described.
func notation(f *Field) string {
	text := "`" + f.Name
	if !f.Required {
		text += "?"
	}
	text += "` "
	switch f.Type {
	case ID:
		text += fmt.Sprintf("id ≤ %d", maxID)
	case Key:
		text += fmt.Sprintf("key ≤ %d", maxKey)
	case Line:
		most := int64(maxLine)
		if f.Max > 0 {
			most = f.Max
		}
		text += fmt.Sprintf("line ≤ %d", most)
	case Integer:
		if f.Min == f.Max {
			text += fmt.Sprint(f.Min)
		} else {
			text += fmt.Sprintf("%d..%d", f.Min, f.Max)
		}
	case Enum:
		text += strings.Join(f.Values, " · ")
	case IDs:
		text += fmt.Sprintf("1..%d ids", maxParticipants)
	default:
		text += [...]string{Text: "text", Object: "object", Bool: "boolean", Moment: "RFC 3339 or milliseconds since 1970", Time: "time", True: "true", Texts: "texts",
			Messages: "messages", Objects: "objects", Threads: "threads"}[f.Type]
		if f.Fields != nil {
			text += " of " + list(f.Fields)
		}
	}
	if f.Default != "" {
		text += " = " + strings.Trim(f.Default, `"`)
	}
	return text
}

func list(fields []Field) string {
	var all []string
	for i := range fields {
		all = append(all, notation(&fields[i]))
	}
	return strings.Join(all, ", ")
}

// TestReference: the page has the methods as they are.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| method | does | input | result |\n|---|---|---|---|\n")
	for i := range Rows {
		r := &Rows[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, r.Help, list(r.In), list(r.Out))
	}
	fmt.Fprintf(&b, "\nA message has %s.\n\n", list(messageFields))
	generated(t, pageBegin, pageEnd, b.String())
}

// meanings is why a request is refused, for the page.
var meanings = [numConditions]string{
	Unauthorized:     "no token, or one that is not valid: wrong signature, issuer, audience or claims, expired, revoked",
	UnknownKey:       "the token names a key that may be in the next key set",
	KeysUnavailable:  "tokens cannot be verified now: the key set cannot be read",
	Forbidden:        "the role may not call the method, or the agent is no participant of the thread",
	OtherWorkspace:   "the workspace of the request or of the thread is not that of the token",
	ClaimMismatch:    "a hint is not as in the token",
	NoAuthority:      "an override or the closing of a thread needs another role or reason",
	NotFound:         "no such thread, method or path",
	NoSuchMessage:    "`in_reply_to` names no message of the thread",
	Invalid:          "no JSON, fields that are not as they have to be (`details.issues` lists them), an ack beyond the last message, a target that is no participant",
	WrongHTTPMethod:  "another HTTP method is right",
	TooLarge:         "the body is too large",
	WrongMediaType:   "the body is no `application/json`, or compressed",
	BadTransition:    "the thread cannot go from its status to that one",
	Conflict:         "the thread is closed, its numbers are exhausted, an ack goes back, or another agent has the session",
	KeyReused:        "the `idempotency_key` was used for another payload",
	RateLimited:      "a quota is used up: `details.retry_after_ms`",
	UnmanagedRuntime: "the target is not managed, and no command is set that wakes it",
	HumanBusy:        "a person is at the terminal, and the job is not to wait",
	WakeFailed:       "the target has no live runtime, and no command is set that wakes it",
	Unavailable:      "the store is not available, the disk is full, or the server is shutting down",
	Defect:           "a defect of the server",
	BodyTimeout:      "the body did not come in time",
}

// TestReferenceOfErrors: the page has the codes and the HTTP status of every refusal.
func TestReferenceOfErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| refused | `spec_code` | `legacy_code` | HTTP | `retryable` |\n|---|---|---|---|---|\n")
	for c := Unauthorized; c < numConditions; c++ {
		k := c.Codes()
		status, again := fmt.Sprint(k.Status), ""
		if k.LegacyStatus != k.Status {
			status += fmt.Sprintf(", at `/v1/mcp/` %d", k.LegacyStatus)
		}
		if k.Retryable {
			again = "yes"
		}
		if meanings[c] == "" {
			t.Errorf("condition %d has no meaning", c)
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s |\n", meanings[c], k.Spec, k.Legacy, status, again)
	}
	b.WriteString("\n")
	generated(t, errorsBegin, errorsEnd, b.String())
}

// generated holds a part of the page to what is made for it. With -update it is written.
func generated(t *testing.T, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s does not have the lines %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != want {
		t.Errorf("%s is not current: make generate writes it", page)
	}
}
