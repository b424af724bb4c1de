package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"trunkline/codec/jsonx"
	"trunkline/engine/envelope"
)

// The error codes of boundary A beside those of the engine (envelope §2.3, §2.4).
// badRequest is ours: HTTP that is not HTTP.
const (
	codeRead        envelope.ErrorCode = "read_error"
	codeTooLarge    envelope.ErrorCode = "too_large"
	codeUnknown     envelope.ErrorCode = "unknown_command"
	codeInternal    envelope.ErrorCode = "internal"
	codeNotFound    envelope.ErrorCode = "not_found"
	codeMethod      envelope.ErrorCode = "method_not_allowed"
	codeTimeout     envelope.ErrorCode = "timeout"
	codeMediaType   envelope.ErrorCode = "unsupported_media_type"
	codeHeaders     envelope.ErrorCode = "headers_too_large"
	codeOverloaded  envelope.ErrorCode = "overloaded"
	codeStopping    envelope.ErrorCode = "shutting_down"
	codeBadRequest  envelope.ErrorCode = "bad_request"
	malformedPrefix                    = "Malformed HTTP request"
)

// answer is the outcome of a command: one compact JSON object, and whether it is a failure.
type answer struct {
	out    []byte
	failed bool
}

func answered(out []byte, err *envelope.Error) answer {
	if err != nil {
		return answer{out: err.Append(nil), failed: true}
	}
	return answer{out: out}
}

func refused(code envelope.ErrorCode, message string) answer {
	e := envelope.Error{Code: code, Message: message}
	return answer{out: e.Append(nil), failed: true}
}

// print writes the answer as one line and returns the exit status; failed is that of a failure.
func (a answer) print(stdout, stderr io.Writer, failed int) (exit int) {
	if _, err := stdout.Write(append(a.out, '\n')); err != nil {
		fmt.Fprintf(stderr, "cannot write to standard output: %v\n", err)
		return 1
	}
	if a.failed {
		return failed
	}
	return 0
}

func (b Build) append(dst []byte) []byte {
	for _, s := range [...]*string{&b.BuildTime, &b.Go, &b.Server} {
		*s = cmp.Or(*s, "unknown")
	}
	out, _ := json.Marshal(struct {
		Version string `json:"version"`
		Build
	}{exchangeVersion, b})
	return append(dst, out...)
}

// appendBounds makes an envelope an error object too. It drops members of the envelope with these
// names: which one of a repeated key counts would depend on the reader's JSON library.
func appendBounds(out []byte, reason string) []byte {
	out = jsonx.AppendWithout(make([]byte, 0, len(out)+firstBuffer), out, "error", "code", "message")
	out = out[:len(out)-1]
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, `"error":true,"code":"bounds_exceeded","message":`...)
	return append(jsonx.AppendString(out, "Cannot continue: "+reason), '}')
}
