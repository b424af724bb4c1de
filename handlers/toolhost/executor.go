package toolhost

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// executor runs what may block, away from the event loops (toolhost §2.3). Whoever is admitted has a goroutine of his own, so that
// the bound of the queue bounds the goroutines; built-in tools take turns in the slots, workers have their own pools.
type executor struct {
	limit     int64
	pending   atomic.Int64
	slots     chan struct{}
	abandoned atomic.Int64 // built-in tools that missed their deadline, still run, and have no slot any more; at most as many as slots
	running   sync.WaitGroup
}

// admit takes a place in the queue; false means that it is full (toolhost §4.3 step 9). leave gives it back.
func (x *executor) admit() bool {
	if x.pending.Add(1) > x.limit {
		x.pending.Add(-1)
		return false
	}
	return true
}

func (x *executor) leave() { x.pending.Add(-1) }

// wait waits for everything that runs, but not longer than limit: a tool may hang in the system for ever.
func (x *executor) wait(limit time.Duration) (all bool) {
	done := make(chan struct{})
	go func() {
		x.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// start runs f, which was admitted.
func (x *executor) start(f func()) {
	x.running.Go(func() {
		defer x.leave()
		f()
	})
}

// hold is a slot of the built-in tools: taken, given back, or given to somebody else while the tool still runs.
type hold struct{ lost atomic.Bool }

// slot waits for one of the slots of the built-in tools; false means that ctx ended first, or ends at this instant: what had the slot
// until now may have been abandoned at the same deadline. free gives it back.
func (x *executor) slot(ctx context.Context) bool {
	select {
	case x.slots <- struct{}{}:
		if end, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Now().Before(end)) {
			return true
		}
		<-x.slots // whoever had it was late as well
	case <-ctx.Done():
	}
	return false
}

// free gives a slot back, whether the tool still has it or not.
func (x *executor) free(h *hold) {
	if h.lost.Swap(true) {
		x.abandoned.Add(-1)
		return
	}
	<-x.slots
}

// abandon takes the slot from a tool that missed its deadline, so that it does not stand in the way of others; where too many hang it
// keeps the slot.
func (x *executor) abandon(h *hold) {
	if x.abandoned.Add(1) <= int64(cap(x.slots)) && !h.lost.Swap(true) {
		<-x.slots
		return
	}
	x.abandoned.Add(-1)
}

// safely runs a tool. A panic in it is an exception, and ends nothing else (toolhost §3.5); the log gets where it came from.
func safely(ctx context.Context, t tool.Tool, c *tool.Call, log *slog.Logger) (r tool.Result) {
	returned := false // asking for a panic that is not there costs as much as a small tool
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			log.Error("panic in a tool", "aid", c.AID, "panic", p, "stack", string(debug.Stack()))
			r = tool.Broken(c.AID, tool.Exception, 0, fmt.Sprint("panic: ", p))
		}
	}()
	r = t.Run(ctx, c)
	returned = true
	return r
}
