package toolhost

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"trunkline/handlers/toolhost/tool"
)

// executor runs what may block, away from the event loops (toolhost §2.3). Whoever is admitted has a goroutine of his own, so that
// the bound of the queue bounds the goroutines; built-in tools take turns in the slots, workers have their own pools.
type executor struct {
	limit   int64
	pending atomic.Int64
	slots   chan struct{}
	running sync.WaitGroup
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

func (x *executor) wait() { x.running.Wait() }

// start runs f, which was admitted.
func (x *executor) start(f func()) {
	x.running.Go(func() {
		defer x.leave()
		f()
	})
}

// slot waits for one of the slots of the built-in tools; false means that ctx ended first. free gives it back.
func (x *executor) slot(ctx context.Context) bool {
	select {
	case x.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (x *executor) free() { <-x.slots }

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
