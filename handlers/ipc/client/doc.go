// Package client speaks the kernel protocol (kernel-ipc) from the caller's side: one connection, any number of concurrent
// requests matched by id, and streams beside them.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:50051")
//	if err != nil { … }
//	defer conn.Close()
//	p, err := conn.CreateProcess(ctx, client.CreateProcess{PID: "p1", UserID: "u1"})
//
//	sub, err := conn.Subscribe(ctx, client.Subscribe{EventTypes: []string{"process.created"}})
//	for event, err := range sub.Events(ctx) { … }
//
// # Errors
//
// Three kinds, told apart with errors.As: *Error is what the server answered, with its code; *ConnError says that the
// connection is gone and fails every call and stream on it; anything else (an unencodable body, a request over the frame
// limit, the context's own error) concerns one call and leaves the connection usable.
//
// # Back-pressure
//
// A stream buffers a bounded number of bytes and messages that its consumer has not taken yet (WithStreamBuffer). When a
// buffer is full the connection is not read until the consumer takes something or closes the stream: nothing is dropped on
// this side, the server's own slow-reader rule applies instead (kernel-ipc §4.18). Calls on the same connection wait
// meanwhile, so a consumer that makes calls of its own while falling behind should use a second connection for them.
//
// # Goroutines
//
// A Conn has two, a reader and a writer; both have ended when Close returns. A connection that broke is not redialled.
package client
