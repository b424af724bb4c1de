package selector

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestBreaker(t *testing.T) {
	b := breaker{threshold: 2, cooldown: 100}
	allow := func(now int64, probe, ok bool) {
		t.Helper()
		if p, o := b.allow(now); p != probe || o != ok {
			t.Errorf("at %d: probe %v, allowed %v, want %v %v", now, p, o, probe, ok)
		}
	}
	allow(0, false, true)
	b.done(0, false, true)
	allow(1, false, true)
	b.done(1, false, false) // not in a row
	allow(2, false, true)
	b.done(2, false, true)
	allow(3, false, true)
	allow(3, false, true) // two that began before it opened
	allow(3, false, true)
	b.done(10, false, true)
	allow(11, false, false)
	b.done(20, false, true)  // too late to lengthen the cooldown
	b.done(20, false, false) // or to end it
	allow(109, false, false)
	allow(110, true, true)
	allow(111, false, false) // one probe
	b.done(150, true, true)
	allow(249, false, false)
	allow(250, true, true)
	b.done(260, true, false)
	allow(261, false, true)
	b.done(261, false, true)
	allow(262, false, true) // failures count from the beginning

	b = breaker{threshold: 1}
	b.done(5, false, true)
	allow(5, true, true) // no cooldown: a probe at once, but only one
	allow(5, false, false)
}

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	b := breaker{threshold: 1}
	b.done(0, false, true)
	var wg sync.WaitGroup
	passed := make(chan bool, 64)
	for range cap(passed) {
		wg.Go(func() { _, ok := b.allow(1); passed <- ok })
	}
	wg.Wait()
	n := 0
	for range cap(passed) {
		if <-passed {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d were let through, want 1", n)
	}
}

// TestBreakerAgainstModel uses it from one caller at a time, whose history says what must be.
func TestBreakerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := breaker{threshold: rapid.IntRange(1, 4).Draw(t, "threshold"), cooldown: rapid.Int64Range(0, 5).Draw(t, "cooldown")}
		row, opened, open := 0, int64(0), false
		for now := range rapid.Int64Range(1, 60).Draw(t, "calls") {
			probe, ok := b.allow(now)
			if want := !open || now >= opened+b.cooldown; ok != want || probe != (ok && open) {
				t.Fatalf("at %d: probe %v, allowed %v, want %v", now, probe, ok, want)
			}
			if !ok {
				continue
			}
			failed := rapid.Bool().Draw(t, "failed")
			b.done(now, probe, failed)
			if row++; !failed {
				row, open = 0, false
			}
			if row >= b.threshold {
				open, opened = true, now
			}
		}
	})
}
