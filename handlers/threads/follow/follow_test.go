package follow

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/runtime"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// keys is a Verifier whose tokens are valid until revoked.
type keys struct {
	generation atomic.Uint64
	revoked    atomic.Bool
}

func (k *keys) Generation() uint64 { return k.generation.Load() }

func (k *keys) VerifyKnown(string) (*token.Claims, error) {
	if k.revoked.Load() {
		return nil, token.ErrOutOfScope
	}
	return &token.Claims{}, nil
}

// rig is a server over state that is kept in memory.
type rig struct {
	t      *testing.T
	rt     *runtime.Runtime
	keys   keys
	thread []byte
	*Server
}

var lead = &token.Claims{Agent: "lead", Workspace: "w", Session: "s", Role: token.Coordinator, Expires: 1 << 40}

func newRig(t *testing.T, maxWaits int) *rig {
	r := &rig{t: t, rt: runtime.New(runtime.Config{})}
	if err := r.rt.OpenRows("", nil); err != nil {
		t.Fatal(err)
	}
	r.rt.Threads.Start()
	r.Server = New(Config{Engine: r.rt.Threads, Verifier: &r.keys, MaxWaits: maxWaits})
	r.thread = r.create()
	t.Cleanup(func() {
		r.rt.Threads.Close()
		_ = r.rt.CloseRows()
	})
	return r
}

func (r *rig) create() []byte {
	a := actor(lead)
	id, _, ref := r.rt.Threads.Create(&a, &threadstore.NewThread{Title: []byte("x"), Participants: [][]byte{[]byte("lead")}}, 1)
	if ref.Code != threadstore.OK {
		r.t.Fatal(ref)
	}
	return []byte(id)
}

func (r *rig) post(thread []byte) {
	a := actor(lead)
	if _, ref := r.rt.Threads.Post(&a, thread, &threadstore.Post{Body: []byte("x")}, 1); ref.Code != threadstore.OK {
		r.t.Fatal(ref)
	}
}

func (r *rig) wait(since uint64, d time.Duration) *method.Fault {
	return r.Wait(r.t.Context(), lead, "token", &method.Wait{Thread: r.thread, Since: since, For: d})
}

// TestWaitsAreBounded: MaxWaits calls wait, one more is refused with the time after which it may be
// repeated; what ends a wait gives its place back.
func TestWaitsAreBounded(t *testing.T) {
	r := newRig(t, 2)
	done := make(chan *method.Fault, 3)
	for range 2 {
		go func() { done <- r.wait(0, time.Minute) }()
	}
	for n := int64(0); n < 2; n, _ = r.Counts() {
		time.Sleep(time.Millisecond)
	}
	if f := r.wait(0, time.Minute); f == nil || f.Condition != method.RateLimited || string(f.Details) != `{"retry_after_ms":1000}` {
		t.Errorf("one too many: %+v", f)
	}
	r.post(r.thread)
	for range 2 {
		if f := <-done; f != nil {
			t.Errorf("a wait that a message ends: %+v", f)
		}
	}
	if f := r.wait(0, time.Minute); f != nil {
		t.Errorf("with a message: %+v", f)
	}
	if f := r.wait(1, time.Millisecond); f != nil {
		t.Errorf("when the time is up: %+v", f)
	}
	go func() { done <- r.wait(1, time.Minute) }()
	r.Drain()
	if f := <-done; f != nil {
		t.Errorf("when the server stops: %+v", f)
	}
	if n, _ := r.Counts(); n != 0 {
		t.Errorf("%d waits are left", n)
	}
}

// TestLeases: a lease ends when its token expires, or is revoked, within a second, and once.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keys{}
		s := New(Config{Verifier: k, Skew: time.Second})
		ended := make(chan string, 8)
		hold := func(name string, expires time.Time) *Lease {
			return s.Hold(&token.Claims{Expires: float64(expires.Unix())}, name, func(f *method.Fault) { ended <- name + string(f.Condition.Codes().Spec) })
		}
		began := time.Now()
		hold("short", began.Add(4*time.Second))
		released, long := hold("released", began.Add(4*time.Second)), hold("long", began.Add(time.Hour))
		released.Release()
		released.Release()
		(*Lease)(nil).Release()
		if got, took := <-ended, time.Since(began); got != "shortUNAUTHORIZED" || took < 5*time.Second || took > 6*time.Second {
			t.Errorf("%s ends after %s", got, took)
		}
		time.Sleep(10 * time.Second)
		k.generation.Add(1)
		time.Sleep(time.Second)
		if len(ended) != 0 {
			t.Errorf("%s ended with a token that is valid", <-ended)
		}
		k.revoked.Store(true)
		k.generation.Add(1)
		time.Sleep(time.Second)
		s.leases.mu.Lock()
		if len(ended) != 1 || len(s.leases.held) != 0 || s.leases.running {
			t.Errorf("%d ended after the revocation, %d are held, running %t", len(ended), len(s.leases.held), s.leases.running)
		}
		s.leases.mu.Unlock()
		long.Release()
	})
}

// reader is a Reader that keeps what it reads.
type reader struct {
	ready chan struct{}
	text  []byte
}

func (r *reader) Ready() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

func (r *reader) Frame(thread string, _ bool) threadstore.Frame {
	return threadstore.Frame{Before: func(dst []byte, seq uint64) []byte { return fmt.Appendf(dst, "%s:%d ", thread, seq) }}
}

// TestFollowersAreBounded: a stream of all threads that is maxBehind ranges behind goes on, one
// that is further behind ends.
func TestFollowersAreBounded(t *testing.T) {
	for _, c := range []struct {
		ranges int
		ends   bool
	}{{maxBehind, false}, {maxBehind + 1, true}} {
		r := newRig(t, 1)
		var f Follower
		in := &reader{ready: make(chan struct{}, 1)}
		if fault := f.Begin(r.Server, lead, nil, 0, in); fault != nil {
			t.Fatal(fault)
		}
		for i := range c.ranges {
			f.Changed(fmt.Sprint("th_", i), 1, 1)
		}
		if _, step := f.Next(nil, 100, true); (step.Fault != nil) != c.ends {
			t.Errorf("%d ranges behind: %+v", c.ranges, step.Fault)
		}
		f.Close()
		f.Close()
		if _, n := r.Counts(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	}
}
