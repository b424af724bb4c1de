package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// DefaultInstances is how many instances of one module run at a time, each with its memory.
const DefaultInstances = 4

// WasmConfig is what a Wasm is made of.
type WasmConfig struct {
	// Module is the path of the WASI preview-1 command module.
	Module string
	// SHA256 is what the module must have, in lower-case hex. Empty: anything.
	SHA256 string
	// Stateless tells that the tool is never shown the caller's state.
	Stateless bool
	// Instances is how many calls run at a time. 0: DefaultInstances.
	Instances int
}

// Wasm is a tool that a WebAssembly module runs (toolhost §4.9). The module is read and compiled once, by the first call that finds
// it; what runs later is that, whatever becomes of the file. One whose functions would take too long to compile, or could stop the
// whole process once they are, is interpreted instead (bodyScan). Every call has an instance of its own, which sees nothing of the
// system but its standard streams, clocks and random numbers. Any number of goroutines may call Run at once.
//
// Memory of a call: 64 MiB of its own, half a MiB of table, and its stack. That of compiled code ends the call when it has grown to
// about 100 MiB, of interpreted code at 2,000 calls in each other, 64 MiB at most; neither can be set.
type Wasm struct {
	cfg    WasmConfig
	slots  chan struct{}
	ctx    context.Context // ended by Close, under mu
	cancel context.CancelFunc
	left   atomic.Int64 // instances that run though their calls were answered
	grace  time.Duration

	mu      sync.Mutex
	busy    sync.WaitGroup // instances and a compiler; grows under mu and before Close only
	idle    chan struct{}  // closed when they have ended after Close; nil before
	loading chan struct{}  // closed when an attempt to compile has ended; nil if none is under way
	module  *module
	err     error // of the last attempt
}

// NewWasm returns a tool whose module is not looked at yet. Close ends it.
func NewWasm(cfg WasmConfig) (*Wasm, error) {
	if cfg.Module == "" {
		return nil, errors.New("cannot run a module without a path")
	}
	if cfg.Instances <= 0 {
		cfg.Instances = DefaultInstances
	}
	t := &Wasm{cfg: cfg, slots: make(chan struct{}, cfg.Instances), grace: closeGrace}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Warm compiles the module.
func (t *Wasm) Warm() error {
	_, err := t.load(t.ctx)
	return err
}

// Abandoned returns how many instances run though their calls were answered, because there was no place to interrupt them yet. Each
// keeps its place: they are never more than Instances. It does not allocate.
func (t *Wasm) Abandoned() int { return int(t.left.Load()) }

// Run runs the call in a new instance. It waits for a place and for the compiler until ctx is done, at most DefaultTimeout if ctx has
// no deadline; then it answers, and the instance is interrupted as soon as that can be done. What it returns when that failed is a
// dispatch error of toolhost §3.5.
func (t *Wasm) Run(ctx context.Context, c *tool.Call) tool.Result {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	m, err := t.load(ctx)
	if err == nil {
		err = t.enter(ctx)
	}
	switch {
	case errors.Is(err, errCompiling), errors.Is(err, errNotEnding):
		return tool.Broken(c.AID, tool.Timeout, 0, err.Error()) // not the fault of others: the breaker is to hear of it
	case err != nil:
		return notRun(c.AID, err)
	}
	return t.instance(ctx, m, c)
}

var (
	errCompiling = errors.New("the module was not compiled before the deadline")
	errNotEnding = errors.New("no instance has ended before the deadline, though all were interrupted")
)

// enter takes a place, which leave gives back. Whoever has one keeps the runtime open.
func (t *Wasm) enter(ctx context.Context) error {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		if t.Abandoned() == cap(t.slots) {
			return errNotEnding
		}
		return errNoWorker
	case <-t.ctx.Done():
		return errClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		<-t.slots
		return errClosed
	}
	t.busy.Add(1)
	return nil
}

func (t *Wasm) leave() {
	<-t.slots
	t.busy.Done()
}

// instance runs the call.
func (t *Wasm) instance(ctx context.Context, m *module, c *tool.Call) tool.Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(errClosed) })()
	i := &instance{out: capped{full: func() { cancel(errOver) }}, done: make(chan struct{})}
	aid, request := c.AID, appendRequest(nil, c, t.cfg.Stateless) // c is the caller's again before the instance ends
	go func() {
		defer t.leave()
		i.run(ctx, m, aid, request)
		if !i.parted.CompareAndSwap(false, true) { // the call has gone
			t.left.Add(-1)
		}
	}()
	select {
	case <-i.done:
	case <-ctx.Done():
	}
	r := i.result(ctx, c, t.cfg.Stateless)
	if !i.ended() {
		t.left.Add(1)
		if !i.parted.CompareAndSwap(false, true) { // it has ended by now
			t.left.Add(-1)
		}
	}
	return r
}

// load returns the compiled module. Only one call compiles; the others, and that one too if it takes too long, wait until ctx is
// done. What failed is tried again by the next call: the file may be there then.
func (t *Wasm) load(ctx context.Context) (*module, error) {
	t.mu.Lock()
	if t.ctx.Err() != nil {
		t.mu.Unlock()
		return nil, errClosed
	}
	if t.module != nil {
		defer t.mu.Unlock()
		return t.module, nil
	}
	if t.loading == nil {
		t.loading = make(chan struct{})
		t.busy.Add(1)
		go t.compile(t.loading)
	}
	loading := t.loading
	t.mu.Unlock()
	select {
	case <-loading:
	case <-t.ctx.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, errCompiling
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.module, t.err
}

func (t *Wasm) compile(done chan<- struct{}) {
	defer t.busy.Done()
	m, err := loadModule(t.cfg.Module, t.cfg.SHA256)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.module, t.err, t.loading = m, err, nil
	close(done)
}

// Close interrupts what runs, waits closeGrace at most for its end, and gives the memory back; if something has not ended then, its
// end does. Later calls are refused. It may be called again.
func (t *Wasm) Close() error {
	t.mu.Lock()
	t.cancel()
	if t.idle == nil {
		t.idle = make(chan struct{})
		go t.release(t.idle)
	}
	idle := t.idle
	t.mu.Unlock()
	timer := time.NewTimer(t.grace)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("cannot end all instances: %d of %s", len(t.slots), t.cfg.Module)
	}
}

// release closes the runtime once nothing runs in it.
func (t *Wasm) release(idle chan<- struct{}) {
	t.busy.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.module != nil {
		_ = t.module.runtime.Close(context.Background()) // nothing runs in it
		t.module, t.err = nil, errClosed
	}
	close(idle)
}
