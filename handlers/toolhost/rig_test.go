package toolhost

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// The replies of tools that state and change nothing.
const (
	emptyDelta = `,"ds_state":{"delta":true,"slots":{},"removed_slots":[]}`
	okReply    = `{"ok":true,"status":"OK","output_json":"{}","error":""` + emptyDelta + `}`
	hitReply   = `{"ok":true,"status":"OK","output_json":"{}","error":"","idempotent_hit":true` + emptyDelta + `}`
)

func toolReply(ok, status, output, err, rest string) string {
	return `{"ok":` + ok + `,"status":"` + status + `","output_json":"` + output + `","error":"` + err + `"` + rest + `}`
}

func fault(text string) string { return `{"ok":false,"error":"` + text + `"}` }

// brokenDispatch is a failure that counts for a breaker.
var brokenDispatch = &tool.DispatchError{AID: "AID.EXT.v1", Type: tool.Crash}

// toolFunc is a tool made of a function.
type toolFunc func(ctx context.Context, c *tool.Call) tool.Result

func (f toolFunc) Run(ctx context.Context, c *tool.Call) tool.Result { return f(ctx, c) }

// rig is a server with a clock that only the test moves, and the tools below.
type rig struct {
	t     testing.TB
	srv   *Server
	clock atomic.Int64
	// gate is what AID.WAIT.v1 waits for; begun reports that it does.
	gate, begun chan struct{}
	runs        atomic.Int64 // of AID.COUNT.v1, AID.AWAY.v1 and AID.WAIT.v1
	broken      atomic.Bool  // AID.EXT.v1 crashes
	probes      atomic.Int64 // of the breaker: runs while it is half open
	events      events
	breaker     *tool.Breaker
}

type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev.Name+" "+string(ev.Payload))
}

// take returns what was informed since, without the tool.finished events unless they are asked for.
func (e *events) take(finished bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, ev := range e.list {
		if finished || !strings.HasPrefix(ev, "toolhost.tool.finished") {
			b.WriteString(ev + "\n")
		}
	}
	e.list = nil
	return b.String()
}

func newRig(t testing.TB, change func(*Config)) *rig {
	r := &rig{t: t, gate: make(chan struct{}), begun: make(chan struct{}, 4096)}
	r.clock.Store(int64(time.Hour))
	r.breaker = tool.NewBreaker(tool.BreakerConfig{Threshold: 2, Cooldown: time.Second, Now: r.clock.Load})
	reg, err := NewRegistry(r.tools())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Registry: reg, EnforceLeases: EnforceOff, Executors: 8, Events: r.events.add,
		Now: func() connection.Instant { return connection.Instant{Mono: r.clock.Load(), Wall: 1_700_000_000_000} }}
	if change != nil {
		change(&cfg)
	}
	r.srv = New(cfg)
	t.Cleanup(func() { _ = r.srv.Close() })
	return r
}

func (r *rig) pass(d time.Duration) { r.clock.Add(int64(d)) }

func (r *rig) tools() []Entry {
	entry := func(aid string, fast bool, effects string, f toolFunc) Entry {
		return Entry{Descriptor: tool.Descriptor{AID: aid, Name: aid, Fast: fast, SideEffects: []string{effects}, Tags: []string{"tag.meta"}}, Tool: f}
	}
	fail := func(_ context.Context, c *tool.Call) tool.Result {
		c.State.Set(3, sessionstate.Artifact{Type: "half"})
		return tool.Fail("no")
	}
	external := entry("AID.EXT.v1", false, "none", r.external)
	external.External, external.Breaker = true, r.breaker
	guarded := entry("AID.EXT.WRITE.v1", false, "write", r.external)
	guarded.External, guarded.Breaker = true, r.breaker
	return []Entry{
		entry("AID.NOOP.v1", true, "none", func(context.Context, *tool.Call) tool.Result { return tool.Result{} }),
		entry("AID.COUNT.v1", true, "none", r.count), entry("AID.AWAY.v1", false, "none", r.count),
		entry("AID.WRITE.v1", true, "write", r.count), entry("AID.EXEC.v1", true, "exec", r.count),
		entry("AID.SET.v1", true, "none", set), entry("AID.SET.AWAY.v1", false, "none", set),
		entry("AID.INPUT.v1", true, "none", func(_ context.Context, c *tool.Call) tool.Result {
			return tool.Result{Output: append([]byte(nil), c.Input...)}
		}),
		entry("AID.FAIL.v1", true, "none", fail), entry("AID.FAIL.AWAY.v1", false, "none", fail),
		entry("AID.MUTE.v1", true, "none", func(context.Context, *tool.Call) tool.Result {
			return tool.Result{Failure: &tool.Failure{Status: tool.InvalidPick}}
		}),
		entry("AID.PANIC.v1", true, "none", func(context.Context, *tool.Call) tool.Result { panic("boom") }),
		entry("AID.PANIC.AWAY.v1", false, "none", func(context.Context, *tool.Call) tool.Result { panic("boom") }),
		entry("AID.WAIT.v1", false, "none", r.wait), external, guarded,
	}
}

func (r *rig) count(context.Context, *tool.Call) tool.Result { r.runs.Add(1); return tool.Result{} }

// wait is a tool that knows no deadline.
func (r *rig) wait(_ context.Context, c *tool.Call) tool.Result {
	r.runs.Add(1)
	r.begun <- struct{}{}
	<-r.gate
	c.State.Set(7, sessionstate.Artifact{Type: "late"})
	return tool.Result{}
}

// set writes slot 6: {"echo":<input>}.
func set(_ context.Context, c *tool.Call) tool.Result {
	c.State.Set(6, sessionstate.Artifact{Type: "text", Provenance: "set", Content: string(c.Input), Size: int64(len(c.Input))})
	return tool.Result{}
}

func (r *rig) external(_ context.Context, c *tool.Call) tool.Result {
	r.runs.Add(1)
	if st, _ := r.breaker.State(); st == tool.BreakerHalfOpen {
		r.probes.Add(1)
	}
	if r.broken.Load() {
		return tool.Broken(c.AID, tool.Crash, 3, "")
	}
	return tool.Fail("an answer")
}

// peer owns one session, as a loop or a goroutine would.
type peer struct {
	t    testing.TB
	r    *rig
	s    connection.Session
	port *connection.Port
	// wake has a token once the session wants to be pumped.
	wake    chan struct{}
	in, out []byte
	blocked bool
	closed  bool
}

func (r *rig) open(via Transport) *peer { return r.openAs(via, "somebody") }

func (r *rig) openAs(via Transport, principal string) *peer {
	p := &peer{t: r.t, r: r, port: connection.NewPort(1, principal), wake: make(chan struct{}, 1)}
	p.port.SetOwner(p)
	p.s = r.srv.open(p.port, via, principal)
	r.t.Cleanup(p.close)
	return p
}

// Wake implements connection.Owner.
func (p *peer) Wake(*connection.Port) {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *peer) close() {
	if p.s != nil {
		p.port.SetOwner(nil)
		p.s.Closed()
		p.s = nil
	}
}

// feed gives the session what it has not taken, until it wants no more. What was lent is
// overwritten afterwards.
func (p *peer) feed() {
	for !p.blocked && !p.closed {
		lent := append([]byte(nil), p.in...)
		used, out, v := p.s.Feed(lent, p.out, connection.Now())
		for i := range lent {
			lent[i] = 0xcc
		}
		p.in, p.out = p.in[used:], out
		p.blocked, p.closed = v == connection.Blocked, v == connection.Close
		if v == connection.More {
			return
		}
	}
}

// pump waits for news of the session and takes them.
func (p *peer) pump() {
	p.t.Helper()
	select {
	case <-p.wake:
	case <-time.After(20 * time.Second):
		p.t.Fatal("nothing wakes the session")
	}
	p.port.Rearm()
	p.out, _ = p.s.Pump(p.out, connection.DefaultChunkBytes, connection.Now())
	p.blocked = false
}

// begin sends lines and does not wait for what leaves the loop.
func (p *peer) begin(lines ...string) {
	for _, line := range lines {
		p.in = append(append(p.in, line...), '\n')
	}
	p.feed()
}

// end waits for what was begun and returns the replies.
func (p *peer) end() string {
	p.t.Helper()
	for p.blocked {
		p.pump()
		p.feed()
	}
	replies := string(p.out)
	p.out = p.out[:0]
	return strings.TrimSuffix(replies, "\n")
}

func (p *peer) ask(lines ...string) string {
	p.t.Helper()
	p.begin(lines...)
	return p.end()
}

// want asks one line.
func (p *peer) want(line, reply string) {
	p.t.Helper()
	if got := p.ask(line); got != reply {
		p.t.Errorf("%.200s\n got %.600s\nwant %.600s", line, got, reply)
	}
}

// awayBegun waits until AID.WAIT.v1 runs.
func (r *rig) awayBegun() {
	r.t.Helper()
	select {
	case <-r.begun:
	case <-time.After(20 * time.Second):
		r.t.Fatal("the tool does not run")
	}
}

// awayEnded waits until nothing runs off the loops.
func (r *rig) awayEnded() {
	for r.srv.exec.pending.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// state returns the slots that the session holds.
func (p *peer) state() string {
	st := p.s.(*session).state
	return string(st.AppendSnapshot(nil))
}
