package method

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/token"
)

// maxMessage bounds the message of an error, in bytes.
const maxMessage = 300

// AppendEnvelope appends the error envelope of threads §3.4.
func AppendEnvelope(dst []byte, f *Fault, d Dialect, requestID []byte, now time.Time) []byte {
	dst = AppendError(append(dst, `{"error":`...), f, d, requestID)
	dst = append(jsonx.AppendString(append(dst, `,"request_id":`...), requestID), `,"occurred_at":"`...)
	return append(AppendTime(dst, now), `"}`...)
}

// AppendError appends the error object of the envelope, which is all that lines have.
func AppendError(dst []byte, f *Fault, d Dialect, requestID []byte) []byte {
	codes := f.Condition.Codes()
	code := codes.Spec
	if d == Legacy {
		code = codes.Legacy
	}
	dst = append(append(append(dst, `{"code":"`...), code...), `","message":`...)
	dst = append(jsonx.AppendString(dst, oneLine(f.Message)), `,"request_id":`...)
	dst = append(jsonx.AppendString(dst, requestID), `,"retryable":`...)
	if codes.Retryable {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	dst = append(append(dst, `,"spec_code":"`...), codes.Spec...)
	dst = append(append(append(dst, `","legacy_code":"`...), codes.Legacy...), '"')
	if f.Details != nil {
		dst = append(append(dst, `,"details":`...), f.Details...)
	}
	return append(dst, '}')
}

// oneLine cuts a message to its bounds.
func oneLine(text string) string {
	for i, r := range text {
		if r < ' ' || i+utf8.RuneLen(r) > maxMessage {
			return text[:i]
		}
	}
	return text
}

// AppendTime appends a time as in all answers: UTC, in milliseconds.
func AppendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

var waitNames = []string{"retry_after_ms"}

// RetryAfter is the value of the header field Retry-After for a refusal, in whole seconds, rounded
// up: 1 where no time is known.
func RetryAfter(f *Fault) []string {
	var v [1]jsonx.Value
	jsonx.Pick(f.Details, waitNames, v[:])
	ms, ok := jsonx.ParseInt(v[0].Raw)
	if v[0].Kind != jsonx.Number || !ok {
		ms = 1
	}
	return []string{strconv.FormatInt((max(ms, 1)-1)/1000+1, 10)}
}

// maxRequestID bounds the identifier of a request, in bytes (threads §2.1).
const maxRequestID = 200

// ValidRequestID reports whether a client may choose id: visible ASCII, not too long.
func ValidRequestID[T string | []byte](id T) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= maxRequestID
}

// Unverified returns how a token is answered that a Verifier refuses with err.
func Unverified(err error) *Fault {
	var no *token.Refusal
	switch {
	case errors.Is(err, token.ErrOutOfScope):
		return &Fault{Condition: OtherWorkspace, Message: "the token is for a workspace that is not served here"}
	case !errors.As(err, &no):
		return BadToken("malformed")
	case no.Retry == 0:
		return BadToken(no.Reason)
	}
	f := &Fault{Condition: UnknownKey, Message: "the bearer token is not accepted: its key is not in the key set yet"}
	if no.Unavailable {
		f = &Fault{Condition: KeysUnavailable, Message: "tokens cannot be verified now: the key set cannot be read"}
	}
	f.Details = jsonx.Build(nil).Text("reason", no.Reason).Int("retry_after_ms", no.Retry.Milliseconds()).End()
	return f
}

// Bearer returns the token of the Authorization fields of a request. ok is false unless there is
// one field with one token.
func Bearer(fields []string) (token string, ok bool) {
	if len(fields) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", false
	}
	return token, !strings.ContainsAny(token, " \t,")
}

// Limited is a refusal for d, which is shown in whole milliseconds, rounded up.
func Limited(d time.Duration, message string) *Fault {
	details := jsonx.Build(nil).Int("retry_after_ms", int64((d+time.Millisecond-1)/time.Millisecond)).End()
	return &Fault{Condition: RateLimited, Message: message, Details: details}
}

// BadToken is the refusal of a token for a reason of the table in threads §3.1.
func BadToken(reason string) *Fault {
	return &Fault{Condition: Unauthorized, Message: "the bearer token is not accepted", Details: jsonx.Build(nil).Text("reason", reason).End()}
}

// Challenge has the values of WWW-Authenticate: for a request without a bearer token, and for one
// whose token is refused (RFC 6750 §3.1).
type Challenge [2][]string

// NewChallenge returns a Challenge that names the URL of a resource's metadata, if there is one.
func NewChallenge(metadata string) Challenge {
	if metadata == "" {
		return Challenge{{"Bearer"}, {`Bearer error="invalid_token"`}}
	}
	metadata = `resource_metadata="` + metadata + `"`
	return Challenge{{"Bearer " + metadata}, {`Bearer error="invalid_token", ` + metadata}}
}

// For returns the value for a request with these fields of Authorization.
func (c Challenge) For(authorization []string) []string {
	for _, field := range authorization {
		if scheme, _, _ := strings.Cut(field, " "); strings.EqualFold(scheme, "bearer") {
			return c[1]
		}
	}
	return c[0]
}
