// Package toolhost is the tool server (toolhost §1): a caller names a tool by its action id, passes a JSON input and a small shared
// state, and gets one JSON line back.
//
//	line ──► Scan ──► steps 1–6 (request.go) ──► idempotency, breaker, admission, lease (call.go) ──► the tool ──► reply line
//
// A Server holds what all callers share: the registry of tools, leases, breakers and the idempotency table. A session is one caller's
// stream of lines, over stdin and stdout or a socket; it is a link.Session, so that the same code runs on an event loop and on
// goroutines. It serves one line at a time: tools that may block run on the executor, and the session takes no further line until the
// reply is made. What a session owns (its state, its open run) is touched by its owner only; a call takes copies along.
//
// The single-shot modes (list, run, tool_exec) are in single.go; they share the parsing, the tools and the replies, and nothing else.
package toolhost
