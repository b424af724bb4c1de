package orchestration

import "sync/atomic"

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
