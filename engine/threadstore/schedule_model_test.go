package threadstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"trunkline/fuzz/kit/memstream"
)

// modelTimer is a schedule or a deferred message as a reader of the contract would keep it. The
// moments of an expression are all multiples of every.
type modelTimer struct {
	id, body       string
	thread         int
	cron, deferred bool
	every          int64
	once           bool
	after          int64 // moments up to it are over; of a deferred message: its time
	due            int64
	paused, ended  bool
	fired          map[int64]bool // moments of an expression
}

// next returns the first moment after one.
func (m *modelTimer) next(after, now int64) int64 {
	switch {
	case m.deferred:
		return m.after
	case m.cron:
		return (max(after, m.after)/m.every + 1) * m.every
	case m.after > now:
		return now + m.every
	}
	for n := m.after + m.every; ; n += m.every {
		if n > after {
			return n
		}
	}
}

// modelTimers are the timers of some threads, and what they posted.
type modelTimers struct {
	t       fatal
	timers  []*modelTimer
	bodies  [][]string // of each thread
	closed  []bool
	looked  int64
	started bool
}

// look fires what is due at a time.
func (ms *modelTimers) look(now int64) {
	if !ms.started || now < ms.looked {
		for _, m := range ms.timers {
			m.due = m.next(0, now)
		}
	}
	ms.started, ms.looked = true, now
	var due []*modelTimer
	for _, m := range ms.timers {
		if !m.paused && !m.ended && m.due <= now {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *modelTimer) int { return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.id, b.id)) })
	for _, m := range due {
		ms.fire(m, now)
	}
}

func (ms *modelTimers) fire(m *modelTimer, now int64) {
	if ms.closed[m.thread] {
		m.paused, m.ended = true, m.deferred
		return
	}
	if m.deferred {
		m.ended = true
		ms.bodies[m.thread] = append(ms.bodies[m.thread], m.body)
		return
	}
	moment := m.due
	if now-moment > misfireAfter {
		if moment = m.next(now-misfireAfter-1, now); moment > now {
			moment = now
			if !m.once {
				m.due = m.next(now, now)
				return
			}
		}
	}
	if m.cron && moment%m.every == 0 {
		if m.fired[moment] {
			ms.t.Fatalf("the moment %d of %s fires twice", moment, m.body)
		}
		m.fired[moment] = true
	}
	m.after = moment
	m.due = m.next(now, now)
	ms.bodies[m.thread] = append(ms.bodies[m.thread], m.body)
}

// timerHost is an engine that the model is compared with.
type timerHost interface {
	Post(a *Actor, id []byte, p *Post, now int64) (Posted, Refusal)
	CreateSchedule(a *Actor, id []byte, p *Plan, now int64) (Timer, Receipt, Refusal)
	ChangeTimer(a *Actor, id []byte, c TimerChange, now int64) (Receipt, Refusal)
}

// add makes a timer in both.
func (ms *modelTimers) add(rt *rapid.T, e timerHost, id []byte, thread int, now int64) {
	n := len(ms.timers)
	m := &modelTimer{thread: thread, body: fmt.Sprint("b", n), fired: map[int64]bool{}}
	if m.deferred = rapid.Bool().Draw(rt, "deferred"); m.deferred {
		m.after = now + int64(rapid.IntRange(1, 200_000).Draw(rt, "delay"))
		got, ref := e.Post(alice, id, later(m.body, fmt.Sprint("k", n), m.after), now)
		if m.id = got.Deferred; ref.Code != OK || m.id == "" {
			ms.t.Fatalf("defer: %+v", ref)
		}
	} else {
		m.cron, m.once, m.after = rapid.Bool().Draw(rt, "cron"), rapid.Bool().Draw(rt, "once"), now
		p := Plan{Body: []byte(m.body), Once: m.once, Zone: "UTC"}
		if m.cron {
			minutes := rapid.SampledFrom([]int{1, 2, 5, 30}).Draw(rt, "minutes")
			p.Cron, m.every = fmt.Sprintf("*/%d * * * *", minutes), int64(minutes)*60_000
		} else {
			m.every = int64(rapid.IntRange(1000, 300_000).Draw(rt, "every"))
			p.Every = m.every
		}
		v, _, ref := e.CreateSchedule(alice, id, &p, now)
		if m.id = v.Moved.ID; ref.Code != OK {
			ms.t.Fatalf("create: %+v", ref)
		}
	}
	m.due = m.next(0, now)
	ms.timers = append(ms.timers, m)
}

// change changes a timer in both.
func (ms *modelTimers) change(rt *rapid.T, e timerHost, now int64) {
	if len(ms.timers) == 0 {
		rt.Skip("no timer")
	}
	m := rapid.SampledFrom(ms.timers).Draw(rt, "timer")
	c := rapid.SampledFrom([]TimerChange{cancels, deletes, pauses, resumes}).Draw(rt, "change")
	_, ref := e.ChangeTimer(alice, []byte(m.id), c, now)
	if want := m.ended || c.Deferred != m.deferred; want != (ref.Code == NoTimer) || !want && ref.Code != OK {
		ms.t.Fatalf("change of %+v: %+v", m, ref)
	} else if want {
		return
	}
	if m.paused && !c.Paused {
		m.after = now
	}
	m.paused, m.ended = c.Paused, c.End
	if !m.ended {
		m.due = m.next(now, now)
	}
}

// TestTimerModel runs timers under a clock that jumps, with restarts, against the model.
func TestTimerModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{})
		r.now = r.now/3600_000*3600_000 + 12_345
		ids := [][]byte{r.create(), r.create()}
		ms := &modelTimers{t: rt, bodies: make([][]string, len(ids)), closed: make([]bool, len(ids))}
		thread := func() int { return rapid.IntRange(0, len(ids)-1).Draw(rt, "thread") }
		move := func(ms int64) func(*rapid.T) {
			return func(rt *rapid.T) { r.now += rapid.Int64Range(min(0, ms), max(0, ms)).Draw(rt, "ms") }
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				if i := thread(); !ms.closed[i] && len(ms.timers) < 12 {
					ms.add(rt, r, ids[i], i, r.now)
				}
			},
			"change": func(rt *rapid.T) { ms.change(rt, r, r.now) },
			"look": func(*rapid.T) {
				r.fireTimers(r.now)
				ms.look(r.now)
			},
			"wait":     move(100_000),
			"jump":     move(4000_000),
			"back":     move(-10_000),
			"far back": move(-4000_000),
			"store":    func(*rapid.T) { r.sync(); r.store() },
			"snapshot": func(rt *rapid.T) { r.sync(); _ = r.st.Snapshot() },
			"full disk": func(*rapid.T) {
				r.full = func() bool { return true }
				r.fireTimers(r.now)
				r.full = nil
				ms.started = false
				r.timers.looked = 0
			},
			"close": func(rt *rapid.T) {
				i := rapid.IntRange(0, 20).Draw(rt, "close")
				if i < len(ids) && !ms.closed[i] {
					r.SetStatus(boss, ids[i], &Change{To: Closed, Reason: "r"}, r.now)
					ms.closed[i] = true
				}
			},
			"crash": func(rt *rapid.T) {
				r.sync()
				before := r.Digest()
				r.crash(func(n int) int { return rapid.IntRange(0, n).Draw(rt, "rows") })
				if after := r.Digest(); after != before {
					rt.Fatalf("digest %x, was %x", after, before)
				}
				ms.started = false
			},
			"": func(rt *rapid.T) {
				r.sync()
				for i, id := range ids {
					if got := r.bodies(id); !slices.Equal(got, ms.bodies[i]) {
						rt.Fatalf("thread %d: %v, want %v", i, got, ms.bodies[i])
					}
				}
				for _, m := range ms.timers {
					if v := r.timer(ids[m.thread], m.id); (v == nil) != m.ended || v != nil && v.Moved.Paused != m.paused {
						rt.Fatalf("%+v, want %+v", v, m)
					}
				}
			},
		})
		_ = r.log.Close()
	})
}

// TestTimersOfACluster: leaders die and others take over, each fires what is due; none fires what
// another has.
func TestTimersOfACluster(t *testing.T) {
	inCluster(t, func(rt *rapid.T) {
		log := memstream.New()
		var nodes []*node
		for i := range 3 {
			nodes = append(nodes, newNode(rt, log, fmt.Sprint("n", i+1), uint64(i+1), Config{HotBytes: 1, segment: 700, setBytes: 2000}))
		}
		defer func() {
			for _, n := range nodes {
				n.die(all)
			}
		}()
		leader := nodes[0]
		leader.own()
		h := &history{t: rt, keys: map[string]keyed{}}
		h.create(leader)
		ms := &modelTimers{t: rt, bodies: make([][]string, 1), closed: make([]bool, 1)}
		id, now := h.threads[0].id, leader.now
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				if len(ms.timers) < 12 {
					ms.add(rt, leader, id, 0, now)
				}
			},
			"change": func(rt *rapid.T) { ms.change(rt, leader, now) },
			"look": func(rt *rapid.T) {
				now += rapid.Int64Range(-5000, 100_000).Draw(rt, "ms")
				leader.fireTimers(now)
				ms.look(now)
			},
			"snapshot": func(rt *rapid.T) {
				if err := leader.st.Snapshot(); err != nil {
					rt.Fatalf("snapshot: %v", err)
				}
				synctest.Wait()
				for _, n := range nodes {
					n.healthy()
				}
			},
			"follow": func(rt *rapid.T) {
				if n := rapid.SampledFrom(nodes).Draw(rt, "node"); n != leader && n.ended == nil {
					n.start()
				}
			},
			"take over": func(rt *rapid.T) {
				leader.sync()
				digest := leader.Digest()
				leader.die(func(n int) int { return n * rapid.IntRange(0, 4).Draw(rt, "rows") / 4 })
				leader = rapid.SampledFrom(nodes).Draw(rt, "node")
				now += rapid.Int64Range(-5000, 200_000).Draw(rt, "skew")
				leader.now = now
				leader.own()
				if got := leader.Digest(); got != digest {
					rt.Fatalf("%s: digest %x, want %x", leader.name, got, digest)
				}
				ms.started = false
			},
			"": func(rt *rapid.T) {
				leader.sync()
				h.threads[0].bodies, h.threads[0].ids = nil, nil
				r := rig{t: t, Engine: leader.Engine}
				if got := r.bodies(id); !slices.Equal(got, ms.bodies[0]) {
					rt.Fatalf("%s: %v, want %v", leader.name, got, ms.bodies[0])
				}
			},
		})
	})
}

// TestTimersAreOneBlock: wherever a crash cuts the journal, there are as many messages as events
// about them, and a deferred one is posted or waits.
func TestTimersAreOneBlock(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.schedule(alice, id, Plan{Every: 1000})
	r.deferPost(alice, id, later("once", "k", r.now+1500))
	r.sync()
	for i := range 50 {
		r.now += 500
		r.fireTimers(r.now)
		if i%3 == 0 {
			r.st.Log().Flush()
		}
		if i%7 == 0 { // what is not written is lost
			r.crash(func(n int) int { return n })
			got := r.bodies(id)
			if waits := r.timers.keyed.Load() > 0; waits == slices.Contains(got, "once") {
				t.Errorf("%v, and the deferred message waits: %t", got, waits)
			}
			if fired := r.operations(); len(fired)-1 != len(got) {
				t.Errorf("%v after %v", got, fired)
			}
		}
	}
}
