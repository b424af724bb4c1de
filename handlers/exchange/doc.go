// Package exchange is boundary A of the envelope exchange (envelope §2.2–§2.4): an engine step for
// callers without a connection.
//
//	trunkline process < envelope  one JSON text in, one JSON object and a line end out  (Command)
//	trunkline < {"command": …}    the same, the command named inside the text           (Bridge)
//	POST /api/v1/process          one envelope in, one envelope out, over HTTP/1.1      (Server)
//
// All three are pure functions of their input: nothing is stored, and the commands open no socket
// and write no file. Every failure is an error object {"error":true,"code":…,"message":…}. Usage
// and stacks go to stderr or the log.
//
// The server is net/http behind a listener of its own. That listener bounds open connections, turns
// the plain-text answers of net/http into error objects, and reads on for a moment after a
// connection's last reply, so that a peer that still sends sees it.
//
// Not implemented, on purpose: HTTP/2, compressed bodies, CORS, authentication. Who may connect is
// decided where the listener is opened (kernel-ipc D41).
package exchange
