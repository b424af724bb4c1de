package journal

// Index numbers records from 1, without gaps. 0 means before the first.
type Index = uint64

// Limits that every Store must hold, beside whatever it can take.
const (
	// MaxRecordBytes bounds one record. A longer one stops the journal: callers bound what they
	// record.
	MaxRecordBytes = 32 << 20
	// MaxStoredBlock bounds one block: a record that is too long for a common block has its own.
	MaxStoredBlock = MaxRecordBytes + 64
	// MaxOverlap is how many requests may begin (Log.Begin) while a block waits for the open ones.
	MaxOverlap = 16
	// MaxChunkBytes bounds one chunk of a snapshot.
	MaxChunkBytes = 256 << 10
	// MaxMetaBytes bounds the meta of a snapshot.
	MaxMetaBytes = 4 << 10
)

// Store keeps blocks in order of their index, and snapshots. It does not know what is in them.
//
// A Log is the only user of its store. It calls WriteBlock from one goroutine, and beside it
// DropBlocks and the methods of Snapshots from at most one other. CutBlocks and Sync run alone.
// Blocks and ReadSnapshot may run beside WriteBlock. The first change runs alone, after all that a
// start reads: a store changes its place no sooner, so that a refused one stays as it was. Close is
// the last call. A store refuses a place that another process has open (ErrLocked), and one that
// was made in another mode (ErrModeMismatch).
//
// An atomic store never shows a part of a block: after a crash a block is there as it was written,
// with all blocks before it, or it is not there. A store that cannot promise this for the last
// block implements Tearing.
type Store interface {
	Blocks
	Snapshots

	// Sync makes durable everything that was done before, in every mode.
	Sync() error
	// Close releases the store. In every mode it syncs first what was written. A second call does
	// nothing.
	Close() error
}

// Blocks keeps the blocks.
type Blocks interface {
	// WriteBlock appends a block whose first record has index first; block is lent until it
	// returns. It returns when the block is as durable as the mode of the store demands (Always:
	// synced; Interval: handed to the operating system). It is called once for each block, one at a
	// time, with rising first. Any error is final: the journal stops.
	WriteBlock(first Index, block []byte) error

	// Blocks calls f with every block from the one that holds index from on, in order (or, where
	// none holds it, the first after it); block is lent until f returns. The block that holds from
	// is the last one whose first is <= from. It stops at the first error of f and returns it as it
	// is. Damage that the store finds is a *DamageError.
	Blocks(from Index, f func(first Index, block []byte) error) error

	// DropBlocks forgets the blocks all of whose records are below upTo: those with a block after
	// them whose first is <= upTo. The last block is never dropped. It need not be synced: a crash
	// may restore some, as long as there is no gap.
	DropBlocks(upTo Index) error

	// CutBlocks forgets, durably in every mode, the blocks whose first is from or above. It removes
	// a torn last block, and what RecoverTo drops.
	CutBlocks(from Index) error
}

// Tearing is implemented by a store whose last block may be there in part after a crash, as in a
// plain file. Then a last block that does not decode is a write that was never acknowledged, and is
// cut. Without it, such a block is damage, and refused.
type Tearing interface {
	// MayTear reports whether a crash may leave a part of the last block.
	MayTear() bool
}

// Scrubber is implemented by a store whose files keep for a while what was dropped.
type Scrubber interface {
	// Scrub removes that from the files. It may take long; WriteBlock may run meanwhile.
	Scrub() error
}

// Shared is implemented by a store whose log has other owners before this one. They write to it
// while the first Replay goes on, which so follows them until it is this Log's turn. One with
// Config.RecoverTo takes the log over at once.
type Shared interface {
	// Follow is Blocks, but at the last block it waits for the next one. It returns nil when this
	// process is to claim the log: then f has seen every block that there was at that time. The
	// claim fails where another process has written since, as every WriteBlock does that is not at
	// the end of the log.
	Follow(from Index, f func(first Index, block []byte) error) error
}

// Snapshots keeps snapshots, each a list of chunks under a number.
type Snapshots interface {
	// BeginSnapshot starts snapshot g and discards an unfinished one of that number. A number that
	// is complete is an error.
	BeginSnapshot(g uint64) (SnapshotWriter, error)
	// ListSnapshots returns the complete ones, oldest first, and none that was never committed.
	ListSnapshots() ([]Snapshot, error)
	// ReadSnapshot calls f with the chunks of snapshot g in the order written; chunk is lent until
	// f returns. It reads from where a restart reads, not from a copy in the memory of the writer.
	// It stops at the first error of f and returns it as it is. A snapshot that is not there is an
	// error.
	ReadSnapshot(g uint64, f func(chunk []byte) error) error
	// DropSnapshot forgets snapshot g, complete or not. A missing one is no error. It need not be
	// synced.
	DropSnapshot(g uint64) error
}

// Snapshot is a complete snapshot in a store.
type Snapshot struct {
	// Number is what BeginSnapshot was given.
	Number uint64
	// Meta is what Commit was given. The caller may keep it. It may be missing where Err is set.
	Meta []byte
	// Err is a *DamageError where the store found, without reading the chunks, that the snapshot is
	// lost. It stays until the first change, with which the store may forget the snapshot. Then
	// DropSnapshot is no error.
	Err error
}

// SnapshotWriter takes the chunks of one snapshot.
type SnapshotWriter interface {
	// Write adds a chunk of 1 to MaxChunkBytes bytes, lent until it returns.
	Write(chunk []byte) error
	// Commit makes the snapshot complete, at once and as a whole, with at most MaxMetaBytes of
	// meta. When it returns, the snapshot and every block written before it are synced, in every
	// mode. After ErrNotCommitted the store works on, and Abort follows. Any other error is final.
	Commit(meta []byte) error
	// Abort discards the snapshot. After Commit it does nothing.
	Abort() error
}
