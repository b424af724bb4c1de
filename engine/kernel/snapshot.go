package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// snapshotBatch bounds the slots that are copied per hold of the locks.
const snapshotBatch = 128

// snapshotBytes bounds the copied rate logs per hold, less the last one of up to maxStamps stamps.
const snapshotBytes = 64 << 10

// WriteSnapshot calls write with the records of a snapshot (see the package comment) in order. A
// record is at most maxSnapshotRecordLen bytes and lent for the call. No lock is held during the
// call: write may be slow, and others may use the kernel. A batch of rows at a time is copied under
// the scheduling lock and a shard's.
//
// The snapshot holds the effects of every record that the journal had when WriteSnapshot was
// called, and of later ones that met rows which were not copied yet. loadSnapshotRecord restores
// it. The order of processes that completed at the same instant is that of the records: it is kept
// only if Config.Journal returns indexes. WriteSnapshot stops at the first error of write and
// returns it.
func (k *Kernel) WriteSnapshot(write func(rec []byte) error) error {
	w := snapshotWriter{write: write}
	k.copyGlobals(&w)
	if err := w.flush(); err != nil {
		return err
	}
	for i := range k.shards {
		for from, more := uint32(0), true; more; from += snapshotBatch {
			more = k.copyRows(&w, &k.shards[i], from)
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	for i := range k.rates.shards {
		for from, more := uint32(0), true; more; {
			from, more = k.rates.shards[i].copyLogs(&w, from)
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.add(appendSnapshotEnd(w.buf, w.processes, w.logs))
	return w.flush()
}

// snapshotWriter collects the records of a batch under the locks, and writes them without.
type snapshotWriter struct {
	write           func(rec []byte) error
	buf             []byte
	ends            []int // of the records in buf
	processes, logs uint64
}

// add takes note of a record that was appended to buf.
func (w *snapshotWriter) add(buf []byte) {
	w.buf = buf
	w.ends = append(w.ends, len(buf))
}

func (w *snapshotWriter) flush() error {
	start := 0
	for _, end := range w.ends {
		if err := w.write(w.buf[start:end:end]); err != nil {
			return err
		}
		start = end
	}
	w.buf, w.ends = w.buf[:0], w.ends[:0]
	return nil
}

func (k *Kernel) copyGlobals(w *snapshotWriter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.add(appendSnapshotBegin(w.buf, &snapshotGlobals{created: k.created, readied: k.readied, now: k.now,
		defaultsRecord: k.defaultsRecord, defaults: *k.defaults.Load()}))
}

// copyRows copies snapshotBatch slots of sh from the given one on; more: further slots follow.
func (k *Kernel) copyRows(w *snapshotWriter, sh *shard, from uint32) (more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	end := min(from+snapshotBatch, sh.used)
	for slot := from; slot < end; slot++ {
		if r := sh.row(slot); r.created != 0 {
			w.add(appendSnapshotRow(w.buf, sh, r, k.sched.nodes.at(r.node), r.recorded))
			w.processes++
		}
	}
	return end < sh.used
}

// copyLogs copies logs from the given slot on and returns the next slot, if there are more.
func (s *rateShard) copyLogs(w *snapshotWriter, from uint32) (next uint32, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(from+snapshotBatch, s.used)
	for next = from; next < end && len(w.buf) < snapshotBytes; next++ {
		if g := s.log(next); g.live {
			w.add(appendSnapshotLog(w.buf, s.user(g), g, s.recorded.at(next)))
			w.logs++
		}
	}
	return next, next < s.used
}

// snapshotVersion is the format version; another one is refused.
const snapshotVersion = 1

// maxSnapshotRecordLen bounds the encoded length of a snapshot's record. The largest, a log of
// maxStamps stamps within an hour, needs about half of it.
const maxSnapshotRecordLen = 256 << 10

// snapshotLenBytes is the size of the length in front of a record: a uvarint with room for
// maxSnapshotRecordLen, not minimal.
const snapshotLenBytes = 3

// errBadSnapshot means that a snapshot cannot be loaded: it is damaged, incomplete, or of another
// version.
var errBadSnapshot = errors.New("cannot load snapshot")

// snapshotKind is what a record of a snapshot holds.
type snapshotKind uint8

const (
	snapshotBegin snapshotKind = iota + 1
	snapshotProcess
	snapshotLog
	snapshotEnd
)

// snapshotGlobals is what a snapshot begins with.
type snapshotGlobals struct {
	created, readied uint64
	now              int64
	defaultsRecord   uint64
	defaults         Quota
}

// snapshotRow is a process in a snapshot. In the Change, Seq is its creation sequence, ReadySeq and
// Expiry are its node's sequence and stamp.
type snapshotRow struct {
	Change
	index uint64
	clock int64
	where queueState
}

// snapshotStamps is a rate log in a snapshot; gaps of the stamps, newest first, stand in b.
type snapshotStamps struct {
	user  []byte
	index uint64
	last  int64 // ms
	n     uint32
	gaps  changeReader // n-1 uints: how much older a stamp is than the one before
}

func beginRecord(dst []byte, kind snapshotKind) []byte {
	return append(dst, 0, 0, 0, snapshotVersion, byte(kind))
}

// endRecord puts the length in front of the record that starts at start.
func endRecord(dst []byte, start int) []byte {
	n := len(dst) - start - snapshotLenBytes
	dst[start], dst[start+1], dst[start+2] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)
	return dst
}

func appendSnapshotBegin(dst []byte, g *snapshotGlobals) []byte {
	start := len(dst)
	dst = beginRecord(dst, snapshotBegin)
	dst = binary.AppendUvarint(dst, g.created)
	dst = binary.AppendUvarint(dst, g.readied)
	dst = binary.AppendVarint(dst, g.now)
	dst = binary.AppendUvarint(dst, g.defaultsRecord)
	return endRecord(appendQuota(dst, &g.defaults), start)
}

// appendSnapshotRow appends the record of r, which is in sh and has node n. Caller holds both
// locks.
func appendSnapshotRow(dst []byte, sh *shard, r *row, n *node, index uint64) []byte {
	start := len(dst)
	dst = beginRecord(dst, snapshotProcess)
	text := sh.texts.bytes(r.text, r.textLen())
	for _, l := range r.lens {
		dst = appendBytes(dst, text[:l])
		text = text[l:]
	}
	dst = append(dst, byte(r.state), byte(r.priority))
	dst = binary.AppendUvarint(dst, r.created)
	dst = binary.AppendUvarint(dst, index)
	dst = binary.AppendVarint(dst, r.clock)
	ready, stamp := n.kept()
	dst = append(dst, byte(n.where))
	dst = binary.AppendUvarint(dst, ready)
	dst = binary.AppendVarint(dst, stamp)
	dst = appendBytes(dst, sh.reasonOf(r))
	dst = appendUsage(dst, &r.usage)
	return endRecord(appendQuota(dst, sh.quotas.at(r.quota)), start)
}

// kept returns sequence and stamp of the node as far as they mean something where it is.
func (n *node) kept() (ready uint64, stamp int64) {
	switch n.where {
	case nowhere:
		return 0, 0
	case leased, completed:
		return n.ready, n.stamp
	}
	return n.ready, 0
}

func appendSnapshotLog(dst []byte, user []byte, g *rateLog, index uint64) []byte {
	start := len(dst)
	dst = beginRecord(dst, snapshotLog)
	dst = appendBytes(dst, user)
	dst = binary.AppendUvarint(dst, index)
	dst = binary.AppendVarint(dst, g.last)
	dst = binary.AppendUvarint(dst, uint64(g.n))
	newer := uint32(g.last)
	for i := range g.n - 1 {
		stamp := uint32(g.at(g.n - 2 - i))
		dst = binary.AppendUvarint(dst, uint64(newer-stamp))
		newer = stamp
	}
	return endRecord(dst, start)
}

func appendSnapshotEnd(dst []byte, processes, logs uint64) []byte {
	start := len(dst)
	dst = beginRecord(dst, snapshotEnd)
	dst = binary.AppendUvarint(dst, processes)
	return endRecord(binary.AppendUvarint(dst, logs), start)
}

// parseSnapshotRecord takes the frame off rec, which is one whole record.
func parseSnapshotRecord(rec []byte) (kind snapshotKind, fields []byte, err error) {
	n, w := binary.Uvarint(rec)
	switch {
	case w <= 0 || n < 2 || n > maxSnapshotRecordLen || n != uint64(len(rec)-w):
		return 0, nil, fmt.Errorf("%w: record of %d bytes has length %d", errBadSnapshot, len(rec), n)
	case rec[w] != snapshotVersion:
		return 0, nil, fmt.Errorf("%w: version %d", errBadSnapshot, rec[w])
	}
	return snapshotKind(rec[w+1]), rec[w+2:], nil
}

// ended reports whether everything was read and all of it was good.
func (d *changeReader) ended() bool { return !d.bad && len(d.b) == 0 }

func (d *changeReader) globals() (g snapshotGlobals) {
	g.created, g.readied, g.now = d.uint(maxCreated), d.uint(math.MaxUint64), d.int()
	g.defaultsRecord, g.defaults = d.uint(math.MaxUint64), d.quota()
	return g
}

func (d *changeReader) row(r *snapshotRow) {
	r.PID, r.RequestID, r.UserID, r.SessionID = d.pid(), d.str(), d.str(), d.str()
	r.State, r.Priority = State(d.enum(NumStates)), Priority(d.enum(NumPriorities))
	r.Seq, r.index, r.clock = d.uint(maxCreated), d.uint(math.MaxUint64), d.int()
	r.where, r.ReadySeq, r.Expiry = queueState(d.enum(uint8(completed)+1)), d.uint(math.MaxUint64), d.int()
	r.Reason, r.Usage, r.Quota = d.str(), d.usage(), d.quota()
	d.bad = d.bad || r.Seq == 0 || !r.where.fits(r.State) || len(r.Reason) > 0 && r.State != Blocked
}

// fits reports whether a process in state s can be at w.
func (w queueState) fits(s State) bool {
	switch w {
	case nowhere:
		return s != Ready && !s.terminal()
	case completed:
		return s.terminal()
	}
	return s == Ready
}

// stamps reads a rate log, and makes sure that all its stamps are there and none is more than an
// hour older than the last.
func (d *changeReader) stamps() (g snapshotStamps) {
	g.user, g.index, g.last, g.n = d.str(), d.uint(math.MaxUint64), d.int(), uint32(d.uint(maxStamps))
	g.gaps = *d
	age := uint64(0)
	for i := uint32(1); i < g.n && !d.bad; i++ {
		age += d.uint(uint64(windowMs[Hour-1]))
	}
	const bound = math.MaxInt64 / nsPerMs
	d.bad = d.bad || g.n == 0 || g.last > bound || g.last < -bound || age > uint64(windowMs[Hour-1])
	return g
}
