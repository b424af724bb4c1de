package toolhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// executor runs what may block (toolhost §2.3), in one goroutine for each admitted call. Built-in
// tools take turns in the slots; long ones have slots of their own. Workers have pools.
type executor struct {
	limit     int64
	pending   atomic.Int64
	begun     chan struct{} // built-in tools that run, in a slot or not: each may have files open
	slots     chan struct{}
	long      chan struct{} // the slots of tools that work long
	abandoned atomic.Int64  // without a slot, after their deadline; at most as many as slots
	running   sync.WaitGroup
}

// newExecutor queues calls for slots, half as many long ones, and waits more without a slot.
func newExecutor(queue, slots, waits int) executor {
	long := max(slots/2, 1)
	return executor{
		limit: int64(queue), begun: make(chan struct{}, slots+long+waits),
		slots: make(chan struct{}, slots), long: make(chan struct{}, long),
	}
}

// admit takes a place in the queue, false if it is full (§4.3 step 9). leave gives it back.
func (x *executor) admit() bool {
	if x.pending.Add(1) > x.limit {
		x.pending.Add(-1)
		return false
	}
	return true
}

func (x *executor) leave() { x.pending.Add(-1) }

func (x *executor) start(f func()) {
	x.running.Go(func() {
		defer x.leave()
		f()
	})
}

// longWork is how many bytes a built-in tool may work on in a slot: some milliseconds. After each
// longWork the call waits for its turn among the long ones.
const longWork = 4 << 20

// maxWaits is how many begun calls may wait without a slot, with files open: for a turn among the
// long ones, a file's lock, another program. With so many, no further call begins, so that the
// descriptors suffice; where the limit of open files is low, it is less (stream.Files.Share).
const maxWaits = 32

var errLate = errors.New("no slot before the deadline")

// place is the slot of a built-in tool: taken, changed for one of the other kind, given back, or
// given to another call while the tool still runs. It is the tool's tool.Place.
type place struct {
	x      *executor
	worked int64 // only the tool's goroutine uses it

	mu   sync.Mutex
	room bool          // it is one of x.begun
	in   chan struct{} // the kind of the slot; nil without one
	lost bool          // abandoned: the tool gets no slot any more
	owed bool          // then: it had one, and counts as abandoned until it ends
}

// over reports whether ctx has ended, or ends at this instant.
func over(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

// begin waits until the tool may begin, and for its first slot. free gives both back.
func (p *place) begin(ctx context.Context) error {
	select {
	case p.x.begun <- struct{}{}:
	case <-ctx.Done():
		return errLate
	}
	p.mu.Lock()
	p.room = true
	p.mu.Unlock()
	err := p.take(ctx, p.x.slots)
	if err != nil {
		p.free()
	}
	return err
}

// take waits for one of slots until ctx is over: what had the slot until now may have been
// abandoned at the same deadline. free gives it back. A slot of the other kind is kept until then.
func (p *place) take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return errLate
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost || over(ctx) {
		<-slots // the call that had it was late as well
		return errLate
	}
	p.leave()
	p.in = slots
	return nil
}

// Leave implements tool.Place.
func (p *place) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
}

func (p *place) leave() {
	if p.in != nil {
		<-p.in
		p.in = nil
	}
}

// Return implements tool.Place.
func (p *place) Return(ctx context.Context) error {
	if p.worked > longWork {
		return p.take(ctx, p.x.long)
	}
	return p.take(ctx, p.x.slots)
}

// Worked implements tool.Place.
func (p *place) Worked(ctx context.Context, n int64) error {
	runtime.Gosched() // lets an event loop run before this tool is interrupted
	before := p.worked
	p.worked += n
	if (p.worked-1)/longWork == (before-1)/longWork { // the first byte over a multiple counts
		return nil
	}
	p.Leave() // of a long call as well: it must not wait for another one with the slot it has
	return p.take(ctx, p.x.long)
}

func (p *place) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end(); p.owed {
		p.owed = false
		p.x.abandoned.Add(-1)
	}
}

// end gives up the slot and the place among those that have begun; p.mu is held.
func (p *place) end() {
	p.leave()
	if p.room {
		<-p.x.begun
		p.room = false
	}
}

// abandon takes the slot from a tool that missed its deadline, so that others get it; where too
// many hang it keeps the slot. One that waits without a slot notices the deadline itself.
func (p *place) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
	if p.in == nil {
		return
	}
	if p.x.abandoned.Add(1) > int64(cap(p.x.slots)) {
		p.x.abandoned.Add(-1)
		return
	}
	p.owed = true
	p.end()
}

// runRecovered runs a tool. A panic in it is logged as an exception, and ends nothing else (§3.5).
func runRecovered(ctx context.Context, t tool.Tool, c *tool.Call, log *slog.Logger) (r tool.Result) {
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

// drains keeps the sessions that have seen the shutdown open for as long as a call runs off the
// loops, on whatever session: until then later lines are still refused in words (toolhost §2.3).
type drains struct {
	mu      sync.Mutex
	running int
	waiting map[any]func() // called by the end of the last call
}

func (d *drains) begin() {
	d.mu.Lock()
	d.running++
	d.mu.Unlock()
}

func (d *drains) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 {
		for _, wake := range d.waiting {
			wake()
		}
	}
}

// wait registers wake, which each end of a last call calls under the lock, until leave.
func (d *drains) wait(key any, wake func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[any]func())
	}
	d.waiting[key] = wake
}

func (d *drains) leave(key any) {
	d.mu.Lock()
	delete(d.waiting, key)
	d.mu.Unlock()
}

func (d *drains) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running == 0
}
