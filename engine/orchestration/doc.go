// Package orchestration runs pipelines of agents: it keeps envelopes and sessions, instructs
// workers what to run next, takes their results and reports why a session stopped (envelope §4.5 to
// §4.13, §5.2, §5.3). It runs no agent itself.
//
//	Pipeline   a validated configuration, names resolved to indexes, shared by sessions
//	Engine     the nine methods of two services, over two bounded tables: sessions and envelopes
//	Call       one request's scratch: clock reading, refusal, buffers
//
// # A session
//
// A session holds its envelope as the bytes a reply shows, and beside them what the next request
// decides by: the stage, the state, the counters of its edges. Asking what to run copies those
// bytes. A report decodes them, overlays what changed and encodes them anew; nothing of the session
// changes before that has succeeded.
//
// # Locks
//
// Each session has its own mutex, so that requests about one process take effect one after the
// other and never wait for another process. Order: the lock of an envelope's identifier, then a
// session's, then a table's shard, then the index of waiting sessions. A table reports evictions
// with no lock held, and may do so while a session is locked: what it calls back marks the session
// and locks only the index.
package orchestration
