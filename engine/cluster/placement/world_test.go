package placement_test

import (
	"slices"
	"time"

	"trunkline/engine/cluster/placement"
)

// world is one partition on several nodes with a log between them: real time is known to the world
// alone. What arrives in it when, and whether, is up to the test.
type world struct {
	now      time.Duration // real
	peers    []*peer
	log      []block
	requests []*request // sent, not at the log
	answers  []*request // at the log or given up, the answer is on its way
	sent     int
	down     bool // the log takes nothing
}

type blockKind uint8

const (
	claim blockKind = iota
	data
	release
)

type block struct {
	of   *peer
	kind blockKind
}

// request is an append on condition that the log has so many blocks.
type request struct {
	block
	life    int // of the process that sent it
	number  int // in the order in which all were sent
	expect  int
	sent    time.Duration
	outcome placement.EventKind
}

// peer is a node and the process on it.
type peer struct {
	cfg     placement.Config
	clock   time.Duration // its reading
	ppm     int64         // its rate
	crashed bool
	paused  bool
	life    int
	own     placement.Ownership
	read    int // blocks that it has observed
	next    int // of an owner: what its next append expects
	rebuild bool
}

func newWorld(names []string, timing placement.Timing) *world {
	w := new(world)
	for i, name := range names {
		p := &peer{cfg: placement.Config{Node: name, Timing: timing}, clock: time.Duration(i) * 1000 * time.Hour}
		w.peers = append(w.peers, p)
		w.start(p, names)
	}
	return w
}

// start begins a new process.
func (w *world) start(p *peer, replicas placement.Replicas) {
	p.life++
	p.crashed, p.paused, p.read, p.rebuild = false, false, 0, false
	own, do := placement.Start(&p.cfg, p.clock, replicas)
	p.own = own
	w.do(p, do)
}

func (w *world) advance(d time.Duration) {
	w.now += d
	for _, p := range w.peers {
		p.clock += d + d*time.Duration(p.ppm)/1_000_000
	}
}

// step takes an event on a process that runs, and does what comes of it.
func (w *world) step(p *peer, e placement.Event) {
	if p.crashed || p.paused {
		return
	}
	e.Now = p.clock
	own, do := p.own.Step(e)
	p.own = own
	w.do(p, do)
}

func (w *world) do(p *peer, do placement.Actions) {
	if do&placement.Rebuild != 0 {
		p.rebuild = true
	}
	if do&placement.Claim != 0 {
		w.send(p, claim, p.read)
	}
	if do&placement.Renew != 0 {
		w.append(p, data)
	}
	if do&placement.Release != 0 {
		w.append(p, release)
	}
}

func (w *world) append(p *peer, kind blockKind) {
	w.send(p, kind, p.next)
	p.next++
}

func (w *world) send(p *peer, kind blockKind, expect int) {
	w.sent++
	w.requests = append(w.requests, &request{block: block{p, kind}, life: p.life, number: w.sent, expect: expect, sent: p.clock})
}

// arrive has a request reach the log, or not.
func (w *world) arrive(i int, lost bool) {
	r := w.requests[i]
	w.requests = slices.Delete(w.requests, i, i+1)
	w.answers = append(w.answers, r)
	switch {
	case lost || w.down:
		r.outcome = placement.Failed
	case r.expect != len(w.log):
		r.outcome = placement.Failed
		if r.kind == claim {
			r.outcome = placement.ClaimRefused
		}
	default:
		w.log = append(w.log, r.block)
		r.outcome = [...]placement.EventKind{claim: placement.ClaimWon, data: placement.Acked, release: placement.Released}[r.kind]
	}
}

// answer has an answer reach who waits for it; failed: it got lost, so the outcome is unknown.
// Answers are given in the order of what was sent.
func (w *world) answer(i int, failed bool) {
	r := w.answers[i]
	before := func(other *request) bool { return other.of == r.of && other.life == r.life && other.number < r.number }
	if r.of.paused || slices.ContainsFunc(w.requests, before) || slices.ContainsFunc(w.answers, before) {
		return
	}
	w.answers = slices.Delete(w.answers, i, i+1)
	if r.of.life != r.life {
		return
	}
	if failed {
		r.outcome = placement.Failed
	}
	if r.outcome == placement.ClaimWon {
		r.of.next = r.expect + 1
	}
	w.step(r.of, placement.Event{Kind: r.outcome, Sent: r.sent})
}

// observe has a process read the next block of the log.
func (w *world) observe(p *peer) {
	if p.crashed || p.paused || p.read == len(w.log) {
		return
	}
	b := w.log[p.read]
	p.read++
	kind := placement.Observed
	if b.kind == release {
		kind = placement.ObservedRelease
	}
	w.step(p, placement.Event{Kind: kind, Node: b.of.cfg.Node})
}

// rebuilt ends a rebuild that has come to the end of the log.
func (w *world) rebuilt(p *peer) {
	if p.rebuild && p.read == len(w.log) && !p.crashed && !p.paused {
		p.rebuild = false
		w.step(p, placement.Event{Kind: placement.Rebuilt})
	}
}

// serving returns who may answer plain reads at this instant. A paused process may wake at it.
func (w *world) serving() (list []*peer) {
	for _, p := range w.peers {
		if !p.crashed && p.own.MayServe(p.clock) {
			list = append(list, p)
		}
	}
	return list
}

// claimant returns whose claim is the last one in the log.
func (w *world) claimant() *peer {
	for _, b := range slices.Backward(w.log) {
		if b.kind == claim {
			return b.of
		}
	}
	return nil
}
