// Package link is what a protocol sees of a connection, and what an owner of connections sees of a
// protocol.
//
// An owner (the event loop of engine/reactor, or the goroutine pair of engine/stream) lends bytes
// to a Session and takes the bytes the session appended; a Session never sees a socket, a loop or a
// goroutine. Between them stands the Port: the one name of a connection that other goroutines may
// hold, good for exactly one thing, waking the owner.
//
//	         Feed(in)          ┌─────────┐        Wake()
//	socket ───────────► owner ─┤ Session │ ◄───── bus, timers, other connections
//	       ◄───────────       ◄┤         │          through the Port
//	         out bytes         └─────────┘
//
// The package is a leaf: it imports no other room, so that every room may import it.
package link
