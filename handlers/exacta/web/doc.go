// Package web serves projects to browsers: the WebSocket carrier of exacta (§2.2), and a page for
// operators that shows plans, diffs and events and cannot change anything.
//
//	GET /exacta/v1/ws ─► Handshake ─► conn ─► engine/stream ─► session of handlers/exacta
//
//	text message ──► text: one line ──► Feed
//	text message ◄── frame ◄── lines ◄── Pump
//
// A message becomes a line: its raw line ends, white space to JSON, become carriage returns, which
// are white space too, and an error inside of a string as they were. Reading and the end of a
// connection are those of github.com/coder/websocket. Frames of the server, which have no mask, are
// appended here: all lines of one write leave with one system call, and an answer to a ping never
// waits in the goroutine that reads.
package web
