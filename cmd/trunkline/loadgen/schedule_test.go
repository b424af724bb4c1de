package loadgen

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func timesOf(s Schedule, warm, duration time.Duration, count int64) *timetable {
	return newTimetable(&Plan{Schedule: s, Warmup: warm, Duration: duration, Count: count})
}

func TestDueRequests(t *testing.T) {
	f := func(s Schedule, warm, duration time.Duration, count, first, last int64) {
		t.Helper()
		table := timesOf(s, warm, duration, count)
		if table.first != first || table.last != last {
			t.Errorf("%+v %s+%s: first %d, last %d, want %d, %d", s, warm, duration, table.first, table.last, first, last)
		}
	}
	constant := func(rate float64) Schedule { return Schedule{Kind: Constant, To: rate} }
	ramp := func(from, to float64) Schedule { return Schedule{Kind: Ramp, From: from, To: to} }
	f(constant(1000), 0, 10*time.Second, 0, 0, 10_000)
	f(constant(1000), 2*time.Second, 10*time.Second, 0, 2000, 12_000)
	f(constant(1000), 2*time.Second, 10*time.Second, 500, 2000, 2500)
	f(constant(0.1), 0, time.Minute, 0, 0, 6)
	f(constant(3), 0, time.Second, 0, 0, 3)
	f(constant(MaxRate), 0, time.Second, 0, 0, MaxRate)
	f(constant(MaxRate), 0, MaxDuration, 0, 0, MaxRate*86_400)
	f(ramp(0, 1000), 0, 10*time.Second, 0, 0, 5000)
	f(ramp(0, 1000), time.Second, 10*time.Second, 0, 0, 5000)
	f(ramp(1000, 0), 0, 10*time.Second, 0, 0, 5000)
	f(ramp(100, 300), time.Second, 10*time.Second, 0, 100, 2100)
	f(ramp(100, 100), time.Second, 10*time.Second, 0, 100, 1100)
}

func TestWhenRequestsAreDue(t *testing.T) {
	f := func(s Schedule, k int64, want time.Duration) {
		t.Helper()
		if at := timesOf(s, time.Second, 10*time.Second, 0).at(k); at != int64(want) {
			t.Errorf("%+v: request %d at %d, want %d", s, k, at, want)
		}
	}
	f(Schedule{To: 1000}, 0, 0)
	f(Schedule{To: 1000}, 1500, 1500*time.Millisecond)
	ramp := Schedule{Kind: Ramp, From: 0, To: 200} // 10 t² requests after t seconds
	f(ramp, 0, time.Second)
	f(ramp, 10, 2*time.Second)
	f(ramp, 250, 6*time.Second)
	f(Schedule{Kind: Ramp, From: 200, To: 0}, 200, time.Second)
	f(Schedule{Kind: Ramp, From: 200, To: 0}, 5000, never)
}

// TestTimesAndCountsAgree: the two directions of the arithmetic agree, times do not go back, and
// the number of requests is the area below the rate.
func TestTimesAndCountsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{Kind: Ramp, From: rapid.Float64Range(0, 1e6).Draw(t, "from"), To: rapid.Float64Range(0.01, 1e6).Draw(t, "to")}
		if rapid.Bool().Draw(t, "constant") {
			s = Schedule{Kind: Constant, To: s.To}
		}
		warm := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "warm"))
		duration := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "duration"))
		table := timesOf(s, warm, duration, 0)
		area := s.To * (warm + duration).Seconds()
		if s.Kind == Ramp {
			area = s.From*warm.Seconds() + (s.From+s.To)/2*duration.Seconds()
		}
		if got := float64(table.last); got < area-2-area*1e-9 || got > area+2+area*1e-9 {
			t.Fatalf("%d requests, the area is %f", table.last, area)
		}
		if table.last == 0 {
			return
		}
		k := rapid.Int64Range(0, table.last-1).Draw(t, "k")
		at := table.at(k)
		if k > 0 && table.at(k-1) > at {
			t.Fatalf("request %d at %d, the one before at %d", k, at, table.at(k-1))
		}
		if at >= table.end {
			t.Fatalf("request %d of %d is due at %d, behind the end %d", k, table.last, at, table.end)
		}
		if before, until := table.before(at), table.before(at+1); before > k || until <= k {
			t.Fatalf("request %d is due at %d: %d before, %d until then", k, at, before, until)
		}
		if measured := k >= table.first; measured != (at >= table.warm) {
			t.Fatalf("request %d at %d: measured %v, warm-up ends at %d", k, at, measured, table.warm)
		}
	})
}
