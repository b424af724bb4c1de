// Package kernel is the process table of kernel IPC: lifecycle, ready queue, quotas, per-user rate limits and garbage
// collection (kernel-ipc §4.1-§4.13, §5.1-§5.3). It knows no frames, no MessagePack and no connections, has no clock and
// starts no goroutine: callers validate their input, pass the Instant of their turn, and encode what comes back.
//
// # Locks
//
// One scheduling lock covers the lifecycle: create, schedule, next, transition, terminate, sweep, counts and the order of
// events. Each shard of the table has a mutex, and so has each shard of the rate limiter. Lock order: scheduling lock, table
// shard, limiter growth lock, limiter shard; a holder of the scheduling lock may lock table shards one after the other.
//
// A row's identity, state, clock, quota and reason, and the index that finds it, are written with the scheduling lock and the
// shard's mutex both held, so that either one suffices to read them. Usage is guarded by the shard's mutex alone.
// Get, RecordUsage and CheckQuota within bounds take only a shard's mutex, CheckRate only a limiter shard's.
//
// # Memory
//
// A shard holds an open-addressing index (hash tag and slot in 8 bytes, deletion by backward shift, no tombstones), chunks of
// 64 rows of 160 bytes, and an arena of 8 KiB pages for the identifier strings. None of these contain pointers, so that the
// collector has nothing to walk. Slots, blocks and pages are reused. Beside its row a process has a 32-byte node in the
// scheduler's slab (its place in the ready queue, among the leases or among the completed) and 12 bytes in the creation order.
//
// # Changes
//
// Public operations decide, describe the resolved effect as a Change, hand it to Config.Journal, and apply it. Applying reads
// no clock, no randomness and no map order: replaying the journalled changes on a fresh kernel gives the same Digest. Times in
// changes are Mono readings; who replays them keeps Mono running from where the journal left it. How recently a rate-limit
// log was active (a refused call is activity too) is a hint for dropping logs, not state: it is not journalled beyond the
// stamps themselves, and what is dropped is a change of its own.
//
// Changes of one process reach Config.Journal in the order they are applied, and so do all changes decided under the
// scheduling lock and all changes of one user's log. Journal is called from several goroutines at once.
//
// A change is encoded as
//
//	+---------+---------+------+----------------------+
//	| length  | version | kind | fields of the kind   |
//	| uvarint | 1 byte  | 1 B  | length-2 bytes       |
//	+---------+---------+------+----------------------+
//
// where length counts everything after itself and is at most MaxChangeLen. str is a uvarint length and that many bytes, uint
// a uvarint, int a zigzag varint, byte one byte.
//
//	create         str pid, str request_id, str user_id, str session_id, byte state, byte priority,
//	               uint seq, uint ready_seq, 14 x uint quota
//	transition     str pid, byte state, int at, uint ready_seq, str reason
//	lease          str pid, int expiry
//	lease_end      str pid
//	requeue        str pid
//	remove         str pid
//	usage          str pid, 8 x uint totals
//	quota_defaults 14 x uint quota
//	rate_stamp     str user_id, int at
//	rate_drop      str user_id
package kernel
