// Package client is the caller's side of kernel IPC: one connection, any number of concurrent
// requests matched by id, and streams beside them. methods_gen.go has a typed method for every
// method of the protocol.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:50051")
//	if err != nil { … }
//	defer conn.Close()
//	p, err := conn.CreateProcess(ctx, client.CreateProcess{PID: "p1", UserID: "u1"})
//
//	sub, err := conn.Subscribe(ctx, client.Subscribe{EventTypes: []string{"process.created"}})
//	for event, err := range sub.All(ctx) { … }
//
// # Errors
//
// There are three kinds; errors.As separates them. *Error is the answer of the server, with its
// code. *ConnError means that the connection is gone; it fails every call and stream on it. All
// others (a body that cannot be encoded, a request over the frame limit, the error of the context)
// concern one call and leave the connection usable.
//
// # Repeating a call
//
// After a ConnError, or the end of a context, a call may have taken effect or not. A call that had
// an idempotency key is repeated with the same one, over any connection:
//
//	ctx = client.WithIdempotencyKey(ctx, uuid.NewString())
//	usage, err := conn.RecordUsage(ctx, client.RecordUsage{PID: "p1", LLMCalls: 1})
//
// # Back-pressure
//
// A stream buffers a bounded number of bytes and messages (WithStreamBuffer). When a buffer is
// full, the connection is not read until the consumer takes a message or closes the stream. Nothing
// is dropped on this side; the slow-reader rule of the server applies (kernel-ipc §4.18). Other
// calls on the connection wait meanwhile: a slow consumer with calls needs a second connection.
//
// # Goroutines
//
// A Conn has a reader and a writer. Both have ended when Close returns. A broken connection is not
// dialled again.
package client
