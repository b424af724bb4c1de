package kernel

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hooked is a rig that also records what Config.Ended and Config.Removed get.
type hooked struct {
	*rig
	reported []string
}

func newHooked(t testing.TB, cfg Config) *hooked {
	h := &hooked{}
	hook := func(what string) func([]byte) {
		return func(pid []byte) {
			h.reported = append(h.reported, what+" "+string(pid))
			if h.k.mu.TryLock() {
				t.Errorf("%s %s: reported without the scheduling lock", what, pid)
				h.k.mu.Unlock()
			}
		}
	}
	cfg.Ended, cfg.Removed = hook("ended"), hook("removed")
	if cfg.Defaults == (Quota{}) {
		cfg.Defaults = unlimited()
	}
	h.rig = newRig(t, cfg)
	return h
}

// hears checks what was reported since the last call.
func (h *hooked) hears(want ...string) {
	h.t.Helper()
	h.want("reported", strings.Join(h.reported, ", "), strings.Join(want, ", "))
	h.reported = nil
}

func (h *hooked) terminate(pid string, want Result) {
	h.t.Helper()
	if got := h.k.Terminate(h.now, []byte(pid), []byte("why"), nil); got != want {
		h.t.Fatalf("terminate %s: got %v, want %v", pid, got, want)
	}
}

// TestEndedHook: it is called for every way to TERMINATED, and of a Terminate that finds a process
// ended, for the caller who repeats it may be the first to be heard beside the kernel.
func TestEndedHook(t *testing.T) {
	h := newHooked(t, Config{})
	for i, path := range [][]State{{}, {Running}, {Running, Waiting}, {Running, Blocked}} {
		h.mk(fmt.Sprint("t", i), path...)
		h.mk(fmt.Sprint("k", i), path...)
		h.hears()
		h.to(fmt.Sprint("t", i), Terminated, OK)
		h.hears(fmt.Sprint("ended t", i))
		h.terminate(fmt.Sprint("k", i), OK)
		h.hears(fmt.Sprint("ended k", i))
	}
	a := args("new", Normal)
	a.NoSchedule = true
	h.k.Create(h.now, a, nil)
	h.to("new", Terminated, OK)
	h.hears("ended new")
	h.terminate("new", OK)
	h.hears("ended new")
	h.to("new", Zombie, OK)
	h.hears()
	h.terminate("new", OK)
	h.hears("ended new")
}

// TestHooksAreNotTold: nothing else calls them, nor does what is refused.
func TestHooksAreNotTold(t *testing.T) {
	h := newHooked(t, Config{DequeueLease: time.Second})
	h.mk("p", Running, Ready, Running, Waiting, Ready, Running, Blocked, Ready)
	h.next(false)
	h.after(2 * time.Second) // the lease ends
	h.next(true)
	h.k.Schedule(h.now, []byte("p"), nil)
	h.k.Get([]byte("p"), nil, nil)
	h.k.Counts(h.now)
	h.to("p", Zombie, BadTransition)
	h.to("ghost", Terminated, NotFound)
	h.terminate("ghost", NotFound)
	h.want("create", h.create("p", Normal).String(), AlreadyExists.String())
	h.k.RecordUsage(h.now, []byte("p"), nil, &Usage{LLMCalls: 1}, nil)
	h.k.Sweep(h.now)
	h.hears()
	h.to("p", Terminated, OK)
	h.hears("ended p")
	h.to("p", Terminated, BadTransition)
	h.to("p", Ready, BadTransition)
	h.hears()
}

// TestRemovedHook: garbage collection and eviction report each process they drop, once, oldest
// completion first.
func TestRemovedHook(t *testing.T) {
	h := newHooked(t, Config{MaxProcesses: 3, ProcessRetention: time.Minute})
	h.mk("a")
	h.mk("b")
	h.mk("c")
	h.want("create", h.create("d", Normal).String(), TableFull.String())
	h.hears()
	h.terminate("b", OK)
	h.after(time.Second)
	h.terminate("a", OK)
	h.hears("ended b", "ended a")
	h.mk("d") // b makes room
	h.hears("removed b")
	h.want("b", h.state("b"), NotFound.String())
	h.after(59 * time.Second)
	h.k.Sweep(h.now)
	h.hears()
	h.after(time.Second + 1)
	h.k.Sweep(h.now)
	h.hears("removed a")
	h.k.Sweep(h.now)
	h.hears()
	h.want("counts", h.counts(), "READY:2 total:2 queue:2")
}

// TestRefusedCreateRemovesNothing: a create that the rate limiter refuses at a full table drops
// no one.
func TestRefusedCreateRemovesNothing(t *testing.T) {
	q := unlimited()
	q[RateLimitBurst] = 2
	h := newHooked(t, Config{MaxProcesses: 2, Defaults: q})
	h.mk("a/u")
	h.mk("b/u")
	h.terminate("a", OK)
	h.hears("ended a")
	h.want("create", h.create("c/u", Normal).String(), RateLimited.String())
	h.hears()
	h.want("create", h.create("c/v", Normal).String(), OK.String())
	h.hears("removed a")
}

// TestReplayTellsNobody: what a journal brings back was reported when it happened.
func TestReplayTellsNobody(t *testing.T) {
	h := newHooked(t, Config{MaxProcesses: 2, ProcessRetention: time.Minute})
	h.mk("a", Running)
	h.terminate("a", OK)
	h.mk("b", Running, Blocked, Terminated, Zombie)
	h.mk("c") // a makes room
	h.after(time.Hour)
	h.k.Sweep(h.now)
	h.hears("ended a", "ended b", "removed a", "removed b")
	cfg := h.k.cfg
	cfg.Journal = nil
	loud := func([]byte) { t.Error("a hook was reported while replaying") }
	cfg.Ended, cfg.Removed = loud, loud
	k := h.replayed(cfg)
	if got, want := k.Counts(h.now), h.k.Counts(h.now); got != want {
		t.Errorf("replayed: %+v, want %+v", got, want)
	}
}

// TestHooksAreOptional: without them everything goes on, and a pid in a report is lent.
func TestHooksAreOptional(t *testing.T) {
	r := newRig(t, Config{MaxProcesses: 1, Defaults: unlimited()})
	r.mk("a", Terminated)
	r.mk("b")
	var kept []byte
	k := New(Config{Ended: func(pid []byte) { kept = bytes.Clone(pid) }, Defaults: unlimited()})
	pid := []byte("p")
	k.Create(at(0), args("p", Normal), nil)
	k.Terminate(at(0), pid, nil, nil)
	pid[0] = 'x'
	r.want("reported", string(kept), "p")
}
