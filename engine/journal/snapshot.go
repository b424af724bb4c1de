package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// keptSnapshots is how many snapshots stay: the newest, and one in case it cannot be read.
const keptSnapshots = 2

// WriteSnapshot stores what write writes as the newest snapshot: the effects of every record up to
// index, and possibly of later ones where replaying those once more does no harm (a shard that was
// copied later skips what it already has). Records may be appended meanwhile.
//
// The snapshot counts only when it is synced and every record that was appended while it was
// written is durable. Then it is read again and verified, older snapshots but one are dropped, and
// so is the log up to the index of that one. An error leaves the snapshots as they were. Only an
// error of the sync itself stops the journal.
func (l *Log) WriteSnapshot(index Index, write func(w io.Writer) error) error {
	defer l.maintain()()
	if err := l.mayWriteSnapshot(index); err != nil {
		return err
	}
	m, err := l.writeSnapshot(index, write)
	if err != nil {
		return fmt.Errorf("cannot write snapshot at index %d: %w", index, err)
	}
	if err := l.verify(m); err != nil {
		return errors.Join(fmt.Errorf("cannot use the snapshot just written at index %d: %w", index, err), l.store.DropSnapshot(m.number))
	}
	l.snapshots.kept = append(l.snapshots.kept, m)
	l.counters.snapshots.Add(1)
	l.counters.snapshotBytes.Add(m.size)
	return l.dropOld()
}

func (l *Log) mayWriteSnapshot(index Index) error {
	first, err := l.unclaimed()
	switch {
	case err != nil:
		return err
	case first:
		return ErrNotReplayed
	case index > l.Appended():
		return fmt.Errorf("cannot write snapshot at index %d: the log ends at %d", index, l.Appended())
	case len(l.snapshots.kept) > 0 && index < l.snapshots.newest().index:
		return fmt.Errorf("cannot write snapshot at index %d: there is one at %d", index, l.snapshots.newest().index)
	}
	return nil
}

// writeSnapshot writes and commits a snapshot under the next number.
func (l *Log) writeSnapshot(index Index, write func(w io.Writer) error) (meta, error) {
	m := meta{mode: l.cfg.Mode, partition: l.cfg.Partition, number: l.snapshots.number + 1, epoch: l.tail.epoch, index: index}
	gw, err := l.store.BeginSnapshot(m.number)
	if err != nil {
		return m, err
	}
	w := &chunkWriter{to: gw, meta: &m, buf: make([]byte, 0, MaxChunkBytes)}
	err = write(w)
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		m.through, m.time = l.Appended(), l.LogTime()
		err = l.Await(context.Background(), m.through)
	}
	if err != nil {
		return m, errors.Join(err, gw.Abort())
	}
	if err := gw.Commit(m.encode()); errors.Is(err, ErrNotCommitted) {
		return m, errors.Join(err, gw.Abort())
	} else if err != nil {
		err = fmt.Errorf("cannot commit snapshot generation %d: %w", m.number, err)
		l.mu.Lock()
		l.fail(err)
		l.mu.Unlock()
		return m, err
	}
	l.snapshots.number = m.number
	return m, nil
}

// verify reads a snapshot again as a restart would.
func (l *Log) verify(m meta) error {
	v := verifier{meta: m}
	err := l.store.ReadSnapshot(m.number, func(chunk []byte) error {
		_, err := v.payload(chunk)
		return err
	})
	if err != nil {
		return err
	}
	return v.end()
}

// dropOld keeps two snapshots and the log from the older one on.
func (l *Log) dropOld() error {
	a := &l.snapshots
	for len(a.kept) > keptSnapshots {
		if err := l.store.DropSnapshot(a.kept[0].number); err != nil {
			return fmt.Errorf("cannot drop snapshot generation %d: %w", a.kept[0].number, err)
		}
		a.kept = append(a.kept[:0], a.kept[1:]...)
	}
	if len(a.kept) < keptSnapshots {
		return nil
	}
	// The block that holds the index itself stays, so that RecoverTo can name it.
	if err := l.store.DropBlocks(a.kept[0].index); err != nil {
		return fmt.Errorf("cannot drop journal before index %d: %w", a.kept[0].index, err)
	}
	return nil
}

// chunkWriter cuts what is written into chunks with their sums.
type chunkWriter struct {
	to   SnapshotWriter
	meta *meta
	buf  []byte
}

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), maxPayload-len(w.buf))
		w.buf, p = append(w.buf, p[:k]...), p[k:]
		if len(w.buf) == maxPayload {
			if err := w.flush(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

func (w *chunkWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	m := w.meta
	sum := chunkSum(m.number, m.chunks, w.buf)
	m.size += uint64(len(w.buf))
	m.chunks++
	if m.chunks == 0 {
		return errors.New("cannot write chunk: there are too many")
	}
	err := w.to.Write(binary.LittleEndian.AppendUint32(w.buf, sum))
	w.buf = w.buf[:0]
	return err
}

// Checkpoint calls f when everything that was appended before the call is durable; upTo is the last
// index of it. While f runs, records are appended, but no snapshot is written and nothing of the
// log is dropped, so that what f copies belongs together. It waits for a running snapshot.
//
// It returns the error of f, of ctx before f was called, or why the journal takes no records.
func (l *Log) Checkpoint(ctx context.Context, f func(upTo Index) error) error {
	select {
	case l.upkeep <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.upkeep }()
	first, err := l.unclaimed()
	switch {
	case err != nil:
		return err
	case first:
		return ErrNotReplayed
	}
	upTo := l.Appended()
	if err := l.Await(ctx, upTo); err != nil {
		return err
	}
	return f(upTo)
}

// LastSnapshot returns the index and the time of the newest snapshot. known is false while
// LoadSnapshot, Replay or WriteSnapshot run, for which it does not wait; then the rest has no
// meaning. ok is false where there is no snapshot.
func (l *Log) LastSnapshot() (index Index, at time.Time, ok, known bool) {
	select {
	case l.upkeep <- struct{}{}:
		defer func() { <-l.upkeep }()
	default:
		return 0, time.Time{}, false, false
	}
	if len(l.snapshots.kept) == 0 {
		return 0, time.Time{}, false, true
	}
	m := l.snapshots.newest()
	return m.index, time.Unix(0, m.time), true, true
}
