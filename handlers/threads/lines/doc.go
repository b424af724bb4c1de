// Package lines is agent threads over lines of JSON, the protocol threads/1 (threads §2.4): a
// link.Session for each connection.
//
//	line ──► id, method, params ──► method.Dispatcher ──► reply, held until it is durable
//
// A session answers its requests in their order. Methods that may wait for a disk run on a
// goroutine of their own; meanwhile the session takes no line. So do verifications of tokens, which
// may wait for a key set.
package lines
