package cluster

import (
	"time"

	"trunkline/engine/idem"
)

// unknownOutcome is the answer about a tool that may have done its work before its process ended.
const unknownOutcome = "outcome unknown"

// toolTime is the longest that a tool takes.
const toolTime = 200 * time.Millisecond

// call is a call with a key of idempotency. It does what handlers/toolhost does around the run of a
// tool: started is safe before the tool runs, finished before the answer. The loop calls its
// methods.
type call struct {
	l    *life
	c    *client
	id   string
	key  *keyed
	dice *dice
}

// begin looks the key up.
func (c *call) begin() {
	keys := c.l.svc.Runtime().Outcomes
	switch o, r := keys.Begin(keys.Now(), c.key.key, c.key.input, c); o {
	case idem.Started:
		c.key.start(c.l)
		c.run()
	case idem.Done:
		c.show(r)
	case idem.Unknown:
		c.unknown(keys)
	case idem.InFlight: // Wake follows
	default:
		c.l.n.w.fail("key %s is %s", c.key.name, o)
	}
}

func (c *call) unknown(keys *idem.Table) {
	if c.l.n.w.bug == rerun {
		if _, ok := keys.Restart(c.key.key); ok {
			c.run()
		}
		return
	}
	c.key.lost(c.l)
	if r := keys.FinishUnknown(c.key.key, idem.Stored{Error: unknownOutcome}); r != nil {
		c.show(r)
	}
}

// safe has the loop call f once all that was journaled is safe.
func (c *call) safe(f func()) {
	c.l.tasks.Go(func() {
		time.Sleep(c.dice.upTo(loopTime)) // not beside the turn of the loop that has begun it
		if c.l.svc.Runtime().Store.Barrier(c.l.ctx) == nil {
			c.l.later(c.dice, loopTime, f)
		}
	})
}

// run has the tool do its work.
func (c *call) run() {
	before := c.safe
	if c.l.n.w.bug == hasty {
		before = func(f func()) { c.l.later(c.dice, loopTime, f) }
	}
	before(func() {
		result := c.key.effect(c.l)
		c.l.later(c.dice, toolTime, func() {
			if r := c.l.svc.Runtime().Outcomes.Finish(c.key.key, idem.Stored{Output: []byte(result)}); r != nil {
				c.show(r)
			}
		})
	})
}

// Wake implements idem.Waiter.
func (c *call) Wake(r *idem.Stored) {
	if r == nil {
		c.begin()
		return
	}
	c.show(r)
}

// show answers once the outcome is safe.
func (c *call) show(r *idem.Stored) {
	a := answer{id: c.id, kind: answered, result: string(r.Output) + r.Error}
	if r.Index <= c.l.svc.Runtime().Store.Safe() {
		c.l.reply(c.c, a)
		return
	}
	c.safe(func() { c.l.reply(c.c, a) })
}
