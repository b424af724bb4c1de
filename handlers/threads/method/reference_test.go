package method

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page and the lines around what is made of the rows.
const (
	page      = "../../../docs/threads.md"
	pageBegin = "<!-- methods: made of handlers/threads/method by make generate -->\n"
	pageEnd   = "<!-- end of methods -->\n"
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
		text += [...]string{Text: "text", Object: "object", Bool: "boolean", Time: "time", True: "true", Texts: "texts", Messages: "messages"}[f.Type]
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

// TestReference: the page has the methods as they are. With -update it is written.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| method | does | input | result |\n|---|---|---|---|\n")
	for i := range Rows {
		r := &Rows[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, r.Help, list(r.In), list(r.Out))
	}
	fmt.Fprintf(&b, "\nA message has %s.\n\n", list(messageFields))
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), pageBegin)
	was, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		t.Fatalf("%s does not have the lines %q and %q", page, pageBegin, pageEnd)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+pageBegin+b.String()+pageEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != b.String() {
		t.Errorf("%s is not current: make generate writes it", page)
	}
}
