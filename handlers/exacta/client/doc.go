// Package client is the caller's side of projects over lines (exacta §2.1, §3): one connection over
// TCP or a unix socket, requests matched by id, and the events between their answers.
//
//	conn, err := client.Dial(ctx, "unix:///run/projects.sock", client.Options{})
//	if err != nil { … }
//	defer conn.Close()
//	answer, err := conn.Ask(ctx, "OpenProject", payload, func(m *client.Message) error { … })
//
// # What is refused
//
// The server is not trusted to keep the protocol (exacta §6.5). Another major version is IPC-002, a
// line that is no message is IPC-001, an answer with neither or both of result and error, or of no
// request, is IPC-005, a missing event is IPC-007. Each of these ends the connection. Events that
// are not in the catalogue and fields that are unknown are ignored.
//
// # Errors
//
// *Error has a code: of the server's answer, or one of the above. *ConnError means that there is no
// connection, or none any more. Others are those of the context, after which the connection can be
// used further.
//
// # Goroutines
//
// A Conn has none, and is for one goroutine. Memory is bounded by the longest line, maxLine.
package client
