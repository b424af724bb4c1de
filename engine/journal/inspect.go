package journal

import (
	"errors"
	"fmt"
	"io"
)

// Inspector reads and verifies a store without owning it: it writes no claim, cuts nothing and
// stops at no damage. It is for tools, while no Log has the store.
type Inspector struct {
	log Log // of which only the store and the configuration are used
}

// NewInspector returns one for a store that holds this partition and was made in this mode.
func NewInspector(store Store, partition uint32, mode Mode) *Inspector {
	return &Inspector{log: Log{store: store, cfg: Config{Partition: partition, Mode: mode}}}
}

// BlockView is a block that was verified. It is lent until the function it was given to returns.
type BlockView struct {
	// First and Last are the indexes of its records.
	First, Last Index
	// Epoch is that of the owner who wrote it.
	Epoch uint64
	// Time is the log time in nanoseconds since 1970.
	Time int64
	// Claim is set on the first block of an epoch, which takes one index and holds nothing.
	Claim bool
	// Bytes is the length of the whole block.
	Bytes int
	// Hash stands for the log up to the end of the block: two logs that hold the same blocks have
	// the same.
	Hash uint64

	b block
}

// Records calls f with the records after an index, in order; rec is lent until f returns. It stops
// at the first error of f and returns it. It does not allocate. A claim has none.
func (v *BlockView) Records(after Index, f func(i Index, rec []byte) error) error {
	if v.Claim {
		return nil
	}
	return v.b.each(after, f)
}

// Damage is a stretch of a log that cannot be had.
type Damage struct {
	// Where and Index are as in DamageError; Index is the first index that is lost.
	DamageError
	// Until is the first index behind it that can be read again; 0 where there is none or it is not
	// known. It is Index where nothing is missing but two blocks do not follow from each other.
	Until Index
}

// LastIndex returns the index of the last record by the last block, verified or not; 0 for an empty
// log.
func (in *Inspector) LastIndex() (Index, error) {
	last := Index(0)
	err := in.log.firstBlock(lastBlock, func(first Index, b []byte) error {
		last = LastOf(first, b)
		return nil
	})
	return last, err
}

// Blocks calls each with every good block from the one that holds index from on, in order, and
// damaged with every stretch that is not good, once its end is known. It stops at the first error
// and returns it. A good block passes the checks of Log.Replay: its own checksum, and index, chain,
// epoch and time after the block before. The first block, and the first behind a damage, need only
// their checksum.
func (in *Inspector) Blocks(from Index, each func(*BlockView) error, damaged func(Damage) error) error {
	w := inspection{in: in, each: each, damaged: damaged, walk: walk{log: &in.log}}
	var failed error
	err := in.log.store.Blocks(from, func(first Index, b []byte) error {
		failed = w.next(first, b)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		if err = w.unreadable(err); err != nil {
			return err
		}
	}
	return w.settle(0)
}

// inspection is a walk that goes on behind damage.
type inspection struct {
	walk
	in      *Inspector
	each    func(*BlockView) error
	damaged func(Damage) error
	open    *Damage // of which the end is not known yet
	shown   BlockView
}

func (w *inspection) next(first Index, b []byte) error {
	if w.known && first > w.want {
		w.lose(place(w.want), w.want, errors.New("it is missing"))
	}
	d, err := w.log.decode(first, b)
	if err != nil {
		w.lose(place(first), first, reason(err))
		return nil
	}
	if err := w.follows(&d); err != nil {
		w.lose(place(first), first, err)
	}
	if err := w.settle(d.first); err != nil {
		return err
	}
	w.take(&d, len(b))
	return w.each(&w.shown)
}

// take goes on behind a good block of some bytes.
func (w *inspection) take(d *block, bytes int) {
	w.prev, w.chain, w.known, w.want = d.header, d.chain, true, d.last()+1
	w.shown = BlockView{First: d.first, Last: d.last(), Epoch: d.epoch, Time: d.time, Claim: d.kind == kindClaim, Bytes: bytes, Hash: d.chain, b: *d}
}

// lose begins a damage, unless one is open: what follows then belongs to it.
func (w *inspection) lose(where string, first Index, why error) {
	if w.known {
		first = w.want
	}
	if w.open == nil {
		w.open = &Damage{DamageError: DamageError{Where: where, Index: first, Err: why}}
	}
	w.known, w.want, w.prev, w.chain = false, 0, header{}, 0
}

// settle ends the open damage, if there is one, before a good block.
func (w *inspection) settle(until Index) error {
	d := w.open
	if d == nil {
		return nil
	}
	w.open = nil
	if until != 0 {
		d.Until = max(until, d.Index)
	}
	return w.damaged(*d)
}

// unreadable takes an error of the store: it is damage, or ends the inspection.
func (w *inspection) unreadable(err error) error {
	var damage *DamageError
	if !errors.As(err, &damage) {
		return fmt.Errorf("cannot read journal from index %d: %w", w.want, err)
	}
	w.lose(damage.Where, max(damage.Index, 1), damage.Err)
	return nil
}

// reason takes the words of a DamageError apart from its place.
func reason(err error) error {
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		return damage.Err
	}
	return err
}

// Chain verifies blocks that come one after the other, as Replay does, without a store: a node
// checks with it what it keeps. It is for one goroutine.
type Chain struct{ inspection }

// NewChain returns one for the blocks of a partition and mode, from the one that holds an index on.
// 0 is the beginning of the log.
func NewChain(partition uint32, mode Mode, from Index) *Chain {
	c := &Chain{}
	c.walk.log = &Log{cfg: Config{Partition: partition, Mode: mode}}
	c.want = max(from, 1)
	return c
}

// Next verifies the block that a store has at index first. The view is lent until the next call,
// and as long as b is. The first block must hold the index that the Chain begins at, and needs only
// its checksum, unless it is the first of the log. What does not follow is a *DamageError.
func (c *Chain) Next(first Index, b []byte) (*BlockView, error) {
	if first > c.want {
		return nil, hole(c.want)
	}
	d, err := c.log.decode(first, b)
	if err == nil {
		if err = c.follows(&d); err != nil {
			err = &DamageError{Where: place(first), Index: c.want, Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	c.take(&d, len(b))
	return &c.shown, nil
}

// SnapshotInfo is the meta of a snapshot.
type SnapshotInfo struct {
	// Number counts the snapshots of a store.
	Number uint64
	// Index is where a replay after it goes on; Through is what the log must reach for it to count.
	Index, Through Index
	// Epoch is that of the owner who wrote it.
	Epoch uint64
	// Time is the log time in nanoseconds since 1970.
	Time int64
	// Bytes is the size of the snapshot, in Chunks chunks.
	Bytes  uint64
	Chunks uint32
	// Err is set when the meta cannot be used or a part of the snapshot is lost. Then only Number
	// is certain.
	Err error
	// Passed means that a start ignores the snapshot for Err, and uses the one before it or the
	// whole log.
	Passed bool

	m meta
}

// Snapshots lists the snapshots in the store, oldest first. It reads and checks their metas only.
func (in *Inspector) Snapshots() ([]SnapshotInfo, error) {
	list, err := in.log.store.ListSnapshots()
	if err != nil {
		return nil, fmt.Errorf("cannot list snapshots: %w", err)
	}
	infos := make([]SnapshotInfo, 0, len(list))
	for _, g := range list {
		m, passed, err := in.meta(g)
		infos = append(infos, SnapshotInfo{Number: g.Number, Index: m.index, Through: m.through, Epoch: m.epoch, Time: m.time,
			Bytes: m.size, Chunks: m.chunks, Err: err, Passed: passed, m: m})
	}
	return infos, nil
}

func (in *Inspector) meta(g Snapshot) (m meta, passed bool, err error) {
	damage := g.unusable()
	m, err = decodeMeta(g.Meta)
	switch {
	case errors.Is(err, errMetaVersion):
	case err != nil:
		return m, true, damage
	case m.number != g.Number:
		err = fmt.Errorf("it says that it is generation %d", m.number)
	case m.partition != in.log.cfg.Partition:
		err = fmt.Errorf("it is of partition %d", m.partition)
	case m.mode != in.log.cfg.Mode:
		err = &ErrModeMismatch{Made: m.mode, Asked: in.log.cfg.Mode}
	default:
		return m, damage != nil, damage
	}
	return m, false, &DamageError{Where: snapshotPlace(g.Number), Index: m.index, Err: err}
}

// ReadSnapshot calls f with a snapshot and verifies it as LoadSnapshot does; r is valid until f
// returns. It also reads what f leaves. A snapshot that is not as written is a *DamageError.
func (in *Inspector) ReadSnapshot(s *SnapshotInfo, f func(r io.Reader) error) error {
	if s.Err != nil {
		return s.Err
	}
	r := newChunkReader(in.log.store, s.m)
	defer r.stop()
	err := f(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if r.err != nil && r.err != io.EOF {
		err = r.err
	}
	return err
}
