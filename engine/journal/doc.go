// Package journal is an ordered, durable log of records with snapshots: one order, one writer, one
// write in flight, or as many as a store takes (Pipelined). It does not know what the records mean.
// A Store keeps them, and does not know the log.
//
// # Life
//
//	Open           reads the end of the log and the list of snapshots; changes nothing
//	LoadSnapshot   gives the newest snapshot and its index
//	Replay         gives the records after it, verified; then writes the claim of this owner
//	Append ...     any number of goroutines, each under the lock that decided the record
//	WriteSnapshot  from a goroutine of its own
//	Close          writes what waits
//
// A reply that promises durability waits until Durable has reached the index of its record;
// OnDurable reports it. A request that would append asks Overloaded before it is decided. After the
// first error of the store nothing becomes durable any more: the journal stops and calls OnFailure
// once. Nothing is retried, because after a failed sync the page cache is not the disk. The owner
// starts again.
//
// # Groups
//
// Append copies a record to the end of the open group, which is a block in the making. The
// committer completes the oldest group in place and writes it. Meanwhile a new one is open, so a
// slow disk makes large groups and a fast one small ones. Where a write is quick, the caller of
// Flush may wait for it, as an event loop does. A group ends at Config.MaxBlockBytes. A
// longer record has its own block. What is appended between Begin and End shares a group. Groups
// are reused: in steady state nothing is allocated.
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
// Kind 0 holds records of the caller. Kind 1 is a claim, the first block of an epoch, which holds
// one empty record. The epoch of a claim is higher than any before; other blocks repeat the one
// before them. The first block of a log is a claim at index 1 with previous chain 0. Log time never
// falls.
//
// The chain value of a block is a 64-bit mix of its previous chain, first index, epoch, time,
// checksum and body bytes. It stands for the whole log up to there: a block that was swapped,
// repeated, or left from an earlier life does not follow. It detects mistakes and rot, not forgery.
//
// # Snapshots
//
// A snapshot is a list of chunks and a meta. A chunk holds up to 262140 bytes of the snapshot and
// then the CRC32C of {snapshot u64, number of the chunk u32, those bytes}. The meta of version 1:
//
//	 0      1      2             4             8                          16
//	+------+------+-------------+-------------+---------------------------+
//	| vers | mode |      0      |  partition  |    number of snapshot     |
//	+------+------+-------------+-------------+---------------------------+ 16
//	|                  epoch                  |           index           |
//	+-----------------------------------------+---------------------------+ 32
//	|                 through                 |  log time, ns since 1970  |
//	+-----------------------------------------+---------------------------+ 48
//	|             bytes of all chunks         |    chunks   |    CRC32C   |
//	+-----------------------------------------+-------------+-------------+ 64
//
// Bytes counts without checksums. Replay goes on after index. Through is what the log had to reach
// before the snapshot counted: shards are copied one after the other, so a snapshot holds effects
// of records after index. Two snapshots are kept, and the log from the index of the older one on.
//
// # Damage
//
//	last block in part, store implements Tearing   cut: it was never acknowledged
//	anything else that does not decode or follow   *DamageError with the first index that is lost
//	a meta that does not decode, or a file of a    a warning: the one before is used, or the log
//	snapshot that is missing                       from its beginning on, or else *DamageError
//	a snapshot that does not decode                *DamageError, or with RecoverTo the one before
//	a snapshot beyond the end of the log           *DamageError: the log lost its end
//
// Nothing is repaired without Config.RecoverTo. What is refused is not changed.
package journal
