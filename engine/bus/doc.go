// Package bus carries events, commands and queries between connections (kernel-ipc §4.15-§4.21,
// §5.4, §5.5).
//
// It is neutral about protocols: a message is a body of opaque bytes which a handler encodes once
// and every stream shares. The bus copies no body and reads none; the frame around a body belongs
// to the connection that pops it.
//
//	Publish ──► registry (64 shards), patterns ──► Stream ──► Pop ──► connection
//	Send, Query ──► one handler per type ──► Stream ──► Pop ──► connection
//	Reply ──► query table ──► Caller.QueryDone
//
// A Stream is one live stream of one connection: a queue bounded in entries, in bytes and, all
// streams together, in total bytes. Its life is kernel-ipc §5.4:
//
//	Subscribe, Handle ──► live ──Detach──► ending ──drained by Pop──► ended
//	                      live, ending ──Discard──► ended
//
// A subscription that cannot take an event loses that event alone, and a gap marker stands exactly
// where events are missing. The marker costs no queue entry: each entry remembers how many events
// were lost just before it, and the stream remembers how many were lost after its last entry, so
// neighbouring losses merge by themselves and the bound on entries is never exceeded. A handler's
// stream loses nothing silently: its sender is refused.
//
// # Waking
//
// Port.Wake is called once when a stream turns from "not signalled" to having something to pop, and
// not again until Pop has returned nil. So a connection that stops popping early must come back by
// itself. Wake is called with no bus lock held: it may call Pop, and it may take locks under which
// other goroutines call the bus. It may arrive shortly after Detach or Discard have returned,
// because a publisher may have been on its way; a closed connection ignores it.
//
// # Patterns
//
// A subscription may have patterns beside exact types. They are compared token by token, tokens
// standing between dots: "*" is any one token, ">" the rest, which is at least one. The patterns of
// all streams are one immutable set behind a pointer. Where nothing has a pattern, Publish reads
// that pointer and no more; else it takes one step for each token of the type, and compares it with
// 256 patterns at once.
//
// # Locks
//
// The order is: registration, query table, stream. A shard's lock is taken under the registration
// lock or alone, and nothing is taken under it. The lock for changes of patterns is taken alone. No
// foreign code (Port, Caller, the build function of Query) runs under any of them.
//
// # Memory
//
// Bodies live in pooled Messages with an atomic reference count. The connection that pops a message
// releases it; then its bytes are reused. Builds with the race detector or the tag "invariants"
// overwrite them, so that late readers are found. Publish and Send, and the Pops they cause, do not
// allocate once the pools are warm.
//
// Not here, on purpose: priorities, persistence, retries, patterns of commands and queries. A bus
// message is delivered at most once.
package bus
