// Package stream serves link.Sessions over anything that reads and writes bytes and may block doing
// so: TLS, stdio, pipes, and connections that left an event loop. Each connection has two
// goroutines, and a third once it has begun to read ahead.
//
//	          ┌──────── reader ────────┐   replies    ┌──────── writer ────────┐
//	Read ───► │ Feed, until it may not │ ───────────► │ replies, then one Pump │ ───► Write
//	          └────────────────────────┘              └────────────────────────┘
//	               │ read ahead   ▲   while replies exceed UnsentBytes,   │  ▲
//	               ▼              └─ or the session is blocked ── room ───┘  └── Port.Wake
//	             bytes kept ──► tender: Feed while the reader reads, Pump while the writer writes
//
// A connection's mutex guards its session and what the goroutines share; it is never held during a
// Read or a Write. A blocking Write is the back-pressure: while it lasts, replies gather up to
// Limits.UnsentBytes, then the session stops, then what is read ahead gathers up to
// Limits.AheadBytes and AheadFrames, then the reader stops, then the peer's window closes
// (kernel-ipc §2.5, toolhost §2.2). Without AheadBytes the reader stops with the session.
//
// A connection ends by lingering (delivery): its socket is closed when its peer has all output, not
// when the socket has.
//
// Timers need no timer each: one janitor per Host looks at all connections twice a second, so a
// timer of T fires in [T, T+1 s] (kernel-ipc §2.4).
package stream
