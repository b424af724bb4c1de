package orchestration

import (
	"fmt"
	"hash/crc64"
	"math"
	"sync/atomic"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/store"
	"trunkline/engine/table"
)

// A snapshot is a list of records, one for each stored envelope and each session: a MessagePack
// list of the index of the last change that is in it, the reading at which the entry was last
// touched, how often each edge was taken, and the change that makes such an entry, in its own
// encoding.

// WriteSnapshot calls write with a record for every entry; the record is lent. Requests go on
// meanwhile: each entry is of the moment at which it was looked at, and changes recorded after that
// have to be replayed on top of the snapshot; the ones before may be. It stops at the first error
// of write and returns it.
func (o *Engine) WriteSnapshot(c *Call, write func(rec []byte) error) error {
	for _, e := range o.listEnvelopes() {
		if e.v.life.Load() == dead {
			continue // one that is not recorded yet is written: its change may have an index already
		}
		c.buf = appendSnapshot(c.buf[:0], e.v.last.Load(), e.touched, nil)
		c.buf = AppendChange(c.buf, &Change{Kind: ChangeEnvelope, ID: []byte(e.id), Envelope: e.v.encoded})
		if err := write(c.buf); err != nil {
			return err
		}
	}
	for _, pid := range o.listSessions() {
		if !o.snapshotSession(c, pid) {
			continue
		}
		if err := write(c.buf); err != nil {
			return err
		}
	}
	return nil
}

// listed is a stored envelope as a walk met it.
type listed struct {
	id      string
	v       *stored
	touched int64
}

func (o *Engine) listEnvelopes() (list []listed) {
	o.envelopes.Walk(func(e *table.Entry[stored]) { list = append(list, listed{e.Key(), e.Value(), e.Touched()}) })
	return list
}

func (o *Engine) listSessions() (pids [][]byte) {
	o.sessions.Walk(func(e *table.Entry[session]) { pids = append(pids, []byte(e.Key())) })
	return pids
}

// snapshotSession makes the record of a session in c.buf; false if the session is gone, or not
// recorded yet.
func (o *Engine) snapshotSession(c *Call, pid []byte) bool {
	entry := o.sessions.Acquire(pid)
	if entry == nil {
		return false
	}
	s, touched := entry.Value(), entry.Touched()
	entry.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Load() != alive {
		return false
	}
	o.settle(c, s)
	c.buf = appendSnapshot(c.buf[:0], s.last.Load(), touched, s.edges)
	c.buf = AppendChange(c.buf, &Change{Kind: ChangeSession, PID: s.pid, Seq: s.seq, Pipeline: s.source, Envelope: s.env, To: int(s.stage.Load())})
	return true
}

func appendSnapshot(dst []byte, index uint64, touched int64, edges []int64) []byte {
	dst = mpack.AppendInt(mpack.AppendUint(mpack.AppendArray(dst, 4), index), touched)
	dst = mpack.AppendArray(dst, len(edges))
	for _, n := range edges {
		dst = mpack.AppendInt(dst, n)
	}
	return dst
}

// LoadRecord puts back what a record of a snapshot holds. Records come in any order, before
// anything is replayed.
func (o *Engine) LoadRecord(c *Call, rec []byte) error {
	t, p := mpack.OpenTuple(rec)
	if p != mpack.NoProblem {
		return fmt.Errorf("%w: %s", ErrBadChange, p.Text())
	}
	d := changeReader{t}
	index, touched, edges, raw := d.seq(), d.int(), d.Of(mpack.Array).Data, d.Raw()
	if d.Bad {
		return fmt.Errorf("%w: it is no snapshot record", ErrBadChange)
	}
	ch := &c.change
	if err := ParseChange(raw, ch); err != nil {
		return err
	}
	ch.At.Mono = touched
	c.Now, c.replaying = ch.At, true
	defer func() { c.replaying = false }()
	switch ch.Kind {
	case ChangeEnvelope:
		return o.applyEnvelope(c, ch, index)
	case ChangeSession:
		s, err := o.applySession(c, ch, index)
		if err == nil && s != nil {
			err = s.loadEdges(ch, edges)
		}
		return err
	}
	return notApplicable(ch, "no part of a snapshot")
}

func (s *session) loadEdges(ch *Change, encoded []byte) error {
	list := mpack.Tuple{List: mpack.OpenList(encoded)}
	if list.Len() != len(s.edges) {
		return notApplicable(ch, "another number of edges")
	}
	for i := range s.edges {
		s.edges[i] = list.Int(0, math.MaxInt64)
		if list.Bad {
			return notApplicable(ch, "an edge was taken less than never")
		}
		if s.edges[i] > 0 {
			s.edgeBytes += s.p.edgeRoom(i)
		}
	}
	return nil
}

// DigestShards is into how many parts ShardDigests divides what is held: by a hash of the names
// that is the same in every engine.
const DigestShards = 16

// ShardDigests condenses the state in parts that two engines share that hold the same: envelopes by
// their ids, sessions by their processes. c brings the time: a session whose process has ended, and
// that no request has asked for since, ends now. Requests may go on meanwhile, for only a shard of
// the table or a session is locked at a time; then every entry is of the moment at which it was
// looked at. stop is asked before each entry; once it returns true, the result is nil. It may be
// nil.
func (o *Engine) ShardDigests(c *Call, stop func() bool) []uint64 {
	sums, table := make([]uint64, DigestShards), crc64.MakeTable(crc64.ECMA)
	add := func(kind byte, key, state []byte) { // sums do not depend on the order
		h := crc64.Update(crc64.Checksum([]byte{kind}, table), table, key)
		sums[store.Mix(h)%DigestShards] += store.Mix(crc64.Update(h, table, state))
	}
	for _, e := range o.listEnvelopes() {
		if stop != nil && stop() {
			return nil
		}
		if e.v.life.Load() != dead {
			add('e', []byte(e.id), e.v.encoded)
		}
	}
	for _, pid := range o.listSessions() {
		if stop != nil && stop() {
			return nil
		}
		s, code := o.find(c, pid, false)
		if code != wire.OK {
			continue // it is gone by now
		}
		c.output = s.appendState(c.output[:0])
		s.mu.Unlock()
		add('s', pid, c.output)
	}
	return sums
}

// Digest condenses ShardDigests into one number.
func (o *Engine) Digest(c *Call) (sum uint64) {
	for i, part := range o.ShardDigests(c, nil) {
		sum += part * uint64(2*i+1)
	}
	return sum
}

// history is how much of an entry the journal has. An entry may be evicted by another request
// between its insertion and the moment its change is recorded; life makes sure that the journal
// hears of the beginning before the end, and of the end once.
type history struct {
	life atomic.Int32
	last atomic.Uint64 // the index of the last change of the entry
}

// advance notes a change of the entry. An answer is noted without the session's lock, so a later
// change may have come first.
func (h *history) advance(index uint64) {
	for {
		was := h.last.Load()
		if index <= was || h.last.CompareAndSwap(was, index) {
			return
		}
	}
}

const (
	unborn int32 = iota // not recorded yet
	alive               // recorded
	dead                // gone from the table
)

// recordChange shows a change to the journal and returns its index. Caller holds the lock that
// decided it.
func (o *Engine) recordChange(c *Call, ch *Change) uint64 {
	if o.cfg.Journal == nil || c.replaying {
		return 0
	}
	ch.At = c.Now
	return o.cfg.Journal(ch)
}

// bear records a new entry, and at once of its end if that came first.
func (o *Engine) bear(c *Call, h *history, born, gone *Change) {
	h.advance(o.recordChange(c, born))
	if !h.life.CompareAndSwap(unborn, alive) {
		o.recordChange(c, gone)
	}
}

// bury records the end of an entry, unless bear is still to do it.
func (o *Engine) bury(h *history, gone *Change) {
	if h.life.Swap(dead) == alive && o.cfg.Journal != nil {
		o.cfg.Journal(gone)
	}
}

// journals reports whether there is a journal.
func (o *Engine) journals() bool { return o.cfg.Journal != nil }

// Tag is the first byte of the engine's records in a store.
const Tag byte = 'o'

// Machine returns the engine as a machine of a store; now reads the clock.
func (o *Engine) Machine(now func() connection.Instant) store.Machine {
	m := &machine{engine: o, now: now}
	return store.Machine{Tag: Tag, State: m, Ordered: m}
}

// machine implements store.State and store.Ordered.
type machine struct {
	engine *Engine
	now    func() connection.Instant
	call   Call // of the recovery
	latest int64
}

func (m *machine) WriteSnapshot(write func(rec []byte) error) error {
	return m.engine.WriteSnapshot(&Call{Now: m.now()}, write)
}

func (m *machine) Digest() uint64 { return m.engine.Digest(&Call{Now: m.now()}) }

func (m *machine) Recovering(on bool) { m.engine.Recovering(on) }

func (m *machine) Load(rec []byte) error { return m.engine.LoadRecord(&m.call, rec) }

func (m *machine) Apply(rec []byte, index uint64) error {
	var c Change
	if err := ParseChange(rec, &c); err != nil {
		return err
	}
	m.latest = max(m.latest, c.At.Mono)
	return m.engine.Apply(&m.call, &c, index)
}

func (m *machine) Latest() int64 { return m.latest }
