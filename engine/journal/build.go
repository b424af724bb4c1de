package journal

import (
	"errors"
	"fmt"
	"io"
)

// Entry is one index of a log.
type Entry struct {
	Index Index
	// Epoch is that of its owner.
	Epoch uint64
	// Time is the log time in nanoseconds since 1970.
	Time int64
	// Claim marks the first index of an epoch, which holds no record.
	Claim bool
	// Record is lent until Add returns.
	Record []byte
}

// Builder writes a log into an empty store, with the indexes, epochs and times that its caller
// gives. It serves tools that carry a log from one store to another. It is for one goroutine. A
// server has no part of it: what a Builder writes has no owner until a Log claims it.
type Builder struct {
	store     Store
	partition uint32
	mode      Mode

	last    Entry // without its record
	chain   uint64
	through Index // that of the snapshot
	base    Index // the index of the snapshot, 0 without one
	open    header
	buf     []byte
}

// NewBuilder returns one for an empty store of this partition and mode.
func NewBuilder(store Store, partition uint32, mode Mode) *Builder {
	return &Builder{store: store, partition: partition, mode: mode}
}

// Snapshot writes what write writes as the one snapshot of the store. It comes before the first
// entry; of s only Index, Through, Epoch and Time count.
func (b *Builder) Snapshot(s SnapshotInfo, write func(w io.Writer) error) error {
	switch {
	case b.last.Index != 0 || b.base != 0:
		return errors.New("cannot build snapshot: it is not the first thing in the log")
	case s.Index == 0 || s.Through < s.Index || s.Epoch == 0:
		return fmt.Errorf("cannot build snapshot: index %d, through %d and epoch %d do not fit", s.Index, s.Through, s.Epoch)
	}
	m := meta{mode: b.mode, partition: b.partition, number: 1, epoch: s.Epoch, index: s.Index, through: s.Through, time: s.Time}
	to, err := b.store.BeginSnapshot(m.number)
	if err != nil {
		return err
	}
	w := &chunkWriter{to: to, meta: &m, buf: make([]byte, 0, MaxChunkBytes)}
	if err = write(w); err == nil {
		err = w.flush()
	}
	if err == nil {
		err = to.Commit(m.encode())
	}
	if err != nil {
		return errors.Join(err, to.Abort())
	}
	b.base, b.through = s.Index, s.Through
	return nil
}

// Add appends an entry. It returns an error that wraps errEntry for one that cannot follow what is
// there, and the error of the store.
func (b *Builder) Add(e *Entry) error {
	if err := b.follows(e); err != nil {
		return fmt.Errorf("%w %d: %w", errEntry, e.Index, err)
	}
	if b.open.count > 0 && !b.joins(e) {
		if err := b.seal(); err != nil {
			return err
		}
	}
	if b.open.count == 0 {
		k := kindRecords
		if e.Claim {
			k = kindClaim
		}
		b.open = header{kind: k, mode: b.mode, partition: b.partition, epoch: e.Epoch, first: e.Index, time: e.Time, prev: b.chain}
		b.buf = append(b.buf[:0], make([]byte, headerBytes)...)
	}
	b.buf = appendRecord(b.buf, e.Record)
	b.open.count++
	b.last = *e
	b.last.Record = nil
	return nil
}

var errEntry = errors.New("cannot append index")

// follows checks an entry against the one before it, as a replay will.
func (b *Builder) follows(e *Entry) error {
	last := &b.last
	switch {
	case e.Index == 0 || e.Epoch == 0:
		return fmt.Errorf("index and epoch start at 1, and the epoch is %d", e.Epoch)
	case len(e.Record) > MaxRecordBytes:
		return fmt.Errorf("a record of %d bytes, at most %d", len(e.Record), MaxRecordBytes)
	case e.Claim && len(e.Record) > 0:
		return errors.New("a claim holds no record")
	case !e.Claim && len(e.Record) == 0:
		return errors.New("the record is empty")
	case last.Index == 0:
		return b.begins(e)
	case e.Index != last.Index+1:
		return fmt.Errorf("%d is next", last.Index+1)
	case e.Claim && e.Epoch <= last.Epoch, !e.Claim && e.Epoch != last.Epoch:
		return fmt.Errorf("its epoch %d cannot come after %d", e.Epoch, last.Epoch)
	case e.Time < last.Time:
		return errors.New("its time is before that of the index before it")
	}
	return nil
}

// begins checks the first entry.
func (b *Builder) begins(e *Entry) error {
	switch {
	case e.Index == 1 && !e.Claim:
		return errors.New("the first index of a log is a claim")
	case e.Index > b.base+1:
		return fmt.Errorf("the log begins there, and what is before it is in no snapshot that came before it")
	}
	return nil
}

// joins reports whether an entry goes into the open block.
func (b *Builder) joins(e *Entry) bool {
	h := &b.open
	return !e.Claim && h.kind == kindRecords && h.epoch == e.Epoch && h.time == e.Time && len(b.buf)+recordBytes(len(e.Record)) <= defaultBlockBytes
}

func (b *Builder) seal() error {
	block, chain := seal(b.buf, &b.open)
	if err := b.store.WriteBlock(b.open.first, block); err != nil {
		return err
	}
	b.buf, b.chain, b.open = block, chain, header{}
	return nil
}

// Close writes what waits. It returns the last index, and an error where the log is empty or ends
// before what the snapshot holds. The caller closes the store.
func (b *Builder) Close() (Index, error) {
	if b.open.count > 0 {
		if err := b.seal(); err != nil {
			return b.last.Index, err
		}
	}
	switch {
	case b.last.Index == 0:
		return 0, errors.New("cannot build log: it holds nothing")
	case b.last.Index < b.through:
		return b.last.Index, fmt.Errorf("cannot build log: it ends at index %d, and the snapshot needs it up to %d", b.last.Index, b.through)
	}
	return b.last.Index, nil
}
