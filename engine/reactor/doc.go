// Package reactor owns connections on event loops and moves bytes between their sockets and
// link.Sessions. It is the only importer of gnet, of which it uses the loops and nothing else: no
// listener, no outbound buffer, no timer, no asynchronous call per request.
//
// A turn is one read, one Feed, one write:
//
//	epoll ─► read(2) ─► Session.Feed(in, out) ─► write(2)
//	                        │ rest of a frame
//	                        ▼
//	                      carry (pooled)
//
// and a round serves everything that did not come from a socket, started by one byte on the loop's
// bell (a socketpair):
//
//	Port.Wake ─► inbox ─┐
//	Yield, more ────────┼─► ready list ─► Pump, Feed(carry), write(2), each connection once
//	ticker ─────────────┘   timers, drain
//
// A loop never waits. A connection that cannot be served without waiting leaves: its descriptor is
// duplicated and handed to engine/stream with everything known of it, for good. It leaves when the
// socket does not take a write whole, when its peer half-closed with answers outstanding, and when
// unread bytes pile up, for gnet cannot pause reading. So output is never buffered here, and
// nothing pending is lost at close.
//
// Everything about a connection and its loop belongs to the loop's goroutine; only the inbox, the
// bell and the orders (timers, drain) may be touched from elsewhere.
package reactor
