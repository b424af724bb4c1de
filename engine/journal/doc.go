// Package journal is an ordered, durable log of records with snapshots: one order, one writer, one write in flight. It knows
// nothing of what the records mean, and keeps them in a Store, which knows nothing of the log.
//
// # Life
//
//	Open           reads the end of the log and the list of snapshots; changes nothing
//	LoadSnapshot   gives the newest snapshot and its index
//	Replay         gives the records after it and verifies them; at the end it writes the claim of this owner
//	Append ...     any number of goroutines, each under the lock that decided what the record says
//	WriteSnapshot  now and then, from a goroutine of its own
//	Close          writes what waits
//
// A reply that promises durability waits until Durable has reached the index of its record; OnDurable says when. A request that
// would append asks Overloaded before it is decided. After the first error of the store nothing becomes durable any more: the
// journal stops, calls OnFailure once, and its owner starts again from what is stored. Nothing is retried: after a failed sync the
// page cache is not the disk.
//
// # Groups
//
// Append copies a record to the end of the open group, which is a block in the making. The committer takes the oldest group,
// completes it in place and writes it; meanwhile a new one is open. So a slow disk makes large groups and a fast one small ones. A
// group ends at Config.MaxBlockBytes; a longer record is alone in a block. What is appended between Begin and End shares a group,
// whatever its size. Groups are used again: in steady state nothing is
// allocated.
//
// # Blocks
//
// Integers are little-endian. A block of version 1:
//
//	 0      1      2      3      4             8
//	+------+------+------+------+-------------+---------------------------+
//	| vers | kind | mode |   0  |  partition  |           epoch           |
//	+------+------+------+------+-------------+---------------------------+ 16
//	|                first index              |    count    | body bytes  |
//	+-----------------------------------------+-------------+-------------+ 32
//	|       log time, ns since 1970           |       previous chain      |
//	+-----------------------------------------+---------------------------+ 48
//	|  body: count times { length, uvarint in its shortest form; bytes }  |
//	+---------------------------------------------------------------------+
//	|  CRC32C of all before  |
//	+------------------------+
//
// kind 0 holds records of the caller; kind 1 is a claim, which holds one empty record: the first block of an epoch. The epoch of a
// claim is higher than any before; all other blocks repeat the one before them. The first block of a log is a claim at index 1 with
// previous chain 0. Log time never falls.
//
// The chain value of a block is a 64-bit mix of its previous chain, first index, epoch, time, checksum and body bytes, so that it
// stands for the whole log up to there: a block that was swapped, repeated, or left over from another life does not follow. It
// guards against mistakes and rot, not against forgery.
//
// # Snapshots
//
// A snapshot is a list of chunks and a meta. A chunk holds up to 262140 bytes of the snapshot and then the CRC32C of {snapshot
// u64, number of the chunk u32, those bytes}. The meta of version 1:
//
//	 0      1      2             4             8                          16
//	+------+------+-------------+-------------+---------------------------+
//	| vers | mode |      0      |  partition  |        snapshot         |
//	+------+------+-------------+-------------+---------------------------+ 16
//	|                  epoch                  |           index           |
//	+-----------------------------------------+---------------------------+ 32
//	|                 through                 |  log time, ns since 1970  |
//	+-----------------------------------------+---------------------------+ 48
//	|             bytes of all chunks         |    chunks   |    CRC32C   |
//	+-----------------------------------------+-------------+-------------+ 64
//
// bytes counts without checksums. Replay goes on after index; through is what the log had to reach before the snapshot counted,
// because a snapshot of shards that are copied one after the other holds effects of records after index. Two snapshots are
// kept, and the log from the index of the older one on.
//
// # Damage
//
//	last block in part, store implements Tearing      cut: it was never acknowledged
//	anything else that does not decode or follow       *DamageError with the first index that cannot be had
//	a meta that does not decode, a file of a           the snapshot is given up, with a warning: the one before it is used, or the
//	snapshot that is not there                         log from its beginning on; *DamageError where that does not reach so far
//	a snapshot that does not decode                    *DamageError; with RecoverTo the one before is used
//	a snapshot beyond the end of the log               *DamageError: the log lost its end
//
// Nothing is repaired without Config.RecoverTo, and what is refused is not changed.
package journal
