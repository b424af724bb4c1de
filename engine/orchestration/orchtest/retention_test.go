package orchtest

import (
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// short is a session retention below every kind's.
func short(c *orchestration.Config) { c.SessionRetention = 10 * time.Minute }

// sweep sweeps at the time and checks how many sessions and envelopes go.
func (k *talk) sweep(at time.Duration, sessions, envelopes int) {
	k.t.Helper()
	k.now = after(clock(), at)
	if s, e := k.e.Sweep(k.now); s != sessions || e != envelopes {
		k.t.Errorf("at %v %d sessions and %d envelopes went, want %d and %d", at, s, e, sessions, envelopes)
	}
}

// TestIdleSessions: a session goes when nothing happened to it for the retention; asking for its
// state is nothing (§4.13, §5.3).
func TestIdleSessions(t *testing.T) {
	f := func(what string, activity func(k *talk)) {
		t.Run(what, func(t *testing.T) {
			k := newTalk(t, short)
			k.start("p", cycle(nil), flat("e"))
			k.now = after(clock(), 6*time.Minute)
			activity(k)
			k.sweep(10*time.Minute+time.Millisecond, 0, 0)
			k.body(k.state("p"))
			k.sweep(16*time.Minute-time.Millisecond, 0, 0)
			k.body(k.state("p"))
			k.sweep(16*time.Minute+time.Millisecond, 1, 0)
			k.refuse(k.state("p"), wire.NotFound, "Unknown process: p")
			if n := k.e.Active(); n != 0 {
				t.Errorf("%d sessions left", n)
			}
			k.sweep(17*time.Minute, 0, 0)
		})
	}
	f("InitializeSession", func(k *talk) { k.body(k.initialize("p", line(1), flat("e"), true)) })
	f("GetNextInstruction", func(k *talk) { k.body(k.next("p")) })
	f("ReportAgentResult", func(k *talk) { k.body(k.report("p", by("a1"))) })
	f("the last report", func(k *talk) {
		k.body(k.initialize("p", line(1), flat("e"), true))
		k.body(k.report("p", by("a1")))
	})

	k := newTalk(t, short)
	k.start("p", cycle(nil), flat("e"))
	k.now = after(clock(), 6*time.Minute)
	k.body(k.state("p"))
	k.sweep(10*time.Minute+time.Millisecond, 1, 0)
}

// TestSweepTakesOnlyTheIdle: among many sessions.
func TestSweepTakesOnlyTheIdle(t *testing.T) {
	k := newTalk(t, short)
	for i := range 200 {
		k.now = after(clock(), time.Duration(i)*time.Minute)
		k.start(string(rune('0'+i)), line(1), flat("e"))
	}
	k.sweep(199*time.Minute+time.Second, 190, 0)
	k.sweep(199*time.Minute+2*time.Second, 0, 0)
	if n := k.e.Active(); n != 10 {
		t.Errorf("%d sessions left, want 10", n)
	}
}

// TestWaitingSessions: a waiting session stays for the longest of the retention, its kind's, and
// its expires_at (§3.5, §5.3).
func TestWaitingSessions(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		f := func(retention time.Duration, interrupt any, want time.Duration) {
			t.Helper()
			k := newTalk(t, func(c *orchestration.Config) { c.SessionRetention = retention })
			env := make("e", obj{"interrupt_pending": true})
			if interrupt != nil {
				env = make("e", obj{"interrupt_pending": true, "interrupt": interrupt})
			}
			k.start("p", line(1), env)
			k.sweep(want-time.Millisecond, 0, 0)
			k.sweep(want+time.Millisecond, 1, 0)
			if t.Failed() {
				t.Fatalf("with the retention %v and the interrupt %s", retention, show(interrupt))
			}
		}
		const base = 10 * time.Minute
		for kind, want := range map[string]time.Duration{
			"clarification": 24 * time.Hour, "Clarification": 24 * time.Hour, "CLARIFICATION": 24 * time.Hour, "confirmation": time.Hour,
			"CONFIRMATION": time.Hour, "agent_review": time.Hour, "critic_review": time.Hour, "checkpoint": 24 * time.Hour,
			"resource_exhausted": time.Hour, "timeout": time.Hour, "system_error": time.Hour, "unspecified": base, "": base, "strange": base,
		} {
			f(base, obj{"kind": kind}, want)
			f(30*time.Hour, obj{"kind": kind}, 30*time.Hour)
		}
		f(base, nil, base)
		f(base, obj{}, base)
		f(base, obj{"kind": "timeout", "expires_at": "2026-01-02T03:34:05Z"}, time.Hour)
		f(base, obj{"kind": "timeout", "expires_at": "2026-01-02T04:34:05.000Z"}, 90*time.Minute)
		f(base, obj{"kind": "timeout", "expires_at": "2026-01-02T05:34:05+01:00"}, 90*time.Minute)
		f(base, obj{"kind": "timeout", "expires_at": "2026-01-02 04:34:05"}, 90*time.Minute)
		f(base, obj{"kind": "strange", "expires_at": "2026-01-02T03:24:05Z"}, 20*time.Minute)
		f(base, obj{"kind": "clarification", "expires_at": "2026-01-04T03:04:05Z"}, 48*time.Hour)
		f(base, obj{"kind": "timeout", "expires_at": nil}, time.Hour)
	})
}

// TestWaitingBegins: activity of a waiting session counts as well, and an answer ends the longer
// stay.
func TestWaitingBegins(t *testing.T) {
	k := newTalk(t, short)
	id := k.storedID()
	ask := obj{"interrupt_pending": true, "interrupt": obj{"kind": "confirmation"}}
	k.start("p", line(1), flat(id, ask, obj{"interrupt": obj{"kind": "confirmation", "expires_at": "2026-01-09T00:00:00Z"}}))
	k.start("q", line(1), flat("q", ask))
	k.start("r", line(1), flat("r", ask))
	k.now = after(clock(), 30*time.Minute)
	k.has(k.next("r"), obj{"kind": "WAIT_INTERRUPT"})
	k.body(k.update(flat(id)))
	k.ended("q")
	k.sweep(40*time.Minute-time.Millisecond, 1, 0) // q waits no more, and no one asked for it since it began
	k.refuse(k.next("q"), wire.NotFound, "Unknown process: q")
	k.sweep(40*time.Minute+time.Millisecond, 1, 0)
	k.refuse(k.next("p"), wire.NotFound, "Unknown process: p")
	k.sweep(90*time.Minute-time.Millisecond, 0, 0)
	k.sweep(90*time.Minute+time.Millisecond, 1, 0)
}

// TestAnsweringCounts: a resolving update is activity of the session; one that resolves nothing is
// not.
func TestAnsweringCounts(t *testing.T) {
	k := newTalk(t, short)
	id := k.storedID()
	k.start("p", line(1), flat(id, obj{"interrupt_pending": true}))
	k.now = after(clock(), 9*time.Minute)
	k.body(k.update(flat(id)))
	k.sweep(19*time.Minute-time.Millisecond, 0, 0)
	k.body(k.update(flat(id)))
	k.sweep(19*time.Minute+time.Millisecond, 1, 0)
}

// TestTwoClocks: ages go by the monotonic clock, expires_at by the wall (envelope §6).
func TestTwoClocks(t *testing.T) {
	k := newTalk(t, short)
	k.start("p", line(1), flat("e"))
	k.start("q", line(1), flat("e", obj{"interrupt_pending": true, "interrupt": obj{"kind": "x", "expires_at": "2026-01-03T03:04:05Z"}}))
	k.now.Wall += (20 * time.Hour).Milliseconds()
	if s, _ := k.e.Sweep(k.now); s != 0 {
		t.Errorf("%d sessions went by the wall clock", s)
	}
	k.now.Wall -= (40 * time.Hour).Milliseconds()
	k.now.Mono += int64(time.Hour)
	if s, _ := k.e.Sweep(k.now); s != 1 {
		t.Errorf("%d sessions went, want 1", s)
	}
	k.refuse(k.state("p"), wire.NotFound, "Unknown process: p")
	k.now.Wall = dayZero.Add(24*time.Hour + time.Second).UnixMilli()
	if s, _ := k.e.Sweep(k.now); s != 1 {
		t.Errorf("%d sessions went after expires_at, want 1", s)
	}
}

// TestIdleEnvelopes: an envelope goes when it was neither created nor updated for the retention.
func TestIdleEnvelopes(t *testing.T) {
	k := newTalk(t, func(c *orchestration.Config) { c.EnvelopeRetention = 2 * time.Hour })
	a, b := k.storedID(), k.storedID()
	k.now = after(clock(), time.Hour)
	k.body(k.update(flat(b)))
	c, _ := at(k.body(k.clone(flat("x"))), "envelope_id")
	k.sweep(2*time.Hour-time.Millisecond, 0, 0)
	k.sweep(2*time.Hour+time.Millisecond, 0, 1)
	k.refuse(k.update(flat(a)), wire.NotFound, "Envelope %s not found", a)
	k.sweep(3*time.Hour-time.Millisecond, 0, 0)
	k.body(k.update(flat(b)))
	k.sweep(3*time.Hour+time.Millisecond, 0, 1)
	k.refuse(k.update(flat(c.(string))), wire.NotFound, "Envelope %s not found", c)
	k.sweep(5*time.Hour+time.Millisecond, 0, 1)
}
