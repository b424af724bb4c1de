package tool

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

// DispatchType is why a tool could not be run to its end (toolhost §3.5).
type DispatchType string

// The types of dispatch errors: the whole set (toolhost D30).
const (
	Timeout    DispatchType = "timeout"     // the deadline passed, or no worker was free before it
	Crash      DispatchType = "crash"       // the worker exited, was killed, or closed its output without a reply
	ParseError DispatchType = "parse_error" // the worker's reply is not a reply
	NotFound   DispatchType = "not_found"   // there is no such executable or module, or it must not be run
	Exception  DispatchType = "exception"   // a fault inside the server or a built-in tool
)

// MaxDetail is how many bytes of what a worker wrote to stderr a detail carries, the last ones (toolhost §3.5).
const MaxDetail = 2048

// DispatchError means that a tool could not be run, or not to its end: what it did is not known
// (toolhost §3.5). It does not change once it is made, and may be shared.
type DispatchError struct {
	// AID is the action id that was called.
	AID string
	// Type is what happened.
	Type DispatchType
	// Detail is for people: see Detail.
	Detail string
	// Waited marks a Timeout whose call never reached a worker, because none was free before the deadline. It does not concern
	// the tool, and so does not count for its breaker (toolhost §4.9). It is not on the wire.
	Waited bool
}

// AppendJSON appends the error as the compact object of toolhost §3.5 to dst and returns the
// result. It allocates only if dst has no room.
func (e *DispatchError) AppendJSON(dst []byte) []byte {
	return jsonx.Build(dst).Bool("error", true).Text("aid", e.AID).Text("type", string(e.Type)).
		Text("detail", e.Detail).End()
}

// Broken returns the result of a tool that could not be run, or not to its end, with the text that
// toolhost §3.5 gives for the type. exit is the exit code of the worker, 128 and the signal's
// number if one ended it; only a crash shows it. detail goes through Detail.
func Broken(aid string, kind DispatchType, exit int, detail string) Result {
	detail = Detail(detail)
	return Result{Failure: &Failure{
		Status:   ToolError,
		Error:    brokenText(aid, kind, exit, detail),
		Dispatch: &DispatchError{AID: aid, Type: kind, Detail: detail},
	}}
}

// brokenText returns the error member of the reply, which is never empty (toolhost §3.2).
func brokenText(aid string, kind DispatchType, exit int, detail string) string {
	switch kind {
	case Timeout:
		return "toolhost timed out for " + aid
	case Crash:
		return "toolhost exit " + strconv.Itoa(exit) + ": " + detail
	case ParseError:
		return "toolhost invalid response JSON"
	case NotFound:
		return "toolhost launch failed: " + detail
	}
	if detail == "" {
		return string(Exception)
	}
	return detail
}

// Detail returns what a reply may show of text, which a worker or a panic wrote: at most the last MaxDetail bytes from the
// start of a character on, with control characters replaced by spaces (toolhost §3.5).
func Detail(text string) string {
	if cut := len(text) - MaxDetail; cut > 0 {
		// A character has at most three bytes behind its first: where more follow, the text is not UTF-8 and is cut anywhere.
		for n := 0; n < utf8.UTFMax-1 && cut < len(text) && !utf8.RuneStart(text[cut]); n++ {
			cut++
		}
		text = text[cut:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
