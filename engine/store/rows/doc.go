// Package rows keeps ordered rows in a directory, so that memory does not grow with history. It is
// pebble without a log: the truth is the journal, and a start replays the journal from its last
// snapshot, so that rows which were not flushed are put again.
//
//	Open             reads; it changes nothing but LOCK
//	Identity         what these rows are, for the caller to compare with the journal's snapshot
//	Through          how far they are on the disk, likewise
//	Batch.Commit     puts rows; readers see them at once
//	Get, Scan        reads
//	Flush            has everything committed on the disk, and with it a mark
//
// # What a crash leaves
//
// Everything committed before the last Flush that returned nil, and its mark. Of later batches a
// prefix in the order of the commits, as many as pebble had flushed by itself: whole batches, or
// none. So a replay meets rows that it puts again, and putting must not depend on what is there.
//
// Rows must not be ahead of the journal: a row of a record that a power loss took would be a change
// that never was. So a change is appended to the journal before its rows are committed, and every
// file of new rows waits for Config.Barrier first.
//
// # With a journal
//
// A snapshot counts only if the rows of what it leaves out of the log are on the disk. The caller
// takes the snapshot's index, calls Flush with it, and writes Identity and the index into the
// snapshot. At a start the rows fit if the identity is the same and Through is no less than the
// index in the snapshot, and no more than the journal's last. If not, the caller refuses with a
// *journal.DamageError: Check returns it. Nothing has changed then. The first Commit or Flush opens
// the directory for writing; until that returns, no read may run beside it.
//
// # Directory
//
// Beside pebble's own files:
//
//	LOCK  keeps a second opener out
//	ROWS  made first, never changed: version of the layout, format of pebble, identity
//
// Keys are those of the caller, none empty and none with a first byte 0. Below 0 is one row of our
// own, written by Flush: {0} -> identity:16 through:8, big endian.
//
// # Failing
//
// Damage in a read is a *journal.DamageError with the file. Damage that a merge of files meets, and
// a file of rows that cannot be written, make Full true; the second passes. While files cannot be
// written, Commit takes rows until memory is full, then waits for Config.StallTimeout at most.
// After that, and after an error of the manifest or of the directory, nothing is known of the disk:
// Config.OnFatal is called once, and nothing is put any more.
package rows
