// Package embedded keeps a journal in one directory of this machine: it is the journal.Store on pebble.
//
// The directory is one pebble database with one write-ahead log, so that everything written has one order and one sync covers
// all of it. Beside pebble's own files (of which LOCK keeps a second opener out) it holds ours:
//
//	JOURNAL   made first, never changed: names the version of this layout, the mode and the format of pebble
//	MARK      rewritten in place: the last block that is known to be on the disk, and whether the store was closed
//	SYNCED    the same again: where one of the two is lost, the other guards the log; where both are, the directory is refused
//	incoming/ sorted files of a snapshot that is being written; what a crash leaves there is removed at the next opening
//	damaged/  log files that an operator gave up with AcceptLoss, as they were
//
// Keys, all numbers big endian, so that pebble's order is ours:
//
//	'b' partition:4 first:8            -> block             one key per block
//	'c' partition:4 snapshot:8 seq:4 -> chunk             the chunks of a snapshot, seq from 0
//	                                   -> chunks:4 meta     its meta, seq 0xffffffff: in the last of its files
//	'm' partition:4 snapshot:8       -> chunks:4 meta     where earlier versions had the metas; the first change moves them
//
// MARK and SYNCED, little endian:
//
//	"TLMK" version:1 closed:1 zero:2 first:8 crc32c:4       first: of the last block known to be synced, 0 for none
//
// # Two modes, two formats
//
// Always: every block is synced before WriteBlock returns. The format of pebble records in the log how far the log was synced; a
// bad byte below that point is damage, and refused, a bad byte above it is a torn tail, and cut.
//
// Interval: every block is handed to the operating system before WriteBlock returns, and synced once per SyncEvery. Where a sync takes
// long, WriteBlock waits: what was acknowledged and is not synced is never older than maxUnsynced at an acknowledgement. Pebble has
// no such mode: its unsynced commit returns before write(2), so that the death of the process would lose what was acknowledged.
// So commits ask for a sync here too, over a file system whose log files postpone it (logFS). The format is one that does not
// record syncs, because it would record one that has not happened. That is why a directory of one mode never opens in the other.
//
// What pebble cannot see - the log cut at a chunk's edge or gone as a whole, damage in the middle of an interval log - the mark
// does: it is written after a sync, so it is never ahead of the disk, and a directory that holds less than its mark is damaged.
//
// # Opening
//
// Open reads: the stamp, the mark, and pebble's files with a database that is for reading only, over a file system that refuses every
// change. The replay reads from that one too. The first change, which is what a replay that succeeded ends with, closes it and opens
// the directory for writing. So whoever refuses the directory, and for whatever is in it, leaves it as it was. Nothing is read twice
// but the log that was not sorted yet: pebble has it in memory after the first time, and cannot write from there.
//
// # Snapshots
//
// The chunks of a snapshot do not go through the log: each sync of a block would wait for those that stand before it, and they
// would be written a second time when the memory is sorted. They go into sorted files in incoming/, synced while they grow and no
// faster than Config.SnapshotRate. Commit puts the meta behind them and has pebble take over all files in one change of its manifest.
//
// No sorted file holds parts of two snapshots, so that damage of one leaves the others. The list of snapshots is made from the
// manifest's list of files and the meta of each: one whose meta cannot be read, or of which a file is missing or cut, is listed with
// that as its error. The first change then takes it out of the database, in an opening of its own: no merge meets it later.
//
// # Failing
//
// During an opening, whatever the system refuses to read or to write ends it, with the system's answer: nothing is tried again and
// OnFatal is not called. Damage is what was read and is wrong, or is missing, and nothing else.
//
// Later, an error of the log, of its directory, or of the manifest is final: Config.OnFatal is called (the process ends there), and
// nothing is acknowledged afterwards. Pebble would panic on some of these; logFS keeps the error from it, and lets the log fail.
// An error of a flush or of a compaction, and little free space, are not final: Full reports true until there is space again. A
// snapshot that finds no room fails alone.
package embedded
