// Package toolhost is the tool server (toolhost §1): a caller names a tool by its action id, passes
// a JSON input and a small state, and gets one JSON line back.
//
//	line ──► steps 1–6 (request.go) ──► idempotency, breaker, lease (call.go) ──► tool ──► reply
//
// A Server holds what all callers share: tools, leases, breakers and the idempotency table. A
// session is one caller's stream of lines; it is a link.Session. It serves one line at a time:
// tools that may block run on the executor, and the session takes no line until the reply is made.
// Only its owner touches its state and its run; a call takes copies along.
//
// The single-shot modes are in single.go; they share the parsing, the tools and the replies.
package toolhost
