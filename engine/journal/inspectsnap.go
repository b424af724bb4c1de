package journal

import (
	"errors"
	"fmt"
	"io"
)

// SnapshotInfo is a snapshot as its meta tells it.
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
	// Err says that the meta cannot be used, or that a part of the snapshot is lost; nil for neither. Then only Number counts for sure.
	Err error
	// Passed is set where a start passes over the snapshot for Err, and goes on from the one before it, or from the whole log.
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

// ReadSnapshot calls f with a snapshot, which it verifies as LoadSnapshot would; r is valid until f returns. It reads what f leaves
// too. A snapshot that is not as it was written is a *DamageError.
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
