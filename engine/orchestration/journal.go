package orchestration

import (
	"sync/atomic"

	"trunkline/engine/link"
	"trunkline/engine/store"
)

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
func (o *Engine) Machine(now func() link.Instant) store.Machine {
	m := &machine{engine: o, now: now}
	return store.Machine{Tag: Tag, State: m, Ordered: m}
}

// machine implements store.State and store.Ordered.
type machine struct {
	engine *Engine
	now    func() link.Instant
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
