package threadstore

import (
	"context"
	"testing"
)

// TestClockGoesBack: what waits for a time does not wait for the hours by which the clock was set
// back.
func TestClockGoesBack(t *testing.T) {
	r := newRig(t, Config{PostsPerAgent: 1, PostsPerThread: 1})
	id := r.create()
	r.beat(alice, live)
	r.post(bob, id, "x", "")
	for range DefaultTriggers.PerMinute {
		r.trigger(id, "r", "")
		r.Finish(r.claimOne().ID, "", r.now)
	}
	r.trigger(id, "retried", "")
	r.now -= 3600_000
	if a := r.claimOne(); a == nil {
		t.Error("a job is not due any more")
	} else {
		r.Finish(a.ID, "", r.now)
	}
	if p := r.post(bob, id, "y", ""); p.Seq != 2 || p.At != r.now+3600_000 {
		t.Errorf("%+v", p)
	}
	if list, err := r.Claim(context.Background(), 10, 10, r.now); len(list) > 0 || err != nil {
		t.Error(list, err)
	}
}

// TestKeyWindow: a key is known until its window is over, whether or not it was removed then.
func TestKeyWindow(t *testing.T) {
	for _, window := range []int64{0, 1000} {
		r := newRig(t, Config{KeyWindow: window, HotBytes: 1, segment: 200})
		id := r.create()
		first := r.post(alice, id, "x", "k")
		r.sync()
		r.store()
		want := func(after int64, known bool) {
			t.Helper()
			r.now += after
			if p := r.post(alice, id, "x", "k"); p.Replay != known || known && (p.Seq != first.Seq || p.At != first.At || p.id != first.id) {
				t.Errorf("window %d, after %d ms: %+v", window, after, p)
			}
		}
		if want(999, true); window == 0 {
			want(1<<40, true)
			continue
		}
		want(-2000, true) // the clock was set back
		want(2001, false)
		first = r.post(alice, id, "x", "k") // the later message
		want(999, true)
		want(1, false)
	}
}
