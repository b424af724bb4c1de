package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

// Scrub removes from the files of the store what was dropped, where it is a Scrubber.
func (l *Log) Scrub() error {
	defer l.maintain()()
	if s, ok := l.store.(Scrubber); ok {
		return s.Scrub()
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

// The parts of a snapshot, in bytes. The pictures are in doc.go.
const (
	metaBytes = 64
	sumBytes  = 4
	// maxPayload is what one chunk holds of a snapshot.
	maxPayload = MaxChunkBytes - sumBytes
)

// meta is the decoded meta of a snapshot.
type meta struct {
	mode      Mode
	partition uint32
	number    uint64
	epoch     uint64
	index     Index // replay starts after it
	through   Index // the snapshot may hold effects up to it, so the log must reach it
	time      int64
	size      uint64 // bytes of all payloads
	chunks    uint32
}

func (m *meta) encode() []byte {
	b := make([]byte, metaBytes)
	le := binary.LittleEndian
	b[0], b[1] = formatVersion, byte(m.mode)
	le.PutUint32(b[4:], m.partition)
	le.PutUint64(b[8:], m.number)
	le.PutUint64(b[16:], m.epoch)
	le.PutUint64(b[24:], m.index)
	le.PutUint64(b[32:], m.through)
	le.PutUint64(b[40:], uint64(m.time))
	le.PutUint64(b[48:], m.size)
	le.PutUint32(b[56:], m.chunks)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
	return b
}

// errMetaVersion is that another version of the program wrote a meta: no start passes over that.
var errMetaVersion = errors.New("cannot decode meta of snapshot")

func decodeMeta(b []byte) (meta, error) {
	le := binary.LittleEndian
	switch {
	case len(b) != metaBytes:
		return meta{}, fmt.Errorf("cannot decode meta of snapshot: %d bytes, want %d", len(b), metaBytes)
	case le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli()):
		return meta{}, errors.New("cannot decode meta of snapshot: its checksum is wrong")
	case b[0] != formatVersion:
		return meta{}, fmt.Errorf("%w: version %d, want %d", errMetaVersion, b[0], formatVersion)
	}
	m := meta{
		mode:      Mode(b[1]),
		partition: le.Uint32(b[4:]),
		number:    le.Uint64(b[8:]),
		epoch:     le.Uint64(b[16:]),
		index:     le.Uint64(b[24:]),
		through:   le.Uint64(b[32:]),
		time:      int64(le.Uint64(b[40:])),
		size:      le.Uint64(b[48:]),
		chunks:    le.Uint32(b[56:]),
	}
	if b[2] != 0 || b[3] != 0 || m.mode >= Memory || m.index > m.through || m.size > uint64(m.chunks)*maxPayload {
		return meta{}, errors.New("cannot decode meta of snapshot: its parts do not fit")
	}
	return m, nil
}

// unusable returns the damage for which a start ignores a snapshot before it reads a chunk; nil for
// none.
func (g *Snapshot) unusable() error {
	if g.Err != nil {
		return g.Err
	}
	if _, err := decodeMeta(g.Meta); err != nil && !errors.Is(err, errMetaVersion) {
		return &DamageError{Where: snapshotPlace(g.Number), Err: err}
	}
	return nil
}

// chunkSum is the CRC32C of a payload together with its place, so that another chunk, of this
// snapshot or another one, does not pass for it.
func chunkSum(number uint64, chunk uint32, payload []byte) uint32 {
	var at [12]byte
	binary.LittleEndian.PutUint64(at[:], number)
	binary.LittleEndian.PutUint32(at[8:], chunk)
	return crc32.Update(crc32.Checksum(at[:], castagnoli()), castagnoli(), payload)
}

// verifier checks the chunks of one snapshot against its meta, one after the other.
type verifier struct {
	meta
	seen uint32
	size uint64
}

// payload returns what a chunk holds, a part of it.
func (v *verifier) payload(chunk []byte) ([]byte, error) {
	end := len(chunk) - sumBytes
	if end < 1 || len(chunk) > MaxChunkBytes || v.seen == v.chunks {
		return nil, v.damage(fmt.Errorf("chunk %d of %d bytes does not belong to it", v.seen, len(chunk)))
	}
	p := chunk[:end:end]
	if binary.LittleEndian.Uint32(chunk[end:]) != chunkSum(v.number, v.seen, p) {
		return nil, v.damage(fmt.Errorf("the checksum of chunk %d is wrong", v.seen))
	}
	v.seen++
	v.size += uint64(end)
	return p, nil
}

// end checks that nothing is missing.
func (v *verifier) end() error {
	if v.seen != v.chunks || v.size != v.meta.size {
		return v.damage(fmt.Errorf("%d chunks of %d bytes, want %d of %d", v.seen, v.size, v.chunks, v.meta.size))
	}
	return nil
}

func (v *verifier) damage(err error) error {
	return &DamageError{Where: snapshotPlace(v.number), Index: v.index, Err: err}
}

func snapshotPlace(number uint64) string { return fmt.Sprintf("snapshot generation %d", number) }
