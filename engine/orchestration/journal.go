package orchestration

import "sync/atomic"

// history is how far an entry's story was told to the journal. An entry may be evicted by somebody else between its insertion and
// the moment its change is told; life makes sure that the journal hears of the beginning before the end, and of the end once.
type history struct {
	life atomic.Int32
	last atomic.Uint64 // the index of the last change of the entry
}

// advance notes a change of the entry. An answer is noted without the session's lock, so a later change may have come first.
func (h *history) advance(index uint64) {
	for {
		was := h.last.Load()
		if index <= was || h.last.CompareAndSwap(was, index) {
			return
		}
	}
}

const (
	unborn int32 = iota // not told yet
	alive               // told
	dead                // gone from the table
)

// tell shows a change to the journal and returns its index. Caller holds the lock that decided it.
func (o *Engine) tell(c *Call, ch *Change) uint64 {
	if o.cfg.Journal == nil || c.replaying {
		return 0
	}
	ch.At = c.Now
	return o.cfg.Journal(ch)
}

// bear tells of a new entry, and at once of its end if that came first.
func (o *Engine) bear(c *Call, h *history, born, gone *Change) {
	h.advance(o.tell(c, born))
	if !h.life.CompareAndSwap(unborn, alive) {
		o.tell(c, gone)
	}
}

// bury tells of the end of an entry, unless whoever bears it will.
func (o *Engine) bury(h *history, gone *Change) {
	if h.life.Swap(dead) == alive && o.cfg.Journal != nil {
		o.cfg.Journal(gone)
	}
}

// journals tells whether changes are wanted at all.
func (o *Engine) journals() bool { return o.cfg.Journal != nil }
