package orchtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// wide is an output of n bytes.
func wide(n int) obj { return obj{"x": strings.Repeat("x", n)} }

// TestBytesComeBack: whatever way a session or an envelope goes, what it took is free again.
func TestBytesComeBack(t *testing.T) {
	const most = 50_000
	config := func(c *orchestration.Config) {
		c.MaxSessionBytes, c.MaxEnvelopeBytes, c.MaxSessions, c.SessionRetention = most, most, 4, time.Minute
	}
	f := func(what string, go_ func(k *talk, pid string)) {
		t.Run(what, func(t *testing.T) {
			k := newTalk(t, config)
			for n := range 50 {
				pid := fmt.Sprint("p", n)
				k.body(k.initialize(pid, line(4), nested("e"), false))
				k.body(k.report(pid, giving("a1", wide(20_000))))
				go_(k, pid)
				k.now = after(k.now, time.Second)
			}
		})
	}
	f("removed", func(k *talk, pid string) { k.removed(pid) })
	f("swept", func(k *talk, pid string) { k.now = after(k.now, 2*time.Minute); k.e.Sweep(k.now) })
	f("ended and evicted", func(k *talk, pid string) { k.ended(pid) })
	f("finished and evicted", func(k *talk, pid string) {
		for n := range 3 {
			k.body(k.report(pid, by(fmt.Sprint("a", n+2))))
		}
	})
	f("replaced by a small one", func(k *talk, pid string) {
		k.body(k.initialize(pid, line(1), flat("e"), true))
		k.body(k.report(pid, by("a1")))
	})
	f("outputs replaced", func(k *talk, pid string) {
		k.body(k.initialize(pid, cycle(nil), flat("e"), true))
		for n := range 10 {
			k.body(k.report(pid, giving(fmt.Sprint("a", n%2+1), wide(500))))
		}
		k.removed(pid)
	})
	f("envelopes", func(k *talk, pid string) {
		k.removed(pid)
		id, _ := at(k.body(k.clone(flat("x", obj{"outputs": wide2(20_000)}))), "envelope_id")
		k.body(k.update(flat(id.(string), obj{"outputs": wide2(30_000)})))
		k.body(k.update(flat(id.(string), obj{"terminated": true, "outputs": wide2(10_000)})))
	})
}

func wide2(n int) obj { return obj{"o": wide(n)} }

// TestGrowthInBytes: a report or an update that would take more than there is is refused and
// changes nothing.
func TestGrowthInBytes(t *testing.T) {
	k := newTalk(t, func(c *orchestration.Config) { c.MaxSessionBytes, c.MaxEnvelopeBytes = 50_000, 50_000 })
	k.start("p", line(3), flat("e"))
	k.unchanged("p", func() {
		if got := k.report("p", giving("a1", wide(60_000))); got.code != wire.ResourceExhausted {
			t.Errorf("got %s %s", got.code, got.msg)
		}
	})
	k.runs(k.report("p", giving("a1", wide(10_000))), "a2")
	id := k.storedID()
	if got := k.update(flat(id, obj{"outputs": wide2(60_000)})); got.code != wire.ResourceExhausted {
		t.Errorf("got %s %s", got.code, got.msg)
	}
	k.body(k.update(flat(id, obj{"outputs": wide2(10_000)})))
}

// TestStatsFollow: the figures are those of what is there, and nothing is left when all is gone.
func TestStatsFollow(t *testing.T) {
	k := newTalk(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	for n := range 400 {
		k.now = after(k.now, time.Second)
		anyCall(k.driver, rnd, fmt.Sprint("p", rnd.IntN(20)), fmt.Sprint("e", rnd.IntN(4)))
		s := k.e.Stats()
		if s.Sessions != k.e.Active() || s.Sessions < 0 || (s.SessionBytes > 0) != (s.Sessions > 0) || (s.EnvelopeBytes > 0) != (s.Envelopes > 0) {
			t.Fatalf("after %d calls: %+v, %d active", n, s, k.e.Active())
		}
	}
	k.now = after(k.now, 1000*time.Hour)
	k.e.Sweep(k.now)
	if s := k.e.Stats(); s != (orchestration.Stats{}) {
		t.Errorf("after all is gone: %+v", s)
	}
}

// TestDefaults: a configuration without figures has those of envelope §6.
func TestDefaults(t *testing.T) {
	k := &talk{drive(orchestration.Config{}), t}
	config := pack(nil, line(1))
	for n := range 10_000 {
		k.body(k.initialize(fmt.Sprint(n), rawMsg(config), flat("e"), false))
		k.body(k.create(orchestration.CreateArgs{}))
	}
	k.full(k.initialize("more", rawMsg(config), flat("e"), false), tableFull)
	k.full(k.create(orchestration.CreateArgs{}), storeFull)
	k.sweep(time.Hour-time.Millisecond, 0, 0)
	k.sweep(time.Hour+time.Millisecond, 10_000, 0)
	k.sweep(24*time.Hour-time.Millisecond, 0, 0)
	k.sweep(24*time.Hour+time.Millisecond, 0, 10_000)
	k.want(k.create(orchestration.CreateArgs{}), nested("", nestedMembers, obj{
		"envelope_id": generated("env_"), "received_at": stamp(k.now), "created_at": stamp(k.now),
	}))
	if got := k.clone(flat("e", obj{"raw_input": strings.Repeat("x", wire.DefaultMaxFrame-4096)})); got.code != wire.ResourceExhausted {
		t.Errorf("more than a frame: %s %s", got.code, got.msg)
	}
}

// TestWhoWaitsForWhat: an answer reaches the session that waits with that envelope now, not one
// that did before.
func TestWhoWaitsForWhat(t *testing.T) {
	k := newTalk(t)
	first, second := k.storedID(), k.storedID()
	ask := func(id string) obj {
		return flat(id, obj{"interrupt_pending": true, "interrupt": obj{"kind": "timeout"}})
	}
	k.start("p", line(1), ask(first))
	k.body(k.initialize("p", line(1), ask(second), true))
	k.unchanged("p", func() { k.body(k.update(flat(first))) })
	k.body(k.update(flat(second)))
	k.runs(k.next("p"), "a1")
	k.unchanged("p", func() { k.body(k.update(flat(second, obj{"interrupt": obj{"n": 2}}))) })

	k.body(k.initialize("p", line(1), ask(first), true))
	k.removed("p")
	k.body(k.update(flat(first)))
	k.start("p", line(1), ask(first))
	k.has(k.next("p"), obj{"kind": "WAIT_INTERRUPT"})
	k.ended("p")
	k.unchanged("p", func() { k.body(k.update(flat(first))) })

	k.body(k.initialize("p", line(1), ask(first), true))
	k.refuse(k.initialize("p", line(1), obj{}, true), wire.InvalidArgument, "Invalid envelope: missing field `identity`")
	k.body(k.update(flat(first)))
	k.runs(k.next("p"), "a1")
}

// TestCancelled: a session marked as cancelled is found ended by whatever comes next (envelope
// §5.2).
func TestCancelled(t *testing.T) {
	for what, next := range map[string]func(k *talk, id string){
		"next":   func(k *talk, id string) { k.terminates(k.next("p"), "USER_CANCELLED", endedBefore) },
		"report": func(k *talk, id string) { k.terminates(k.report("p", by("a1")), "USER_CANCELLED", endedBefore) },
		"update": func(k *talk, id string) { k.body(k.update(flat(id))) },
		"state":  func(k *talk, id string) {},
		"ended":  func(k *talk, id string) { k.ended("p") },
	} {
		for _, pending := range []bool{false, true} {
			k := newTalk(t)
			id := k.storedID()
			k.start("p", line(2), flat(id, obj{"interrupt_pending": pending}))
			k.start("q", line(2), flat(id, obj{"interrupt_pending": false}))
			k.e.Cancel([]byte("p"))
			k.e.Cancel([]byte("nobody"))
			next(k, id)
			k.has(k.state("p"), obj{
				"terminated": true, "terminal_reason": "USER_CANCELLED", "envelope.interrupt_pending": false, "envelope.iteration": 0,
				"envelope.termination_reason": "Process terminated", "envelope.completed_at": stamp(k.now),
			})
			k.runs(k.next("q"), "a1")
			if t.Failed() {
				t.Fatalf("%s, waiting %v", what, pending)
			}
		}
	}
}
