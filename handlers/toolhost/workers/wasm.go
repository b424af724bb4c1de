package workers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"trunkline/handlers/toolhost/tool"
)

const (
	// MaxModuleBytes is the largest module that is compiled.
	MaxModuleBytes = 64 << 20
	// wasmPages is the memory of an instance: 64 MiB in pages of 64 KiB (toolhost §4.9).
	wasmPages = 1024
	// DefaultInstances is how many instances of one module run at a time, each with its memory.
	DefaultInstances = 4
	// trapCode is the exit code of a module that ran into a trap: that of a program that was aborted.
	trapCode = 128 + 6
)

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
// it; what runs later is that, whatever becomes of the file. Every call has an instance of its own, which sees nothing of the
// system but its standard streams, clocks and random numbers. Any number of goroutines may call Run at once.
type Wasm struct {
	cfg    WasmConfig
	slots  chan struct{}
	ctx    context.Context // ended by Close
	cancel context.CancelFunc

	mu      sync.Mutex
	loading chan struct{} // closed when an attempt to compile has ended; nil if none is under way
	module  *module
	err     error // of the last attempt
}

// module is compiled code and the runtime it belongs to.
type module struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// NewWasm returns a tool whose module is not looked at yet. Close ends it.
func NewWasm(cfg WasmConfig) (*Wasm, error) {
	if cfg.Module == "" {
		return nil, errors.New("cannot run a module without a path")
	}
	if cfg.Instances <= 0 {
		cfg.Instances = DefaultInstances
	}
	t := &Wasm{cfg: cfg, slots: make(chan struct{}, cfg.Instances)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Warm compiles the module.
func (t *Wasm) Warm() error {
	_, err := t.load(t.ctx)
	return err
}

// Run runs the call in a new instance. It waits for a place and for the compiler until ctx is done, at most DefaultTimeout if ctx has
// no deadline; then the instance is interrupted. What it returns when that failed is a dispatch error of toolhost §3.5.
func (t *Wasm) Run(ctx context.Context, c *tool.Call) tool.Result {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	m, err := t.load(ctx)
	if err != nil {
		return notRun(c.AID, err)
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return notRun(c.AID, errNoWorker)
	case <-t.ctx.Done():
		return notRun(c.AID, errClosed)
	}
	if t.ctx.Err() != nil {
		return notRun(c.AID, errClosed) // the runtime may be closed
	}
	return t.instance(ctx, m, c)
}

// instance runs the call. The caller has a slot, which keeps the runtime open.
func (t *Wasm) instance(ctx context.Context, m *module, c *tool.Call) tool.Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	var errs tail
	out := capped{full: cancel}
	request := appendRequest(nil, c, t.cfg.Stateless)
	streams := wazero.NewModuleConfig().WithName("").WithArgs(c.AID).
		WithStdin(bytes.NewReader(request)).WithStdout(&out).WithStderr(&errs).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) })
	instance, err := m.runtime.InstantiateModule(ctx, m.code, streams)
	if instance != nil {
		_ = instance.Close(context.WithoutCancel(ctx)) // its memory; nothing was written to it that could be lost
	}
	code, trapped := wasmExit(err)
	switch {
	case out.over:
		return tool.Broken(c.AID, tool.ParseError, 0, errs.String())
	case t.ctx.Err() != nil && err != nil:
		return tool.Broken(c.AID, tool.Crash, killed, errs.String())
	case ctx.Err() != nil && err != nil:
		return tool.Broken(c.AID, tool.Timeout, 0, errs.String())
	case instance == nil: // what it imports is not there
		return tool.Broken(c.AID, tool.NotFound, 0, trapped)
	case code != 0:
		return tool.Broken(c.AID, tool.Crash, code, errs.String()+trapped)
	}
	r, ok := parseReply(out.text(), c, t.cfg.Stateless)
	if !ok {
		return tool.Broken(c.AID, tool.ParseError, 0, errs.String())
	}
	return r
}

// wasmExit returns the exit code of an instance, and what a trap has to say.
func wasmExit(err error) (code int, trapped string) {
	if err == nil {
		return 0, ""
	}
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
		return int(exit.ExitCode()), ""
	}
	return trapCode, err.Error()
}

// sleep is what an instance sleeps with: the deadline wakes it.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// capped keeps what an instance writes to stdout, up to a reply and its end; more ends the instance.
type capped struct {
	buf  []byte
	over bool
	full func()
}

// Write takes all of p or, if that would be too much, nothing.
func (o *capped) Write(p []byte) (int, error) {
	if o.over || len(o.buf)+len(p) > MaxReply+len("\r\n") {
		o.over = true
		o.full()
		return 0, io.ErrShortWrite
	}
	o.buf = append(o.buf, p...)
	return len(p), nil
}

// text returns the reply without its line's end; over is set if that is too long.
func (o *capped) text() []byte {
	text := bytes.TrimSuffix(bytes.TrimSuffix(o.buf, []byte{'\n'}), []byte{'\r'})
	if len(text) > MaxReply {
		return nil // no reply
	}
	return text
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
		go t.compile(t.loading)
	}
	loading := t.loading
	t.mu.Unlock()
	select {
	case <-loading:
	case <-ctx.Done():
		return nil, errNoWorker
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.module, t.err
}

func (t *Wasm) compile(done chan<- struct{}) {
	m, err := compileFile(t.cfg.Module, t.cfg.SHA256)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.module, t.err, t.loading = m, err, nil
	if m != nil && t.ctx.Err() != nil {
		_ = m.runtime.Close(context.Background()) // nothing runs in it
		t.module, t.err = nil, errClosed
	}
	close(done)
}

// errModule is the error of a file that cannot be run.
var errModule = errors.New("not a module that can be run")

func compileFile(path, sum string) (*module, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	code, err := io.ReadAll(io.LimitReader(f, MaxModuleBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errModule, err)
	}
	if len(code) > MaxModuleBytes {
		return nil, fmt.Errorf("%w: larger than 64 MiB", errModule)
	}
	if have := sha256.Sum256(code); sum != "" && hex.EncodeToString(have[:]) != sum {
		return nil, errHash
	}
	return compile(code)
}

func compile(code []byte) (*module, error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(wasmPages).WithCloseOnContextDone(true))
	_, err := wasi_snapshot_preview1.Instantiate(ctx, r)
	if err == nil {
		var compiled wazero.CompiledModule
		if compiled, err = r.CompileModule(ctx, code); err == nil {
			return &module{runtime: r, code: compiled}, nil
		}
	}
	_ = r.Close(ctx) // nothing runs in it
	return nil, fmt.Errorf("%w: %w", errModule, err)
}

// Close interrupts what runs, waits for it, and gives the memory back. Later calls are refused. It may be called again.
func (t *Wasm) Close() error {
	t.cancel()
	for range cap(t.slots) {
		t.slots <- struct{}{}
	}
	defer func() {
		for range cap(t.slots) {
			<-t.slots
		}
	}()
	t.mu.Lock()
	loading := t.loading
	t.mu.Unlock()
	if loading != nil {
		timer := time.NewTimer(closeGrace)
		defer timer.Stop()
		select {
		case <-loading:
		case <-timer.C: // the compiler cannot be interrupted; what it makes is thrown away
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.module == nil {
		return nil
	}
	m := t.module
	t.module = nil
	return m.runtime.Close(context.Background())
}
