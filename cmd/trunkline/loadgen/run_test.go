package loadgen

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCoordinatedOmission: a server that stalls for one second of ten shows it in the tail of a
// load that does not wait for it, and hides it from one that does.
func TestCoordinatedOmission(t *testing.T) {
	stalling := func() *fake {
		stalled := false
		return &fake{serve: func(at time.Duration, _ int) deed {
			if at >= 3*time.Second && !stalled {
				stalled = true
				return deed{work: time.Second}
			}
			return deed{work: time.Millisecond}
		}}
	}
	p := Plan{Schedule: Schedule{To: 500}, Conns: 1, Depth: 16, Duration: 10 * time.Second}
	against(t, stalling(), p, func(r *Result, _ []Sample) {
		l := r.Total.Latency
		if r.Total.Due != 5000 || r.Total.Done != 5000 || r.Total.Failed != 0 || r.Total.To != 10*time.Second {
			t.Errorf("%+v", r.Total)
		}
		if p50 := l.ValueAtQuantile(50); p50 > int64(3*time.Millisecond) {
			t.Errorf("p50 %s", time.Duration(p50))
		}
		if p999, most := l.ValueAtQuantile(99.9), l.Max(); p999 < int64(900*time.Millisecond) || most < int64(time.Second) {
			t.Errorf("the stall is hidden: p99.9 %s, max %s", time.Duration(p999), time.Duration(most))
		}
		// As many requests as were due while it stalled, and while what waited was worked off, took
		// longer than usual.
		if slow := above(r, 100*time.Millisecond); slow < 450 {
			t.Errorf("%d requests took longer than 100ms", slow)
		}
		if r.MissedSchedule || r.LatestLag > lagTolerance {
			t.Errorf("the server's stall is not the generator's lag: %v %s", r.MissedSchedule, r.LatestLag)
		}
	})
	p.Schedule, p.Depth = Schedule{Kind: Max}, 1
	against(t, stalling(), p, func(r *Result, _ []Sample) {
		if p999, slow := r.Total.Latency.ValueAtQuantile(99.9), above(r, 100*time.Millisecond); p999 > int64(2*time.Millisecond) || slow != 1 {
			t.Errorf("a closed loop: p99.9 %s, %d slow", time.Duration(p999), slow)
		}
		if r.Total.Due != r.Total.Sent || r.Total.Done < 8900 {
			t.Errorf("%+v", r.Total)
		}
	})
}

// above counts the latencies above a bound.
func above(r *Result, bound time.Duration) (n int64) {
	for _, bar := range r.Total.Latency.Distribution() {
		if bar.From > int64(bound) {
			n += bar.Count
		}
	}
	return n
}

func TestWarmUpIsNotMeasured(t *testing.T) {
	slowStart := &fake{serve: func(at time.Duration, _ int) deed {
		if at < 1500*time.Millisecond {
			return deed{after: 200 * time.Millisecond}
		}
		return deed{after: time.Millisecond}
	}}
	p := Plan{Schedule: Schedule{To: 100}, Conns: 4, Depth: 8, Warmup: 2500 * time.Millisecond, Duration: 3 * time.Second}
	against(t, slowStart, p, func(r *Result, samples []Sample) {
		if r.Total.Due != 300 || r.Total.Done != 300 || r.Total.Latency.Max() > int64(2*time.Millisecond) {
			t.Errorf("%+v, slowest %s", r.Total, time.Duration(r.Total.Latency.Max()))
		}
		var warm []time.Duration
		done := int64(0)
		for _, s := range samples {
			if s.From < 0 {
				warm = append(warm, s.From)
				done += s.Done
			}
		}
		if len(warm) != 3 || warm[0] != -2500*time.Millisecond || warm[1] != -2*time.Second || done != 250 {
			t.Errorf("warm-up samples from %v with %d done", warm, done)
		}
		if want := samples[0]; want.To != -2*time.Second || len(r.Intervals) != 3 {
			t.Errorf("first sample to %s, %d intervals kept", want.To, len(r.Intervals))
		}
	})
}

func TestARampAsksMoreAndMore(t *testing.T) {
	p := Plan{Schedule: Schedule{Kind: Ramp, From: 0, To: 100}, Conns: 3, Depth: 4, Duration: 4 * time.Second}
	against(t, &fake{}, p, func(r *Result, samples []Sample) {
		var due []int64
		for _, s := range samples {
			due = append(due, s.Due)
		}
		// 12.5 t² requests after t seconds.
		want := []int64{13, 37, 63, 87}
		if len(due) < 4 || r.Total.Due != 200 || r.Total.Done != 200 {
			t.Fatalf("due %v, total %+v", due, r.Total)
		}
		for i := range want {
			if due[i] != want[i] {
				t.Errorf("due %v, want %v", due, want)
				break
			}
		}
	})
}

// TestDepthIsNeverExceeded: a server that answers nothing for a while never has more than depth
// requests of a connection.
func TestDepthIsNeverExceeded(t *testing.T) {
	for _, schedule := range []Schedule{{To: 2000}, {Kind: Max}} {
		for _, depth := range []int{1, 2, 7} {
			f := &fake{serve: func(time.Duration, int) deed { return deed{work: 5 * time.Millisecond} }}
			p := Plan{Schedule: schedule, Conns: 2, Depth: depth, Duration: time.Second}
			against(t, f, p, func(r *Result, samples []Sample) {
				// One request is worked on, the others wait.
				if f.pending > depth || depth > 1 && f.pending < depth-1 {
					t.Errorf("%+v: %d requests waited, depth %d", schedule, f.pending, depth)
				}
				for _, s := range samples {
					if s.InFlight > int64(2*depth) {
						t.Errorf("%d in flight, depth %d", s.InFlight, depth)
					}
				}
				if r.Total.Sent != r.Total.Done || r.Total.Done < 390 {
					t.Errorf("%+v", r.Total)
				}
			})
		}
	}
}

func TestCountEndsARun(t *testing.T) {
	for _, s := range []Schedule{{To: 1000}, {Kind: Max}} {
		for _, count := range []int64{1, 7, 250} {
			p := Plan{Schedule: s, Conns: 3, Depth: 4, Count: count, Warmup: 100 * time.Millisecond, Duration: time.Hour}
			f := &fake{serve: func(time.Duration, int) deed { return deed{work: 2 * time.Millisecond} }}
			against(t, f, p, func(r *Result, _ []Sample) {
				if r.Stopped {
					t.Error("nobody stopped it")
				}
				if r.Total.Done != count || r.Total.Due != count || r.Total.To > 2*time.Second {
					t.Errorf("count %d: %+v", count, r.Total)
				}
			})
		}
	}
}

// TestAStoppedRun has a result of what was done until then; what was in flight counts nowhere.
func TestAStoppedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{began: time.Now(), serve: func(at time.Duration, _ int) deed { return deed{mute: at > 2*time.Second} }}
		ctx, cancel := context.WithTimeout(t.Context(), 2505*time.Millisecond)
		defer cancel()
		r, samples := runPlan(t, ctx, f, Plan{Schedule: Schedule{To: 100}, Conns: 2, Depth: 64, Duration: time.Hour})
		checkSums(t, r, samples)
		if !r.Stopped {
			t.Error("it does not know that it was stopped")
		}
		if r.Total.To != 2505*time.Millisecond || r.Total.Done != 201 || r.Total.Failed != 0 || r.Total.Due != 251 {
			t.Errorf("%+v", r.Total)
		}
	})
}

func TestNothingToConnectTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{refuse: func(_ time.Duration, dial int) error {
			if dial > 3 {
				return errDown
			}
			return nil
		}}
		p := goodPlan()
		p.Conns, p.Target.Dial, p.Mix = 8, f.dial, []Share{{Name: "GetProcessCounts", Weight: 1}}
		r, err := Run(t.Context(), p, nil)
		if r != nil || !errors.Is(err, ErrConnect) || !errors.Is(err, errDown) || !strings.HasPrefix(err.Error(), "cannot connect to ") {
			t.Errorf("%v %v", r, err)
		}
	})
}
