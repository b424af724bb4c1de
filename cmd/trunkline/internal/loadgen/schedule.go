package loadgen

import (
	"math"
	"time"
)

// never is later than any end of a run.
const never = math.MaxInt64

// timetable holds when the requests of a schedule are due, in nanoseconds since the start of
// warming up. Requests are numbered from 0.
type timetable struct {
	rate      float64 // requests/ns while warming up, or all the time
	slope     float64 // of the rate, requests/ns², from warm on
	warm, end int64
	warmed    float64 // requests of warming up, not rounded
	first     int64   // number of the first request measured
	last      int64   // behind the last request
}

// newTimetable returns the times of a plan whose schedule is not Max.
func newTimetable(p *Plan) *timetable {
	t := &timetable{warm: int64(p.Warmup), end: int64(p.Warmup + p.Duration), last: never}
	t.rate = p.Schedule.To / float64(time.Second)
	if p.Schedule.Kind == Ramp {
		t.rate = p.Schedule.From / float64(time.Second)
		t.slope = (p.Schedule.To/float64(time.Second) - t.rate) / float64(p.Duration)
	}
	t.warmed = t.rate * float64(t.warm)
	t.first = t.before(t.warm)
	t.last = t.before(t.end)
	if p.Count > 0 {
		t.last = min(t.last, t.first+p.Count)
	}
	return t
}

// at returns when request k is due; never for one behind the end of a ramp to 0.
func (t *timetable) at(k int64) int64 {
	n := float64(k)
	if t.slope == 0 || n < t.warmed {
		return nanoseconds(n / t.rate)
	}
	// Of the two times at which so many requests were due, the earlier one, in the form that
	// divides by no small number.
	n -= t.warmed
	square := t.rate*t.rate + 2*t.slope*n
	if square < 0 {
		return never
	}
	since := 0.0
	if n > 0 {
		since = 2 * n / (t.rate + math.Sqrt(square))
	}
	return nanoseconds(float64(t.warm) + since)
}

func nanoseconds(ns float64) int64 {
	if !(ns < float64(2*MaxDuration)) {
		return never
	}
	return int64(ns)
}

// before returns how many requests are due before now. It agrees with at to the nanosecond.
func (t *timetable) before(now int64) int64 {
	if now <= 0 {
		return 0
	}
	now = min(now, t.end)
	n := t.rate * float64(min(now, t.warm))
	if since := float64(now - t.warm); since > 0 {
		n = t.warmed + t.rate*since + t.slope*since*since/2
	}
	k := max(int64(n), 0)
	for k > 0 && t.at(k-1) >= now {
		k--
	}
	for t.at(k) < now {
		k++
	}
	return min(k, t.last)
}
