package threads

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
