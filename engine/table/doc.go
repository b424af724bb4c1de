// Package table is a bounded, lock-sharded table keyed by text: the envelope store and the session
// table of envelope §5.3 and §6. It has no clock, goroutine or I/O; readings of the monotonic clock
// come from the caller.
//
// Every entry has a size in bytes, the reading at which it was last touched, and a class, Live or
// Ended. A table holds at most Config.MaxEntries entries of at most Config.MaxBytes bytes together,
// at every moment: room is reserved before an entry is linked. What makes room when there is none
// is the Policy of the call.
//
// # Access
//
//	Get, Touch, Remove             one step
//	Acquire ... Release, Do        several steps on one entry, atomic
//	Insert, Put, MakeRoom          may evict, see below
//	Sweep                          drops what is idle and expired; fresher entries cost nothing
//	Walk                           visits everything
//
// # Locks
//
// Each shard has one mutex, and no operation holds two of them. Acquire keeps the shard of its key
// locked until Release; the callbacks of Do, Walk and Sweep run with it locked. A caller that has a
// shard locked may use the methods of Entry and Len and Bytes, which take no lock, and must not
// call any other method of the same table. Config.OnEvict is called with no lock held and may do
// anything.
//
// A *V that Get returned is not protected by any lock: it is for values that are replaced as a
// whole and never written.
//
// # Order
//
// Entries of one class in one shard form a list in order of touch, and the reading at its head is
// kept in an atomic, so that the longest untouched entry of the table is found by one load per
// shard and without waiting for a locked one. A touch costs a few pointer writes. An entry that
// enters a list late (a class change without a touch, a reading from a loop whose clock is behind)
// is moved to its place from the fresh end, in as many steps as there are fresher entries.
//
// Eviction takes Ended entries first, then Live ones, each longest untouched first and only from
// the idle age the Policy gives.
package table
