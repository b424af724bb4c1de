package loadgen

import (
	"context"
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

// mix chooses the method of each request.
type mix struct {
	bounds []uint64 // the sums of the weights up to and with each share
	seed   uint64
}

func newMix(shares []Share, seed uint64) *mix {
	m := &mix{seed: seed}
	sum := uint64(0)
	for _, s := range shares {
		sum += uint64(s.Weight)
		m.bounds = append(m.bounds, sum)
	}
	return m
}

// pick returns the share of request k: always the same one, in an order without a period, so that
// no method falls on the same connections again and again. It does not allocate.
func (m *mix) pick(k int64) int {
	at := scramble(m.seed+uint64(k)) % m.bounds[len(m.bounds)-1]
	share := 0
	for at >= m.bounds[share] {
		share++
	}
	return share
}

// scramble is the finalizer of SplitMix64: every bit of x counts for every bit of the result.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// alarm returns what waits with the precision that the machine has, and what ends it: the runtime's
// timers round up to a millisecond where nothing else runs.
type alarm func() (wait func(time.Duration), stop func())

// timerAlarm is an alarm of the runtime's timers.
func timerAlarm() (wait func(time.Duration), stop func()) { return time.Sleep, func() {} }

const (
	// quantum is the shortest wait: at rates above its inverse requests go out in groups, which is
	// what their rate leaves of a core.
	quantum = 50 * time.Microsecond
	// patience is the longest wait, so that a stopped run ends.
	patience = 50 * time.Millisecond
)

// pace wakes each connection when a request of it is due. It ends once all were.
func (g *generator) pace(ctx context.Context, newAlarm alarm) {
	wait, stop := newAlarm()
	defer stop()
	t := g.table
	for k := int64(0); k < t.last && ctx.Err() == nil; {
		now := g.now()
		for woken := int64(0); k < t.last && t.at(k) <= now; k++ {
			if woken == g.stride {
				k = max(k, t.before(now)) // all connections are awake and will see what is due
				break
			}
			g.conns[k%g.stride].nudge()
			woken++
		}
		if k < t.last {
			wait(min(max(time.Duration(t.at(k)-g.now()), quantum), patience))
		}
	}
}

// sweep looks after timeouts until ctx ends.
func (g *generator) sweep(ctx context.Context) {
	t := time.NewTicker(min(max(time.Duration(g.timeout)/20, 20*time.Millisecond), 100*time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			now := g.now()
			for _, c := range g.conns {
				c.sweep(now)
			}
		case <-ctx.Done():
			return
		}
	}
}
