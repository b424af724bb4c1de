package toolhost

import (
	"cmp"
	"context"

	"trunkline/engine/idem"
	"trunkline/handlers/toolhost/tool"
)

// Journal keeps the changes of Config.Keys. Any goroutine may call its methods.
type Journal interface {
	// Safe returns the index up to which nothing can be lost any more.
	Safe() uint64
	// Barrier returns when all that was journaled before the call is safe, or why it will not be.
	Barrier(ctx context.Context) error
	// Saturated reports whether nothing new may be begun.
	Saturated() bool
}

func (s *Server) kept() bool { return s.cfg.Journal != nil }

// postSafe posts the reply once all that was journaled is safe. Where that will not be, another
// execution of the key may give another answer, and the peer gets none: its session stays blocked
// until the server ends.
func (c *call) postSafe() {
	if c.srv.cfg.Journal.Barrier(c.srv.ctx) == nil {
		c.s.post(c)
		return
	}
	c.srv.drains.end()
	c.s.lose(c)
	c.s.endRun(cmp.Or(c.runEnded, runLost))
}

// show answers with a stored outcome, off the loop if it is not safe yet.
func (c *call) show(out []byte, r *idem.Stored) (_ []byte, next step) {
	if !c.srv.kept() || r.Index <= c.srv.cfg.Journal.Safe() {
		return c.hit(out, r), stepDone
	}
	if !c.srv.exec.admit() {
		return appendFault(out, errOverloaded, c.id), stepDone
	}
	c.reply = c.hit(c.reply[:0], r)
	c.startAway(c.postSafe)
	return out, stepDone
}

// unknownOutcome is the answer about a tool that may have done its work before the server ended.
const unknownOutcome = "outcome unknown: the server ended while the tool ran"

// unknown answers a key that was begun before a restart and has no outcome, for a tool that must
// not do its work twice.
func (c *call) unknown(out []byte, known bool) (_ []byte, next step) {
	o := outcomeOf(tool.Broken(c.entry.AID, tool.Exception, 0, unknownOutcome))
	stored := c.srv.idem.FinishUnknown(c.key, o.stored(c))
	if stored == nil { // another caller was faster
		return c.reserve(out, known)
	}
	return c.show(out, stored)
}
