package orchestration

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// TestWaitingIndex: a session that no longer waits is not in the index, whatever ended the wait.
func TestWaitingIndex(t *testing.T) {
	f := func(name string, do func(r *rig)) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{MaxSessions: 3, SessionRetention: time.Minute})
			id, code := r.create(asks)
			r.ok(code)
			for _, pid := range []string{"p", "q"} {
				r.ok(r.init(pid, envOf(id, asks), false))
			}
			if n := len(r.o.waiting.byID[id]); n != 2 {
				t.Fatalf("%d wait", n)
			}
			r.audit(true)
			do(r)
			r.audit(true)
			for pid := range strings.SplitSeq("pq", "") {
				r.o.ProcessRemoved([]byte(pid))
			}
			if len(r.o.waiting.byID) != 0 {
				t.Errorf("%d identifiers are waited with", len(r.o.waiting.byID))
			}
		})
	}
	left := func(r *rig, want int) {
		n := 0
		for _, list := range r.o.waiting.byID {
			n += len(list)
		}
		if n != want {
			r.t.Errorf("%d sessions wait, want %d", n, want)
		}
	}
	id := func(r *rig) (id string) {
		for id = range r.o.waiting.byID {
		}
		return id
	}
	f("answered", func(r *rig) { r.ok(r.update(envOf(id(r), ``))); left(r, 0) })
	f("still pending", func(r *rig) { r.ok(r.update(envOf(id(r), asks))); left(r, 2) })
	f("process ended", func(r *rig) { r.o.Cancel([]byte("p")); r.o.ProcessEnded(&r.c, []byte("p")); left(r, 1) })
	f("cancelled", func(r *rig) {
		r.o.Cancel([]byte("p"))
		left(r, 2)
		_, code := r.o.State(&r.c, []byte("p"), nil)
		r.ok(code)
		left(r, 1)
	})
	f("cancelled, then answered", func(r *rig) {
		r.o.Cancel([]byte("p"))
		r.ok(r.update(envOf(id(r), ``)))
		left(r, 0)
		_, code := r.o.State(&r.c, []byte("p"), nil)
		r.ok(code)
		if s := r.session("p"); s.state != terminated {
			r.t.Errorf("state %d", s.state)
		}
	})
	f("removed", func(r *rig) { r.o.ProcessRemoved([]byte("p")); left(r, 1) })
	f("replaced by one that runs", func(r *rig) { r.ok(r.init("p", envOf(id(r), ""), true)); left(r, 1) })
	f("replaced by one that waits", func(r *rig) { r.ok(r.init("p", envOf("other", asks), true)); left(r, 2) })
	f("swept", func(r *rig) {
		r.after(25 * time.Hour)
		r.o.Sweep(r.c.Now)
		left(r, 0)
	})
	f("refused", func(r *rig) {
		r.ok(r.init("third", envOf("other", asks), false))
		r.want(r.init("fourth", envOf("other", asks), false), wire.ResourceExhausted)
		r.want(r.init("p", envOf("other", asks), false), wire.InvalidArgument)
		left(r, 3)
		r.o.ProcessRemoved([]byte("third"))
	})
}

// TestGoneIsLookedUpAgain: a request that found a session just before another took its place goes
// to the other.
func TestGoneIsLookedUpAgain(t *testing.T) {
	f := func(name string, do func(r *rig), want func(body []byte, code wire.Code) bool) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{SessionRetention: time.Minute})
			r.ok(r.init("p", envOf("first", ""), false))
			old := r.session("p")
			old.mu.Lock()
			type answer struct {
				body []byte
				code wire.Code
			}
			done := make(chan answer)
			go func() {
				c := &Call{Now: r.c.Now}
				c.Now.Mono++
				body, code := r.o.Next(c, []byte("p"), nil)
				done <- answer{body, code}
			}()
			for r.touched("p") != r.c.Now.Mono+1 { // until it has found the session and waits for it
				runtime.Gosched()
			}
			do(r)
			if !old.gone.Load() {
				t.Error("nobody was told")
			}
			old.mu.Unlock()
			if a := <-done; !want(a.body, a.code) {
				t.Errorf("%s %q", a.code, a.body)
			}
		})
	}
	f("replaced", func(r *rig) { r.ok(r.init("p", envOf("second", ""), true)) }, func(body []byte, code wire.Code) bool {
		return code == wire.OK && bytes.Contains(body, []byte("second"))
	})
	gone := func(_ []byte, code wire.Code) bool { return code == wire.NotFound }
	f("removed", func(r *rig) { r.o.ProcessRemoved([]byte("p")) }, gone)
	f("swept", func(r *rig) {
		r.after(time.Hour)
		r.o.Sweep(r.c.Now)
	}, gone)
}

func (r *rig) touched(pid string) int64 {
	e := r.o.sessions.Acquire([]byte(pid))
	defer e.Release()
	return e.Touched()
}

// TestEndsOnce: a session whose process ended is ended by the one that comes first, and not ended
// again.
func TestEndsOnce(t *testing.T) {
	pid := []byte("p")
	calls := map[string]func(r *rig) wire.Code{
		"Next":         func(r *rig) wire.Code { _, code := r.o.Next(&r.c, pid, nil); return code },
		"State":        func(r *rig) wire.Code { _, code := r.o.State(&r.c, pid, nil); return code },
		"Report":       func(r *rig) wire.Code { return r.report("p", "a1", `{}`) },
		"ProcessEnded": func(r *rig) wire.Code { r.o.Cancel(pid); r.o.ProcessEnded(&r.c, pid); return wire.OK },
	}
	for _, more := range []string{"", asks} {
		for first, call := range calls {
			r := newRig(t, Config{})
			r.ok(r.init("p", envOf("e", more), false))
			r.o.Cancel(pid)
			r.o.Cancel([]byte("nobody"))
			r.after(time.Second)
			r.ok(call(r))
			s := r.session("p")
			if s.state != terminated || string(s.reason) != "USER_CANCELLED" || !bytes.Contains(s.env, []byte(processTerminated)) {
				t.Fatalf("%s: state %d, reason %s, %q", first, s.state, s.reason, s.env)
			}
			r.audit(true)
			after := r.print()
			for _, again := range calls {
				r.after(time.Second)
				r.o.Cancel(pid)
				r.ok(again(r))
			}
			if r.print() != after {
				t.Errorf("%s ended it, another ended it again", first)
			}
			r.ok(r.init("p", envOf("e", ""), true)) // what takes its place is not cancelled
			_, code := r.o.Next(&r.c, pid, nil)
			r.ok(code)
			if s := r.session("p"); s.state != running {
				t.Errorf("the new session has state %d", s.state)
			}
		}
	}
}

// TestStaysEnded: the end of a process has no effect on a session that ended for another
// reason.
func TestStaysEnded(t *testing.T) {
	r := newRig(t, Config{})
	r.ok(r.init("p", envOf("e", `,"terminated":true,"terminal_reason":"COMPLETED"`), false))
	before := r.print()
	r.o.Cancel([]byte("p"))
	r.o.Cancel([]byte("p"))
	r.o.ProcessEnded(&r.c, []byte("p"))
	if r.print() != before {
		t.Error("it ended twice")
	}
}

// TestRefusedLeavesAll: whatever is refused changes neither what is held nor what is counted.
func TestRefusedLeavesAll(t *testing.T) {
	r := newRig(t, Config{MaxReply: 4000, MaxSessions: 3, MaxEnvelopes: 1})
	r.ok(r.init("runs", envOf("e", ""), false))
	r.ok(r.report("runs", "a1", `{"v":1}`))
	r.ok(r.init("waits", envOf("e", asks), false))
	r.ok(r.init("third", envOf("e", asks), false))
	id, code := r.create(asks)
	r.ok(code)
	before := r.print()
	large := `{"v":"` + strings.Repeat("x", 4000) + `"}`
	f := func(want wire.Code, got wire.Code) {
		t.Helper()
		r.want(got, want)
		if r.print() != before {
			t.Errorf("refused with %s, and something changed", r.c.Msg)
		}
		r.audit(true)
	}
	f(wire.FailedPrecondition, r.report("runs", "a1", `{"v":2}`))
	f(wire.FailedPrecondition, r.report("waits", "a1", `{"v":2}`))
	f(wire.NotFound, r.report("nobody", "a1", `{"v":2}`))
	f(wire.ResourceExhausted, r.report("runs", "a2", large))
	f(wire.InvalidArgument, r.init("runs", envOf("e", ""), false))
	f(wire.ResourceExhausted, r.init("runs", envOf("e", `,"raw_input":`+large[5:len(large)-1]), true))
	f(wire.InvalidArgument, r.init("runs", envOf("e", `,"iteration":-1`), true))
	f(wire.ResourceExhausted, r.init("fourth", envOf("e", asks), false))
	f(wire.InvalidArgument, r.initWith("runs", `{"name":""}`))
	f(wire.InvalidArgument, r.initWith("runs", `{"name":"n","agents":[{"name":"s","routing":[{"target":"x"}]}]}`))
	f(wire.NotFound, r.update(envOf("nobody", "")))
	f(wire.InvalidArgument, r.update(envOf(id, `,"iteration":"1"`)))
	f(wire.ResourceExhausted, r.update(envOf(id, `,"metadata":`+large)))
	_, code = r.create("")
	f(wire.ResourceExhausted, code)
	_, code = r.create(`,"metadata":` + large)
	f(wire.ResourceExhausted, code)
	_, code = r.o.ExecutePipeline(&r.c, asMap(envOf("runs", "")), asMap(around), nil)
	f(wire.InvalidArgument, code)
	_, code = r.o.ExecutePipeline(&r.c, asMap(envOf("", "")), asMap(around), nil)
	f(wire.InvalidArgument, code)
	_, code = r.o.CreateEnvelope(&r.c, &CreateArgs{StageOrder: pack(`["a",""]`)}, nil)
	f(wire.InvalidArgument, code)
}

func (r *rig) initWith(pid, config string) wire.Code {
	_, code := r.o.Initialize(&r.c, &InitArgs{ProcessID: []byte(pid), Config: asMap(config), Envelope: asMap(envOf("e", "")), Force: true}, nil)
	return code
}

// TestReleaseLetsGo: an idle Call keeps scratch of ordinary size and nothing it was lent.
func TestReleaseLetsGo(t *testing.T) {
	f := func(n int, kept bool) {
		t.Helper()
		r := newRig(t, Config{})
		r.ok(r.init("p", envOf("e", ""), false))
		fill := strings.Repeat("x", n)
		text := mpack.Value{Kind: mpack.Str, Data: []byte(envOf("e", `,"raw_input":"`+fill+`"`))}
		if _, code := r.o.CloneEnvelope(&r.c, text, nil); code != wire.OK {
			t.Fatal(code)
		}
		_, code := r.o.Report(&r.c, &Report{ProcessID: []byte("p"), AgentName: []byte("a1"), Failed: true, Error: []byte(fill)}, nil)
		r.ok(code)
		r.c.refuse(wire.Internal, fill, nil, "")
		for name, b := range map[string][]byte{"buf": r.c.buf, "text": r.c.text, "output": r.c.output, "failure": r.c.failure, "Msg": r.c.Msg} {
			if cap(b) < n {
				t.Errorf("%s was not used: %d", name, cap(b))
			}
		}
		r.c.Release()
		for name, b := range map[string][]byte{"buf": r.c.buf, "text": r.c.text, "output": r.c.output, "failure": r.c.failure, "Msg": r.c.Msg} {
			if (cap(b) > 0) != kept || cap(b) > keptScratch {
				t.Errorf("%s keeps %d bytes of %d", name, cap(b), n)
			}
		}
	}
	f(10_000, true)
	f(keptScratch+1, false)
}

// TestIDsAreLocked: an update waits for the one that has the lock of its envelope's identifier, and
// comes after.
func TestIDsAreLocked(t *testing.T) {
	r := newRig(t, Config{})
	id, code := r.create("")
	r.ok(code)
	lock := r.o.lockID([]byte(id))
	done := make(chan wire.Code)
	go func() {
		_, code := r.o.UpdateEnvelope(&Call{Now: r.c.Now}, asMap(envOf(id, `,"raw_input":"second"`)), nil)
		done <- code
	}()
	c := &Call{Now: r.c.Now}
	for range 100 {
		runtime.Gosched()
		first := pack(envOf(id, `,"raw_input":"first"`))
		r.ok(r.o.replace(c, []byte(id), first, classOf(false), false))
		if v, _ := r.o.envelopes.Get([]byte(id)); !bytes.Equal(v.encoded, first) {
			t.Fatal("an update did not wait")
		}
	}
	lock.Unlock()
	r.ok(<-done)
	if v, _ := r.o.envelopes.Get([]byte(id)); !bytes.Contains(v.encoded, []byte("second")) {
		t.Error("the update was lost")
	}
	r.audit(true)
}
