package toolhost

import (
	"context"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// run is step 12 on the loop, for a tool that is fast, and what follows; it appends the reply.
// lean: only the reply depends on the result.
func (c *call) run(out []byte, lean bool) []byte {
	s := c.s
	c.prepare(s.state.CloneIn(&s.room))
	s.tally.begin(c.entry, s)
	r := runRecovered(c.srv.ctx, c.entry, &c.input, c.srv.cfg.Logger)
	if lean && r.Failure == nil {
		if done, ok := c.appendLean(out, r.Output); ok {
			s.tally.ok++
			return done
		}
	}
	o := outcomeOf(r)
	out = c.conclude(out, r, &o, &s.state)
	s.tally.end(c, &o)
	if o.after != nil {
		s.room.Replace(&s.state, &c.after)
	}
	return out
}

// appendLean is conclude for a lean call that went well; ok is false if the reply is too long.
func (c *call) appendLean(out, output []byte) (_ []byte, ok bool) {
	start, state := len(out), &c.s.state
	if c.after.Unwritten() {
		out = appendOK(out, output, noMember, c.id)
		return out, len(out)-start <= maxReply
	}
	out = appendOutput(out, output, noMember)
	out = c.id.end(sessionstate.AppendDelta(out, state, &c.after))
	if len(out)-start > maxReply || c.after.Bytes() > sessionstate.MaxBytes {
		return nil, false
	}
	c.s.room.Replace(state, &c.after)
	return out, true
}

// prepare has the tool called with after, a clone of the session's state.
func (c *call) prepare(after sessionstate.State) {
	if b := c.entry.Breaker; b != nil {
		b.Start(c.probe)
	}
	c.after = after
	c.input.AID, c.input.Input, c.input.State, c.input.Now = c.entry.AID, c.req.input, &c.after, c.srv.clock
}

// start is step 12 off the loop. The line is gone once it returns.
func (c *call) start() {
	c.prepare(c.s.state.Clone())
	c.before = c.s.lend()
	c.begun = c.s.nowMono()
	c.srv.counts[c.entry.index].inFlight.Add(1)
	c.keepID()
	c.startAway(c.runAway)
}

// startAway runs f off the loop. The call keeps the server from draining until it is posted.
func (c *call) startAway(f func()) {
	c.s.awaits = ownCall
	c.srv.drains.begin()
	c.srv.exec.start(f)
}

// keepID copies the id, because the line is gone before the reply is made.
func (c *call) keepID() {
	c.id = c.id.clone(c.idRoom)
	c.idRoom = c.id.raw
}

// runAway runs the tool with its deadline. A built-in that misses it is abandoned: the reply is
// made without it, and its output later is ignored. Workers end at the deadline by themselves.
func (c *call) runAway() {
	ctx, cancel := context.WithTimeout(c.srv.ctx, c.srv.timeoutOf(c.entry))
	defer cancel()
	switch {
	case c.op != nil:
		c.op.run(ctx, c)
		c.s.post(c)
		return
	case c.keyed && c.srv.kept() && c.srv.cfg.Journal.Barrier(ctx) != nil: // its start is not durable
		r := timedOut(c.entry.AID)
		r.Failure.Dispatch.Waited = true // it does not concern the tool
		c.settle(r, settled)
		return
	case c.entry.External:
		c.runs()
		r := runRecovered(ctx, c.entry, &c.input, c.srv.cfg.Logger)
		c.settle(r, settled)
		return
	}
	c.place.x = &c.srv.exec
	if c.place.begin(ctx) != nil {
		c.late()
		return
	}
	c.runs()
	stop := context.AfterFunc(ctx, c.missed)
	r := runRecovered(tool.WithPlace(ctx, &c.place), c.entry, &c.input, c.srv.cfg.Logger)
	end := settled
	if !stop() {
		end = abandoned
	}
	c.place.free() // making the outcome safe needs no slot
	if r.Failure != nil && over(ctx) {
		r = timedOut(c.entry.AID) // the tool noticed before missed did
	}
	c.settle(r, end)
}

// runs notes that the tool begins, off the loop.
func (c *call) runs() {
	c.ran = c.s.nowMono()
	c.srv.steps.Record(stepQueueWait, c.ran-c.begun, 1, 0, nil)
}

func (c *call) missed() {
	c.place.abandon()
	c.late()
}

func (c *call) late() { c.settle(timedOut(c.entry.AID), abandoned) }

func timedOut(aid string) tool.Result { return tool.Broken(aid, tool.Timeout, 0, "") }

// settle makes the reply and posts it, once. A tool that the server's end cut short has an unknown
// effect: its key gets no outcome.
func (c *call) settle(r tool.Result, end uint32) {
	if !c.end.CompareAndSwap(pending, end) {
		return
	}
	if r.Failure != nil && c.srv.ctx.Err() != nil {
		r = tool.Broken(c.entry.AID, tool.Exception, 0, unknownOutcome)
		if !c.srv.kept() { // else the journal has that it was begun
			c.release()
		}
		c.keyed = false
	}
	o := outcomeOf(r)
	c.reply = c.conclude(c.reply[:0], r, &o, &c.before)
	c.changed = o.after
	c.measure(&o)
	c.srv.counts[c.entry.index].inFlight.Add(-1)
	if c.keyed && c.srv.kept() {
		c.postSafe()
	} else {
		c.s.post(c)
	}
}

// conclude is steps 13 to 15: it appends the reply and stores the outcome, which has the new state
// if there is one. before is the old state.
func (c *call) conclude(out []byte, r tool.Result, o *outcome, before *sessionstate.State) []byte {
	if o.status == tool.OK {
		o.before, o.after = before, &c.after
	}
	out = o.appendWithin(out, c.id, false)
	if b := c.entry.Breaker; b != nil {
		b.Done(c.probe, r.Dispatch())
	}
	if c.keyed {
		c.srv.idem.Finish(c.key, o.stored(c))
	}
	return out
}

// measure notes the end of a tool off the loop.
func (c *call) measure(o *outcome) {
	now := c.s.nowMono()
	took := time.Duration(now - c.begun)
	if c.ran != 0 {
		c.srv.steps.Record(stepToolRun, now-c.ran, 1, failures(o), nil)
	} else {
		c.srv.steps.Record(stepQueueWait, now-c.begun, 1, 1, nil)
	}
	c.srv.count(c.entry, o, took)
	c.srv.finished(c.entry, o, took, c.id)
}
