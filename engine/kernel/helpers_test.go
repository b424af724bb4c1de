package kernel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// at is the Instant d after a fixed start.
func at(d time.Duration) Instant {
	return Instant{Mono: int64(1000*time.Second + d), Wall: 1700000000000 + d.Milliseconds()}
}

// rig is a kernel with its events and journal on record, and a clock to turn.
type rig struct {
	t       testing.TB
	k       *Kernel
	now     Instant
	events  []string
	deaf    bool // no one subscribes
	counted [numEventKinds]int
	journal []byte
	records uint64
}

func (r *rig) Wanted(kind EventKind) bool {
	r.counted[kind]++
	return !r.deaf
}

func (r *rig) Emit(kind EventKind, payload []byte, now Instant) {
	if now != r.now {
		r.t.Errorf("event at %v, want %v", now, r.now)
	}
	r.events = append(r.events, kind.String()+" "+string(payload))
}

// unlimited are defaults under which the rate limiter never refuses.
func unlimited() Quota {
	q := BuiltinQuota()
	q[RateLimitRPM], q[RateLimitRPH], q[RateLimitBurst] = 1000000, 1000000, 1000000
	return q
}

func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{t: t, now: at(0)}
	cfg.Events = r
	cfg.Journal = func(c *Change) uint64 {
		r.journal = AppendChange(r.journal, c)
		r.records++
		return r.records
	}
	if cfg.Shards == 0 {
		cfg.Shards = minShards
	}
	r.k = New(cfg)
	return r
}

func (r *rig) after(d time.Duration) {
	r.now = Instant{Mono: r.now.Mono + int64(d), Wall: r.now.Wall + d.Milliseconds()}
}

// create creates pid with priority p and user "u"+pid unless it has the form pid/user.
func (r *rig) create(pid string, p Priority) Result {
	r.t.Helper()
	res, _ := r.k.Create(r.now, args(pid, p), &PCB{})
	return res
}

func args(pid string, p Priority) *CreateArgs {
	user := "u" + pid
	if before, after, ok := strings.Cut(pid, "/"); ok {
		pid, user = before, after
	}
	return &CreateArgs{PID: []byte(pid), RequestID: []byte("q" + pid), UserID: []byte(user), SessionID: []byte("s" + pid), Priority: p}
}

// mk creates pid, NORMAL, and moves it along the path of states.
func (r *rig) mk(pid string, path ...State) {
	r.t.Helper()
	if res := r.create(pid, Normal); res != OK {
		r.t.Fatalf("create %s: %v", pid, res)
	}
	for _, s := range path {
		r.to(pid, s, OK)
	}
}

func (r *rig) to(pid string, s State, want Result) {
	r.t.Helper()
	if got := r.k.Transition(r.now, []byte(pid), nil, s, nil, nil); got != want {
		r.t.Fatalf("%s to %v: got %v, want %v", pid, s, got, want)
	}
}

func (r *rig) state(pid string) string {
	var out PCB
	if res := r.k.Get([]byte(pid), nil, &out); res != OK {
		return res.String()
	}
	return out.State.String()
}

// next returns the pid handed out, or the result.
func (r *rig) next(start bool) string {
	var out PCB
	if res := r.k.Next(r.now, start, &out); res != OK {
		return res.String()
	}
	return string(out.PID)
}

// drain starts everything runnable and returns the pids in order.
func (r *rig) drain() string {
	var pids []string
	for {
		pid := r.next(true)
		if pid == NoRunnable.String() {
			return strings.Join(pids, " ")
		}
		pids = append(pids, pid)
	}
}

func (r *rig) want(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// counts prints the non-zero counts, e.g. "READY:2 total:2 queue:1".
func (r *rig) counts() string {
	c := r.k.Counts(r.now)
	var b strings.Builder
	var sum int64
	for s, n := range c.ByState {
		sum += n
		if n != 0 {
			fmt.Fprintf(&b, "%v:%d ", State(s), n)
		}
	}
	if sum != c.Total {
		r.t.Errorf("total %d is not the sum of %v", c.Total, c.ByState)
	}
	fmt.Fprintf(&b, "total:%d queue:%d", c.Total, c.QueueDepth)
	return b.String()
}

// takeEvents returns the events since the last call.
func (r *rig) takeEvents() string {
	s := strings.Join(r.events, "\n")
	r.events = nil
	return s
}

// replayed applies everything journalled so far to a fresh kernel.
func (r *rig) replayed(cfg Config) *Kernel {
	r.t.Helper()
	k := New(cfg)
	index := uint64(0)
	for b := r.journal; len(b) > 0; {
		index++
		c, rest, err := ParseChange(b)
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := k.Apply(&c, index); err != nil {
			r.t.Fatal(err)
		}
		b = rest
	}
	return k
}
