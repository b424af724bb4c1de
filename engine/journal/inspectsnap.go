package journal

import (
	"errors"
	"fmt"
	"io"
)

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
