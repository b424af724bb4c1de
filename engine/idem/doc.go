// Package idem is the idempotency table (toolhost §4.3 "Idempotency", D10, D11, D17-D20): at most
// one execution per key and window, its outcome kept for repetitions. It starts no goroutine and
// does no I/O; the clock and the journal are handed in.
//
// # An entry's life
//
//	         Begin: Started                       Finish
//	(none) ──────────────────► in flight ─────────────────────► done ──► (none) expired, evicted
//	   ▲                       │  ▲    │                          ▲
//	   │ Release, or a result  │  │    │ the process ends,        │ FinishUnknown
//	   ├───────────────────────┘  │    │ the journal is replayed  │
//	   │                  Restart │    ▼                          │
//	   └───────────────────────── unknown ────────────────────────┘
//	     Forget, expired, evicted
//
// Begin answers Done with the stored outcome, InFlight while another execution is under way,
// Conflict if the key came with another input (whatever the entry's state), Unknown if an execution
// was begun before a restart and how far it came is not known, Interrupted if it was one that may
// be run twice. A restarted execution that is released goes back to unknown, not to none: the
// attempt before it may have had its effect.
//
// # Waiting
//
// A Waiter given to Begin that answered InFlight is woken exactly once, with no lock held: with the
// outcome when the execution finishes, with nil when it was released (then it calls Begin again).
// The outcome comes with the call, so that neither an eviction nor a result that is too large to be
// kept can send a waiter into a second execution. Cancel takes a waiter back.
//
// # Bounds
//
// A table never holds more than Config.MaxEntries entries, those in flight included, nor more than
// Config.MaxBytes bytes of outcomes, and never more than Config.MaxWaiters wait; room is reserved
// before it is used. To make room, what has expired is dropped, then what is done or unknown, least
// recently used first; what is in flight never is. An outcome larger than MaxBytes is handed to
// those who wait for it and not kept. The order of use is exact for one caller at a time; under
// concurrency it is that of the shards' heads at the moment of looking.
//
// With Config.NoEviction a key is kept until it expires: a full table refuses new ones. The
// outcomes of what is in flight are kept all the same, and may exceed MaxBytes.
//
// An outcome is valid for Config.TTL from its completion: while now < completion + TTL. Use does
// not prolong it. Begin drops what has expired anywhere in the table; Sweep does so without a
// request.
//
// # Locks
//
// Each shard has one mutex; no operation holds two of them, but for WriteSnapshot, which holds all
// while it copies pointers. Config.Journal is called with the shard locked and must neither block
// nor use the table.
//
// # Journal
//
// Every change of what is kept goes to Config.Journal in the order in which it is decided: a drop
// before the start that needs its room, so that each prefix of the journal keeps the bounds. Uses
// are not recorded: after a replay the order of use is that of the changes, and of the last
// snapshot. The caller waits for the index of a start (Index) before the tool runs, and for that of
// the outcome (Stored.Index) before it is shown, also on a hit (started before the
// effect, finished before the answer).
//
// A record is a MessagePack list. A hash is four unsigned integers, big-endian words:
//
//	version 1, kind, at, key x4                                            dropped
//	version 1, kind, at, key x4, attempt                                   released
//	version 1, kind, at, key x4, attempt, input x4                         started; bit 31 of
//	        the attempt: the execution may be run twice
//	version 1, kind, at, key x4, attempt, input x4,
//	        status, output, error, dispatch or nil, [token x4] or nil      finished
//
// A snapshot is a record [1, index] and then one [1, use, change] for each entry, where the change
// is one that makes such an entry. It is of one moment: all changes up to index are in it, none
// behind.
//
// The table is not engine/table because expiry goes by completion and eviction by use, and because
// a drop has to be recorded before the room it leaves can be used.
package idem
