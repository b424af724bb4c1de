// Package stream serves link.Sessions over anything that reads and writes bytes and may block doing so: TLS, stdio, pipes, and
// connections that left an event loop. Each connection has two goroutines.
//
//	          ┌──────── reader ────────┐   replies    ┌──────── writer ────────┐
//	Read ───► │ Feed, until paused     │ ───────────► │ replies, then one Pump │ ───► Write
//	          └────────────────────────┘              └────────────────────────┘
//	                      ▲    paused while replies exceed UnsentBytes  │  ▲
//	                      └──────────── room ───────────────────────────┘  └── Port.Wake
//
// A connection's mutex guards its session and what both goroutines share; it is never held during a Read or a Write. A
// blocking Write is the back-pressure: while it lasts, replies gather up to Limits.UnsentBytes, then the reader stops, then the
// peer's window closes (kernel-ipc §2.5).
//
// Timers need no timer each: one janitor per Host looks at all connections twice a second, so a timer of T fires in
// [T, T+1 s] (kernel-ipc §2.4).
package stream
