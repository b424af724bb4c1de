package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// snapshots is what is known of the snapshots in the store.
type snapshots struct {
	kept     []meta   // good ones, oldest first
	rejected []uint64 // given up
	number   uint64   // the highest that was seen
	epoch    uint64   // the highest that was seen
}

func (a *snapshots) newest() *meta { return &a.kept[len(a.kept)-1] }

// listSnapshots reads the metas and checks that the log reaches what they hold.
func (l *Log) listSnapshots() error {
	list, err := l.store.ListSnapshots()
	if err != nil {
		return fmt.Errorf("cannot list snapshots: %w", err)
	}
	var lost error // the first damage that a start passes over
	for _, g := range list {
		l.snapshots.number = max(l.snapshots.number, g.Number)
		m, err := l.checkMeta(g)
		if damage := (*DamageError)(nil); err != nil && (l.cfg.RecoverTo == 0 || !errors.As(err, &damage)) {
			return err
		}
		if err == nil {
			err = g.unusable()
			lost = cmp.Or(lost, err)
		}
		if err == nil {
			l.snapshots.kept = append(l.snapshots.kept, m)
			continue
		}
		l.reject(g.Number, err)
	}
	if lost != nil && len(l.snapshots.kept) == 0 && !l.begins() {
		return lost
	}
	return nil
}

// begins reports whether the log holds all from the first index on, according to its first block.
func (l *Log) begins() bool {
	begins := false
	err := l.firstBlock(0, func(first Index, _ []byte) error {
		begins = first == 1
		return nil
	})
	return err == nil && begins
}

// checkMeta checks a snapshot against the journal. Damage of the snapshot itself is for unusable.
func (l *Log) checkMeta(g Snapshot) (meta, error) {
	m, err := decodeMeta(g.Meta)
	switch {
	case errors.Is(err, errMetaVersion):
		return m, &DamageError{Where: snapshotPlace(g.Number), Err: err}
	case err != nil:
		return m, nil
	case m.number != g.Number:
		return m, &DamageError{Where: snapshotPlace(g.Number), Index: m.index, Err: fmt.Errorf("it says that it is generation %d", m.number)}
	case m.partition != l.cfg.Partition:
		return m, fmt.Errorf("cannot open journal as partition %d: its snapshot is of partition %d", l.cfg.Partition, m.partition)
	case m.mode != l.cfg.Mode:
		return m, &ErrModeMismatch{Made: m.mode, Asked: l.cfg.Mode}
	}
	l.snapshots.epoch = max(l.snapshots.epoch, m.epoch)
	if m.through > l.tail.last {
		return m, &DamageError{Where: snapshotPlace(g.Number), Index: l.tail.last + 1, Err: fmt.Errorf("it holds records up to %d, which the log does not", m.through)}
	}
	return m, nil
}

func (l *Log) reject(number uint64, why error) {
	l.snapshots.rejected = append(l.snapshots.rejected, number)
	l.cfg.Logger.Warn("journal gives up a snapshot: it goes on from the one before it, or from the whole log", "generation", number, "err", why)
}

// LoadSnapshot calls f with the newest snapshot and its size in bytes, and returns its index, after
// which Replay goes on. Without a snapshot it returns 0 and does not call f. What r gives was
// verified. r ends with io.EOF only where the snapshot does. Where it is damaged, r ends with a
// *DamageError, and LoadSnapshot returns that whatever f returned; then the state that f built is
// of no use.
//
// With RecoverTo, snapshots are verified before f sees them, and damaged ones are ignored.
func (l *Log) LoadSnapshot(f func(r io.Reader, index Index, size uint64) error) (Index, error) {
	defer l.maintain()()
	if err := l.Err(); err != nil {
		return 0, err
	}
	if err := l.passOverDamaged(); err != nil {
		return 0, err
	}
	if len(l.snapshots.kept) == 0 {
		return 0, nil
	}
	m := *l.snapshots.newest()
	r := newChunkReader(l.store, m)
	defer r.stop()
	err := f(r, m.index, m.size)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if r.err != nil && r.err != io.EOF {
		err = r.err
	}
	return m.index, err
}

// passOverDamaged rejects damaged snapshots from the newest on, if RecoverTo was asked.
func (l *Log) passOverDamaged() error {
	a := &l.snapshots
	if l.cfg.RecoverTo == 0 {
		return nil
	}
	for len(a.kept) > 0 {
		m := *a.newest()
		err := l.verify(m)
		if damage := (*DamageError)(nil); !errors.As(err, &damage) {
			return err
		}
		l.reject(m.number, err)
		a.kept = slices.Delete(a.kept, len(a.kept)-1, len(a.kept))
	}
	return nil
}

// chunkReader is a snapshot as an io.Reader. It gives out only what was verified.
type chunkReader struct {
	v    verifier
	next func() ([]byte, error, bool)
	stop func()
	rest []byte // of the chunk that the store lends until next
	err  error
}

func newChunkReader(s Store, m meta) *chunkReader {
	r := &chunkReader{v: verifier{meta: m}}
	r.next, r.stop = iter.Pull2(func(yield func([]byte, error) bool) {
		err := s.ReadSnapshot(m.number, func(chunk []byte) error {
			if !yield(chunk, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop {
			yield(nil, err)
		}
	})
	return r
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		r.rest, r.err = r.fetch()
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *chunkReader) fetch() ([]byte, error) {
	chunk, err, ok := r.next()
	switch {
	case !ok:
		if err := r.v.end(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", snapshotPlace(r.v.number), err)
	}
	return r.v.payload(chunk)
}
