package orchestration

import "sync/atomic"

// An entry of a table may be evicted by somebody else between its insertion and the moment its change is told. Its life makes sure
// that the journal hears of the beginning before the end, and of the end once.
const (
	unborn int32 = iota // not told yet
	alive               // told
	dead                // gone from the table
)

// tell shows a change to the journal. Caller holds the lock that decided it.
func (o *Engine) tell(c *Call, ch *Change) {
	if o.cfg.Journal != nil && !c.replaying {
		ch.At = c.Now
		o.cfg.Journal(ch)
	}
}

// bear tells of a new entry, and at once of its end if that came first.
func (o *Engine) bear(c *Call, life *atomic.Int32, born, gone *Change) {
	o.tell(c, born)
	if !life.CompareAndSwap(unborn, alive) {
		o.tell(c, gone)
	}
}

// bury tells of the end of an entry, unless whoever bears it will.
func (o *Engine) bury(life *atomic.Int32, gone *Change) {
	if life.Swap(dead) == alive && o.cfg.Journal != nil {
		o.cfg.Journal(gone)
	}
}

// journals tells whether changes are wanted at all.
func (o *Engine) journals() bool { return o.cfg.Journal != nil }
