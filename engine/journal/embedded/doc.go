// Package embedded keeps a journal in one directory of this machine: it is the journal.Store on
// pebble.
//
// The directory is one pebble database with one write-ahead log, so everything written has one
// order and one sync covers all of it. Beside pebble's own files (LOCK keeps a second opener out)
// it holds:
//
//	JOURNAL   made first, never changed: version of the layout, mode, format of pebble
//	MARK      rewritten in place: the last block known to be synced, whether the store was closed
//	SYNCED    the same again: one of the two guards the log; without both the directory is refused
//	incoming/ SSTables of a snapshot that is being written; the next opening removes them
//	damaged/  log files that an operator dropped with AcceptLoss, as they were
//	rows/     not ours: what the owner derives from the journal; a copy takes it along
//
// Keys, all numbers big endian, so that pebble's order is ours:
//
//	'b' partition:4 first:8          -> block          one key per block
//	'c' partition:4 snapshot:8 seq:4 -> chunk          the chunks of a snapshot, seq from 0
//	                                 -> chunks:4 meta  its meta, seq 0xffffffff, in the last file
//	'm' partition:4 snapshot:8       -> chunks:4 meta  metas of earlier versions; the first change
//	                                                   moves them
//
// MARK and SYNCED, little endian:
//
//	"TLMK" version:1 closed:1 zero:2 first:8 crc32c:4  first: of the last synced block, or 0
//
// # Two modes, two formats
//
// Always: every block is synced before WriteBlock returns. Pebble's format of the log notes in the
// log itself how far it was synced. A bad byte below that point is damage, and refused. A bad byte
// above it is a torn tail, and cut.
//
// Interval: every block is handed to the operating system before WriteBlock returns, and synced
// once per SyncEvery. WriteBlock waits for a long sync: an acknowledged block that is not synced is
// never older than maxUnsynced at an acknowledgement. Pebble has no such mode: its unsynced commit
// returns before write(2), so the death of the process would lose acknowledged blocks. So commits
// ask for a sync here too, over a file system whose log files postpone it (logFS). The format does
// not record syncs, because it would record one that has not happened. So a directory of one mode
// never opens in the other.
//
// The mark detects what pebble cannot: a log cut at the edge of a chunk, a missing log, damage in
// the middle of an interval log. It is written after a sync, so it is never ahead of the disk, and
// a directory that holds less than its mark is damaged.
//
// # Opening
//
// Open reads the stamp, the mark, and pebble's files with a read-only database, over a file system
// that refuses every change. The replay reads from it too. The first change, after a replay that
// succeeded, closes it and opens the directory for writing. So a refused directory stays as it was.
// Only the log that was not sorted yet is read twice.
//
// # Snapshots
//
// The chunks of a snapshot do not go through the log: the sync of a block would wait for those
// before it, and they would be written twice. They go into SSTables in incoming/, synced while
// they grow and no faster than Config.SnapshotRate. Commit puts the meta behind them and has pebble
// take over all files in one change of its manifest.
//
// No SSTable holds parts of two snapshots, so damage of one leaves the others. The list of
// snapshots comes from the manifest's list of files and the meta of each. A snapshot with an
// unreadable meta, or a missing or cut file, is listed with that error. The first change takes it
// out of the database, in an opening of its own, so that no merge meets it.
//
// # Failing
//
// During an opening, whatever the system refuses ends it with the system's error: nothing is
// retried and OnFatal is not called. Damage is only what was read and is wrong, or is missing.
//
// Later, an error of the log, its directory or the manifest is final: Config.OnFatal is called, and
// nothing is acknowledged afterwards. Pebble would panic on some of these. So logFS keeps the error
// from it, and fails the log. An error of a flush or a compaction, and little free space, are not
// final: Full reports true until there is space again. A snapshot without room fails alone.
package embedded
