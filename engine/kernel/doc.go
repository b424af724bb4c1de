// Package kernel is the process table of kernel IPC: lifecycle, ready queue, quotas, per-user rate
// limits and garbage collection (kernel-ipc §4.1-§4.13, §5.1-§5.3). It knows no frames, no
// MessagePack and no connections, has no clock and starts no goroutine that outlives a call:
// callers validate their input, pass the Instant of their turn, and encode what comes back.
//
// # Locks
//
// One scheduling lock covers the lifecycle: create, schedule, next, transition, terminate, sweep,
// counts and the order of events. Each shard of the table has a mutex, and so has each shard of the
// rate limiter. Lock order: scheduling lock, table shard, limiter growth lock, limiter shard; a
// holder of the scheduling lock may lock table shards one after the other.
//
// A row's identity, state, clock, quota and reason, and the index that finds it, are written with
// the scheduling lock and the shard's mutex both held, so that either one suffices to read them.
// Usage is guarded by the shard's mutex alone. Get, RecordUsage and CheckQuota within bounds take
// only a shard's mutex, CheckRate only a limiter shard's.
//
// # Memory
//
// A shard holds an open-addressing index (hash tag, slot and place of the key in 12 bytes, deletion
// by backward shift, no tombstones), chunks of 64 rows of 128 bytes, an arena of 8 KiB pages for
// the identifier strings, and the quotas of its rows, equal ones once. None of these contain
// pointers, so that the collector has nothing to walk. Slots, blocks and pages are reused. Beside
// its row a process has a 32-byte node in the scheduler's slab (its place in the ready queue, among
// the leases or among the completed) and 12 bytes in the creation order. Beyond some 65,000
// processes the memory is asked for in huge pages.
//
// # Changes
//
// Public operations decide, describe the resolved effect as a Change, hand it to Config.Journal,
// and apply it. Applying reads no clock, no randomness and no map order: replaying the journalled
// changes on a fresh kernel gives the same Digest. Times in changes are Mono readings; a replay
// continues Mono where the journal ended. How recently a rate-limit log was active (a refused call
// is activity too) is a hint for dropping logs, not state: it is not journalled beyond the stamps
// themselves, and what is dropped is a change of its own.
//
// Changes of one process reach Config.Journal in the order they are applied, and so do all changes
// decided under the scheduling lock and all changes of one user's log. Journal is called from
// several goroutines at once. The index that it returns is remembered by what the change is about,
// a process, a user's log or the default quota, under the lock under which it was journalled: the
// shard's mutex, the limiter shard's, the scheduling lock.
//
// A change is encoded as
//
//	+---------+---------+------+----------------------+
//	| length  | version | kind | fields of the kind   |
//	| uvarint | 1 byte  | 1 B  | length-2 bytes       |
//	+---------+---------+------+----------------------+
//
// where length counts everything after itself and is at most maxChangeLen. str is a uvarint length
// and that many bytes, uint a uvarint, int a zigzag varint, byte one byte.
//
//	create         str pid, str request_id, str user_id, str session_id, byte state,
//	               byte priority, uint seq, uint ready_seq, 14 x uint quota
//	transition     str pid, byte state, int at, uint ready_seq, str reason
//	lease          str pid, int expiry
//	lease_end      str pid
//	requeue        str pid
//	remove         str pid
//	usage          str pid, 8 x uint totals
//	quota_defaults 14 x uint quota
//	rate_stamp     str user_id, int at
//	rate_drop      str user_id
//
// # Snapshots
//
// WriteSnapshot copies the table in batches while others use it, so that its parts are of different
// moments. Each part has the index of its last record: Apply ignores records up to it. A process
// that was not there when its slot was copied is not in the snapshot; the records up to the end of
// the snapshot are replayed leniently for that reason, see Lenient. Recovery keeps no queue, no
// lists and no creation order until finishLoad sorts them once: so the records of one process
// concern nothing else, and several goroutines can take back the state together, see
// Kernel.Recover.
//
// A record of a snapshot is framed like a change, with a length of 3 bytes that is at most
// maxSnapshotRecordLen. The first is begin, the last end, which counts the others.
//
//	1 begin        uint created, uint ready_seq, int now, uint index of defaults, 14 x uint quota
//	2 process      str pid, str request_id, str user_id, str session_id, byte state,
//	               byte priority, uint created, uint index, int clock, byte place,
//	               uint sequence, int stamp, str reason, 8 x uint usage, 14 x uint quota
//	3 rate_log     str user_id, uint index, int last, uint n, (n-1) x uint
//	4 end          uint processes, uint rate_logs
//
// index is that of the last record about it. clock is the time spent RUNNING or, while RUNNING, the
// instant at which it would have been 0, in milliseconds. place is 0 nowhere, 1 queued, 2 queued at
// its old place, 3 leased, 4 handed out without a lease, 5 completed; sequence is that of the entry
// into READY or, for 5, the index of the record of the completion; stamp is the end of the lease or
// the completion. last is the newest stamp in milliseconds, and each uint behind n is by how much
// the next one is older.
package kernel
