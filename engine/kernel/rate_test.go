package kernel

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// rate checks user and compares the decision in short form.
func (r *rig) rate(user string, record bool, want string) {
	r.t.Helper()
	d := r.k.CheckRate(r.now, []byte(user), record)
	got := fmt.Sprintf("ok count %d of %d left %d", d.CurrentCount, d.Limit, d.Remaining)
	if !d.Allowed {
		got = fmt.Sprintf("%s (%s) count %d of %d left %d retry %d", d.AppendReason(nil), d.Window, d.CurrentCount, d.Limit,
			d.Remaining, d.RetryAfter)
	} else if d.RetryAfter != 0 || d.Window != NoWindow || len(d.AppendReason(nil)) != 0 {
		r.t.Errorf("allowed with %+v", d)
	}
	r.want("rate", got, want)
}

// TestBurst is kernel-ipc §9.4.
func TestBurst(t *testing.T) {
	r := newRig(t, Config{})
	r.rate("u9", true, "ok count 1 of 60 left 59")
	for n := 2; n <= 10; n++ {
		r.rate("u9", true, fmt.Sprintf("ok count %d of 60 left %d", n, 60-n))
	}
	r.rate("u9", true, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 10")
	r.after(9001 * time.Millisecond)
	r.rate("u9", true, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 1")
	r.after(999 * time.Millisecond) // age 10 s still counts
	r.rate("u9", true, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 1")
	r.after(time.Millisecond)
	r.rate("u9", true, "ok count 11 of 60 left 49")
	r.rate("other", true, "ok count 1 of 60 left 59")
}

func TestPeekRecordsNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.rate("u", false, "ok count 0 of 60 left 60")
	if n := r.k.rates.live.Load(); n != 0 {
		t.Errorf("a peek made %d logs", n)
	}
	for n := range 10 {
		r.rate("u", false, fmt.Sprintf("ok count %d of 60 left %d", n, 60-n))
		r.k.CheckRate(r.now, []byte("u"), true)
	}
	r.rate("u", false, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 10")
	r.rate("u", false, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 10")
}

func TestMinuteAndHour(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitRPH], q[RateLimitRPM], q[RateLimitBurst] = 5, 3, 100
	r := newRig(t, Config{Defaults: q})
	for n := range 3 {
		r.rate("u", true, fmt.Sprintf("ok count %d of 3 left %d", n+1, 2-n))
		r.after(time.Second)
	}
	r.rate("u", true, "Rate limit exceeded: 3 requests per minute (minute) count 3 of 3 left 0 retry 57")
	r.after(57*time.Second + 1*time.Millisecond)
	r.rate("u", true, "ok count 3 of 3 left 0")
	r.rate("u", true, "Rate limit exceeded: 3 requests per minute (minute) count 3 of 3 left 0 retry 1")
	r.after(time.Minute)
	r.rate("u", true, "ok count 2 of 3 left 1")
	r.rate("u", true, "Rate limit exceeded: 5 requests per hour (hour) count 2 of 3 left 0 retry 3480")
	r.after(3480 * time.Second)
	r.rate("u", true, "ok count 1 of 3 left 2")
}

// TestLimitsActAtOnce is D30.
func TestLimitsActAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	r.rate("u", true, "ok count 1 of 60 left 59")
	r.rate("u", true, "ok count 2 of 60 left 58")
	var p QuotaPatch
	p.Put(RateLimitRPM, 2)
	r.k.SetDefaults(r.now, &p)
	r.rate("u", true, "Rate limit exceeded: 2 requests per minute (minute) count 2 of 2 left 0 retry 60")
	p.Put(RateLimitRPM, 7)
	r.k.SetDefaults(r.now, &p)
	r.rate("u", true, "ok count 3 of 7 left 4")
}

func TestCreateSharesTheLog(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 10 {
		r.mk(fmt.Sprintf("p%d/u", i))
	}
	res, d := r.k.Create(r.now, args("p10/u", Normal), nil)
	r.want("11th", res.String()+": "+string(d.AppendReason(nil)), "rate limited: Burst limit exceeded: 10 requests per 10 seconds")
	if d.RetryAfter != 10 || r.state("p10") != "not found" {
		t.Errorf("retry %d, state %s", d.RetryAfter, r.state("p10"))
	}
	r.rate("u", false, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 10")
}

func TestHourLimitIsBounded(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitRPH], q[RateLimitRPM], q[RateLimitBurst] = math.MaxInt32, math.MaxInt32, math.MaxInt32
	r := newRig(t, Config{Defaults: q})
	u := []byte("u")
	for i := range maxStamps {
		if !r.k.CheckRate(r.now, u, true).Allowed {
			t.Fatalf("stamp %d refused", i)
		}
		r.after(time.Millisecond)
	}
	d := r.k.CheckRate(r.now, u, true)
	r.want("beyond", string(d.AppendReason(nil)), "Rate limit exceeded: 100000 requests per hour")
	s, tag := r.k.rates.home(u)
	if g := s.log(s.find(tag, u)); len(g.ring) != maxStamps {
		t.Errorf("ring of %d", len(g.ring))
	}
	r.after(time.Hour) // the ring turns
	for range maxStamps + 1000 {
		r.after(37 * time.Millisecond)
		if !r.k.CheckRate(r.now, u, true).Allowed {
			t.Fatal("refused")
		}
	}
}

// TestRingStopsAtHourLimit: a log grows to the hour limit and stays.
func TestRingStopsAtHourLimit(t *testing.T) {
	q := unlimited()
	q[RateLimitRPH] = 21
	r := newRig(t, Config{Defaults: q})
	for range 100 {
		r.k.CheckRate(r.now, []byte("u"), true)
		r.after(time.Minute)
	}
	s, tag := r.k.rates.home([]byte("u"))
	if g := s.log(s.find(tag, []byte("u"))); len(g.ring) != 21 || g.n > 21 {
		t.Errorf("ring of %d with %d", len(g.ring), g.n)
	}
}

// TestLeastRecentlyActiveLogIsDropped: exactly one log beyond the limit goes; a refused call is
// activity, a peek is not.
func TestLeastRecentlyActiveLogIsDropped(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitBurst] = 1
	const refused = "Burst limit exceeded: 1 requests per 10 seconds (burst) count 1 of 60 left 0 retry 10"
	const allowed = "ok count 1 of 60 left 59"
	const known, unknown = refused, "ok count 0 of 60 left 60"
	r := newRig(t, Config{MaxRateLimitUsers: 2, Defaults: q})
	r.rate("a", true, allowed)
	r.rate("b", true, allowed)
	r.rate("a", false, known)
	r.rate("b", false, known)
	r.rate("c", true, allowed) // drops a: peeks do not count
	r.rate("a", false, unknown)
	r.rate("b", true, refused)
	r.rate("d", true, allowed) // drops c: b was refused later than c was allowed
	r.rate("c", false, unknown)
	r.rate("b", false, known)
	r.rate("d", false, known)
	for i := range 500 { // whatever shards they fall into
		r.rate(fmt.Sprint("x", i), true, allowed)
		if i > 0 {
			r.rate(fmt.Sprint("x", i-1), false, known)
		}
		if i > 1 {
			r.rate(fmt.Sprint("x", i-2), false, unknown)
		}
	}
	if n := r.k.rates.live.Load(); n != 2 {
		t.Errorf("%d logs", n)
	}
}

func TestOddUsers(t *testing.T) {
	r := newRig(t, Config{})
	r.rate("", true, "ok count 1 of 60 left 59")
	r.rate("", true, "ok count 2 of 60 left 58")
	long := string(make([]byte, maxIDLen))
	r.rate(long, true, "ok count 1 of 60 left 59")
	r.rate(long+"more", true, "ok count 2 of 60 left 58")
}

func TestZeroLimitRefuses(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitBurst] = 0
	r := newRig(t, Config{Defaults: q})
	r.rate("u", true, "Burst limit exceeded: 0 requests per 10 seconds (burst) count 0 of 60 left 0 retry 10")
	if n := r.k.rates.live.Load(); n != 0 {
		t.Errorf("%d logs", n)
	}
}

func TestClocksOfTwoLoops(t *testing.T) {
	r := newRig(t, Config{})
	r.after(5 * time.Second)
	r.rate("u", true, "ok count 1 of 60 left 59")
	r.now = at(0) // an older reading counts as the newest stamp's
	for n := 2; n <= 10; n++ {
		r.rate("u", true, fmt.Sprintf("ok count %d of 60 left %d", n, 60-n))
	}
	r.rate("u", true, "Burst limit exceeded: 10 requests per 10 seconds (burst) count 10 of 60 left 0 retry 10")
}

// TestLongUptime crosses the 49.7 days after which the low 32 bits of a stamp start over.
func TestLongUptime(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitBurst] = 2
	r := newRig(t, Config{Defaults: q})
	r.now = Instant{Mono: (1<<32 - 5) * nsPerMs}
	r.rate("u", true, "ok count 1 of 60 left 59")
	r.after(10 * time.Millisecond)
	r.rate("u", true, "ok count 2 of 60 left 58")
	r.after(time.Second)
	r.rate("u", true, "Burst limit exceeded: 2 requests per 10 seconds (burst) count 2 of 60 left 0 retry 9")
	r.after(9*time.Second - 9*time.Millisecond)
	r.rate("u", true, "ok count 3 of 60 left 57")
	r.after(60 * 24 * time.Hour)
	r.rate("u", true, "ok count 1 of 60 left 59")
}
