package toolhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/tool"
)

// newWorking returns a rig with that many slots and two tools that wait at its gate: AID.WORK.v1
// after it has worked on "n" bytes, AID.ASIDE.v1 without its place.
func newWorking(t *testing.T, slots int, timeout time.Duration) (r *rig) {
	work := func(ctx context.Context, c *tool.Call) tool.Result {
		n, _ := strconv.ParseInt(strings.Trim(string(c.Input), `{"n:}`), 10, 64)
		if tool.Worked(ctx, n/2) != nil || tool.Worked(ctx, n-n/2) != nil || tool.Worked(ctx, 0) != nil {
			return tool.Fail("no place")
		}
		return r.wait(ctx, c)
	}
	aside := func(ctx context.Context, c *tool.Call) tool.Result {
		why := errors.New("gone")
		if err := tool.Aside(ctx, func() error { r.wait(ctx, c); return why }); err != why {
			return tool.Fail(err.Error())
		}
		return tool.Result{}
	}
	entry := func(aid string, f toolFunc) Entry { return Entry{Descriptor: tool.Descriptor{AID: aid}, Tool: f} }
	r = newRig(t, func(c *Config) {
		c.Executors, c.ToolTimeout = slots, timeout
		c.Registry, _ = NewRegistry([]Entry{entry("AID.WORK.v1", work), entry("AID.ASIDE.v1", aside),
			entry("AID.AWAY.v1", func(context.Context, *tool.Call) tool.Result { return tool.Result{} })})
	})
	return r
}

// taken waits until that many slots of both kinds are taken.
func (r *rig) taken(slots, long int) {
	r.t.Helper()
	x := &r.srv.exec
	for deadline := time.Now().Add(20 * time.Second); len(x.slots) != slots || len(x.long) != long; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d and %d slots are taken, want %d and %d", len(x.slots), len(x.long), slots, long)
		}
	}
}

func worksOn(n int) string { return `{"aid":"AID.WORK.v1","inputs":{"n":` + strconv.Itoa(n) + `}}` }

// TestLongCallsHaveSlotsOfTheirOwn: from longWork+1 bytes on, half as many as there are others;
// further ones wait without any.
func TestLongCallsHaveSlotsOfTheirOwn(t *testing.T) {
	const slots = 4
	r := newWorking(t, slots, 0)
	begin := func(line string, n int) (peers []*peer) {
		for range n {
			p := r.open(Unix)
			p.begin(line)
			peers = append(peers, p)
		}
		return peers
	}
	peers := begin(worksOn(longWork), 1)
	r.awayBegun()
	r.taken(1, 0)
	peers = append(peers, begin(worksOn(longWork+1), 3*slots)...)
	for range slots / 2 {
		r.awayBegun()
	}
	r.taken(1, slots/2)
	r.open(Unix).want(`{"aid":"AID.AWAY.v1"}`, okReply)
	close(r.gate)
	for _, p := range peers {
		if got := p.end(); !strings.HasPrefix(got, `{"ok":true,`) {
			t.Error(got)
		}
	}
	r.awayEnded()
	r.taken(0, 0)
}

// TestLongCallsTakeTurns: one that works on and on does not keep another long one waiting.
func TestLongCallsTakeTurns(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	endless := func(ctx context.Context, _ *tool.Call) tool.Result {
		for n := 0; ; n++ {
			if err := tool.Worked(ctx, longWork); err != nil {
				return tool.Fail(err.Error())
			}
			if n == 1 {
				close(first) // it has the only slot
			}
			select {
			case <-second:
				return tool.Result{}
			default:
			}
		}
	}
	long := func(ctx context.Context, _ *tool.Call) tool.Result {
		if err := tool.Worked(ctx, longWork+1); err != nil {
			return tool.Fail(err.Error())
		}
		close(second)
		return tool.Result{}
	}
	r := newRig(t, func(c *Config) {
		c.Executors = 2
		c.Registry, _ = NewRegistry([]Entry{{Descriptor: tool.Descriptor{AID: "AID.ENDLESS.v1"}, Tool: toolFunc(endless)},
			{Descriptor: tool.Descriptor{AID: "AID.LONG.v1"}, Tool: toolFunc(long)}})
	})
	p, q := r.open(Unix), r.open(Unix)
	p.begin(`{"aid":"AID.ENDLESS.v1"}`)
	<-first
	q.want(`{"aid":"AID.LONG.v1"}`, okReply)
	if got := p.end(); got != okReply {
		t.Error(got)
	}
}

// TestWaitingNeedsNoSlot: a tool that waits for something else holds up no other call, and has a
// slot again for what follows.
func TestWaitingNeedsNoSlot(t *testing.T) {
	r := newWorking(t, 1, 0)
	p, q := r.open(Unix), r.open(Unix)
	p.begin(`{"aid":"AID.ASIDE.v1"}`)
	q.begin(`{"aid":"AID.ASIDE.v1"}`)
	r.awayBegun()
	r.awayBegun()
	r.taken(0, 0)
	r.open(Unix).want(`{"aid":"AID.AWAY.v1"}`, okReply)
	close(r.gate)
	for _, p := range []*peer{p, q} {
		if got := p.end(); !strings.HasPrefix(got, `{"ok":true,`) {
			t.Error(got)
		}
	}
	r.awayEnded()
	r.taken(0, 0)
}

// TestPoliciesDoNotDelayTools: each is a process that may take seconds.
func TestPoliciesDoNotDelayTools(t *testing.T) {
	root := t.TempDir()
	const script = "#!/bin/sh\n: > asked\nwhile [ ! -e go ]; do sleep 0.01; done\necho '<NOOP><END>'\n"
	if err := os.Mkdir(filepath.Join(root, "policies"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "policies", "p.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"MACHINA_POLICY_CMD": "sh policies/p.sh", "MACHINA_POLICY_TIMEOUT_MS": "60000", "PATH": os.Getenv("PATH")}
	r := newRig(t, func(c *Config) {
		c.Executors, c.Policy = 2, selector.PolicyFrom(func(name string) string { return vars[name] }, root, connection.Mono)
	})
	var peers []*peer
	for range 4 {
		p := r.open(Unix)
		p.ask(`{"aid":"_run.open","goal_id":"g","control_mode":"POLICY_ONLY"}`)
		p.begin(`{"aid":"_run.select"}`)
		peers = append(peers, p)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(root, "asked")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("no policy runs")
		}
	}
	r.open(Unix).want(`{"aid":"AID.AWAY.v1"}`, okReply)
	if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		if got := p.end(); !strings.Contains(got, `"ended":"noop"`) {
			t.Error(got)
		}
	}
}

// TestLateLongCalls: at the deadline a long call that hangs gives up its slot, one that waits for a
// slot ends, and one that waits for something else gets none any more.
func TestLateLongCalls(t *testing.T) {
	r := newWorking(t, 2, 50*time.Millisecond)
	var peers []*peer
	for _, line := range []string{worksOn(longWork + 1), worksOn(longWork + 1), `{"aid":"AID.ASIDE.v1"}`} {
		p := r.open(Unix)
		p.begin(line)
		peers = append(peers, p)
	}
	for _, p := range peers {
		if got := p.end(); !strings.Contains(got, `"type":"timeout"`) {
			t.Error(got)
		}
	}
	r.taken(0, 0)
	r.open(Unix).want(`{"aid":"AID.AWAY.v1"}`, okReply)
	close(r.gate)
	r.awayEnded()
	if r.taken(0, 0); r.srv.exec.abandoned.Load() != 0 {
		t.Errorf("%d abandoned after all have ended", r.srv.exec.abandoned.Load())
	}
}

// TestCallsThatWaitAreBounded: so many calls that have begun wait without a slot, for each may have
// files open; one more begins only when one of them has ended, or was abandoned. Those that have
// begun get a slot again, so that one of them that the others wait for ends.
func TestCallsThatWaitAreBounded(t *testing.T) {
	const slots, bound = 2, 2 + 1 + maxWaits
	x := newExecutor(1000, slots, maxWaits)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make([]*place, bound)
	for i := range waiting {
		waiting[i] = &place{x: &x}
		if err := waiting[i].begin(ctx); err != nil {
			t.Fatalf("call %d of %d did not begin: %v", i+1, bound, err)
		}
		waiting[i].Leave()
	}
	refused := func() {
		t.Helper()
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := (&place{x: &x}).begin(soon); err != errLate || len(x.slots) != 0 {
			t.Fatalf("call %d: %v, and %d slots are taken; want it to wait for one of those that have begun", bound+1, err, len(x.slots))
		}
	}
	refused()
	first := waiting[0]
	if err := first.Return(ctx); err != nil {
		t.Fatal("back after a wait:", err)
	}
	if err := first.Worked(ctx, longWork+1); err != nil || len(x.long) != 1 || len(x.slots) != 0 {
		t.Fatalf("a long call: %v, %d and %d slots", err, len(x.slots), len(x.long))
	}
	refused()
	begun := make(chan *place)
	next := func() {
		h := &place{x: &x}
		if err := h.begin(ctx); err != nil {
			t.Error(err)
		}
		h.Leave()
		begun <- h
	}
	go next()
	first.abandon() // its caller has been answered
	waiting[0] = <-begun
	refused()
	go next()
	waiting[1].free()
	waiting[1] = <-begun
	refused()
	first.free()
	for _, h := range waiting {
		h.free()
	}
	if len(x.begun) != 0 || len(x.slots) != 0 || len(x.long) != 0 || x.abandoned.Load() != 0 {
		t.Errorf("%d begun, %d and %d slots, %d abandoned; want none", len(x.begun), len(x.slots), len(x.long), x.abandoned.Load())
	}
}
