package placement_test

import (
	"slices"
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/rounds"

	"pgregory.net/rapid"
)

var (
	names    = []string{"a", "b", "c", "d"}
	anyNode  = rapid.IntRange(0, len(names)-1)
	anyCase  = rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
	anyRate  = rapid.SampledFrom([]int64{-placement.MaxClockSkewPPM, -1, 0, 1, placement.MaxClockSkewPPM})
	anyDelay = rapid.OneOf(
		rapid.Map(rapid.Int64Range(0, 20), milliseconds),
		rapid.SampledFrom([]time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 950 * time.Millisecond, 1010 * time.Millisecond}),
	)
)

// check runs a property as often as there is time for, a hundred times per round.
func check(t *testing.T, property func(*rapid.T)) {
	for range rounds.Of(1, 10) {
		rapid.Check(t, property)
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// TestNeverTwoServe: whatever is delayed, lost, paused, killed, believed or assigned, and however
// the clocks run within their bound, at no instant may two nodes serve, and none may whose claim is
// not the last one in the log.
func TestNeverTwoServe(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(names, drawTiming(t))
		for _, p := range w.peers {
			p.ppm = anyRate.Draw(t, "rate")
		}
		for range rapid.IntRange(100, 300).Draw(t, "steps") {
			disturb(t, w)
			serving := w.serving()
			if len(serving) > 1 {
				t.Fatalf("at %v both %s and %s may serve", w.now, serving[0].cfg.Node, serving[1].cfg.Node)
			}
			if len(serving) == 1 && w.claimant() != serving[0] {
				t.Fatalf("at %v %s may serve, and the last claim is of %s", w.now, serving[0].cfg.Node, w.claimant().cfg.Node)
			}
		}
		recoverWorld(t, w)
	})
}

// drawTiming draws timings that pass, with margins that are as small as they may be.
func drawTiming(t *rapid.T) placement.Timing {
	timing := placement.DefaultTiming()
	if rapid.Bool().Draw(t, "tight") {
		timing.Margin = 19_801_981 * time.Nanosecond // a nanosecond less is refused
		timing.Renew = 490 * time.Millisecond
		timing.Stagger = time.Millisecond
	}
	if err := timing.Check(); err != nil {
		t.Fatal(err)
	}
	return timing
}

// disturb lets something happen. The first cases are the ordinary ones.
func disturb(t *rapid.T, w *world) {
	p := w.peers[anyNode.Draw(t, "node")]
	switch anyCase.Draw(t, "what") {
	case 0, 1, 2:
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			w.run(anyDelay.Draw(t, "delay"))
		}
	case 3, 4:
		w.advanceToDue(p)
	case 5:
		w.advance(anyDelay.Draw(t, "delay"))
	case 6:
		w.step(p, placement.Event{Kind: placement.Tick})
	case 7, 8, 9:
		if n := len(w.requests); n > 0 {
			w.arrive(rapid.IntRange(0, n-1).Draw(t, "request"), false)
		}
	case 10:
		if n := len(w.answers); n > 0 {
			w.answer(rapid.IntRange(0, n-1).Draw(t, "answer"), false)
		}
	case 11, 12:
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			w.observe(p)
		}
		w.rebuilt(p)
	case 13:
		if p.own.State() == placement.Owner && !p.paused && !p.crashed {
			w.append(p, data)
		}
	default:
		disturbHard(t, w, p)
	}
}

func disturbHard(t *rapid.T, w *world, p *peer) {
	other := w.peers[anyNode.Draw(t, "other")].cfg.Node
	switch rapid.IntRange(0, 7).Draw(t, "how") {
	case 0:
		p.paused = !p.paused
	case 1:
		p.ppm = anyRate.Draw(t, "rate")
	case 2:
		w.step(p, placement.Event{Kind: placement.Assigned, Replicas: drawReplicas(t)})
	case 3:
		w.step(p, placement.Event{Kind: rapid.SampledFrom([]placement.EventKind{placement.PeerDead, placement.PeerAlive}).Draw(t, "belief"), Node: other})
	case 4:
		p.crashed = true
	case 5:
		w.start(p, drawReplicas(t))
		p.read = rapid.IntRange(0, len(w.log)).Draw(t, "snapshot")
	case 6:
		w.down = !w.down
	case 7:
		if n := len(w.requests); n > 0 {
			w.arrive(rapid.IntRange(0, n-1).Draw(t, "request"), rapid.Bool().Draw(t, "lost"))
		}
		if n := len(w.answers); n > 0 {
			w.answer(rapid.IntRange(0, n-1).Draw(t, "answer"), true)
		}
	}
}

func drawReplicas(t *rapid.T) placement.Replicas {
	return rapid.Permutation(names).Draw(t, "replicas")[:rapid.IntRange(0, len(names)).Draw(t, "many")]
}

// advanceToDue lets time pass until a node has something to do.
func (w *world) advanceToDue(p *peer) {
	if due := p.own.Due(); due != placement.Never {
		w.advance(max(0, due-p.clock)*1_000_000/time.Duration(1_000_000+p.ppm) + 1)
		w.step(p, placement.Event{Kind: placement.Tick})
	}
}

// recoverWorld ends all disturbance but for one node that stays dead, and expects an owner.
func recoverWorld(t *rapid.T, w *world) {
	dead := w.peers[anyNode.Draw(t, "dead")]
	w.down = false
	for _, p := range w.peers {
		if p.crashed {
			w.start(p, nil)
		}
		p.paused = false
		w.step(p, placement.Event{Kind: placement.Assigned, Replicas: names})
	}
	dead.crashed = true
	timing := w.peers[0].cfg.Timing
	// A lease of the dead one, one of a claim that is in the log already, the stagger, the way.
	limit := w.now + 2*(timing.Lease+timing.Lease*placement.MaxClockSkewPPM/1_000_000) + placement.TakeoverAllowance
	for w.run(5 * time.Millisecond); len(w.serving()) == 0; w.run(5 * time.Millisecond) {
		if w.now > limit {
			t.Fatalf("no node serves at %v", w.now)
		}
	}
}

// run lets time pass in which everything arrives and every process does what is due.
func (w *world) run(d time.Duration) {
	w.advance(d)
	for _, p := range w.peers {
		if p.own.Due() <= p.clock {
			w.step(p, placement.Event{Kind: placement.Tick})
		}
	}
	for len(w.requests) > 0 {
		w.arrive(0, false)
	}
	slices.SortFunc(w.answers, func(a, b *request) int { return a.number - b.number })
	for i := 0; i < len(w.answers); {
		n := len(w.answers)
		if w.answer(i, false); len(w.answers) == n { // who waits for it is paused
			i++
		}
	}
	for _, p := range w.peers {
		for p.read < len(w.log) && !p.crashed && !p.paused {
			w.observe(p)
		}
		w.rebuilt(p)
	}
}

// TestTakeover: when the owner dies, the next one serves within the lease and the allowance, by
// whatever clocks, if the standbys before it are dead too.
func TestTakeover(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(names, drawTiming(t))
		for _, p := range w.peers {
			p.ppm = anyRate.Draw(t, "rate")
		}
		w.runUntilServed(t)
		for range rapid.IntRange(0, 100).Draw(t, "calm") {
			w.run(5 * time.Millisecond)
		}
		w.serving()[0].crashed = true
		others := rapid.IntRange(0, len(names)-2).Draw(t, "others")
		for _, p := range w.peers {
			if others > 0 && !p.crashed {
				p.crashed = true
				others--
			}
		}
		begin, lease := w.now, w.peers[0].cfg.Timing.Lease
		w.runUntilServed(t)
		if took := w.now - begin; took > lease+lease*placement.MaxClockSkewPPM/1_000_000+placement.TakeoverAllowance {
			t.Fatalf("took over after %v", took)
		}
	})
}

func (w *world) runUntilServed(t *rapid.T) {
	for limit := w.now + time.Minute; len(w.serving()) == 0; w.run(5 * time.Millisecond) {
		if w.now > limit {
			t.Fatal("no node serves")
		}
	}
}
