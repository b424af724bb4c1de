package main

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"time"

	"trunkline/handlers/ipc/ipcclient"
)

// soakFault is something that happens to a cluster under load. What it leaves cut, stopped or dead
// the round puts right.
type soakFault struct {
	name string
	do   func(s *soak)
}

// soakFaults returns all kinds.
func soakFaults() []soakFault {
	return []soakFault{
		{name: "the owner is cut off", do: func(s *soak) { s.cutOwner(linkHeld, true, true) }},
		{name: "the owner is cut off, and what was under way is lost", do: func(s *soak) { s.cutOwner(linkLost, true, true) }},
		{name: "the owner hears nothing", do: func(s *soak) { s.cutOwner(linkLost, false, true) }},
		{name: "the owner is not heard", do: func(s *soak) { s.cutOwner(linkLost, true, false) }},
		{name: "a standby is cut off", do: func(s *soak) { s.cutStandby(linkHeld) }},
		{name: "a standby is cut off, and what was under way is lost", do: func(s *soak) { s.cutStandby(linkLost) }},
		{name: "each node is cut off in turn, the leader of the streams too", do: (*soak).cutEach},
		{name: "two nodes do not reach each other", do: (*soak).cutPair},
		{name: "all links are slow", do: (*soak).slow},
		{name: "links come and go", do: (*soak).flap},
		{name: "owners die in the middle of snapshots and purges", do: (*soak).killOwners},
		{name: "a standby dies, and comes back with an old snapshot", do: (*soak).killStandby},
		{name: "all nodes die", do: (*soak).killAll},
		{name: "the owner stands still", do: (*soak).pauseOwner},
		{name: "a standby stands still", do: (*soak).pauseStandby},
		{name: "nodes end in order, one after the other", do: (*soak).rollOver},
		{name: "the owner dies while a standby is cut off", do: (*soak).killBehindCut},
		{name: "a disk has little room", do: func(s *soak) { s.fill(lowRoom) }},
		{name: "a disk has no room", do: func(s *soak) { s.fill(noRoom) }},
	}
}

// cutOwner cuts the owner off: its bytes do not pass, those to it, or both. Once there is another
// one, clients of the former get no answers; it has none to give.
func (s *soak) cutOwner(state linkState, out, in bool) {
	s.t.Helper()
	old := s.owner(s.nodes...)
	c := &clusterClient{node: old, wait: time.Second}
	defer c.close()
	read := func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.GetProcess(ctx, s.counters.pids[0])
		return err
	}
	c.surely("a read before", read)
	s.some(200 * time.Millisecond)
	others := s.but(old)
	for _, n := range others {
		if out {
			s.links.set(state, old, n)
		}
		if in {
			s.links.set(state, n, old)
		}
	}
	next := s.owner(others...)
	if _, err := c.do(read); err == nil {
		s.t.Errorf("node %s answers, while node %s owns the journal", old.id, next.id)
	}
	s.load.more(20)
	s.links.heal()
}

// cutStandby cuts a standby off. The others go on.
func (s *soak) cutStandby(state linkState) {
	s.t.Helper()
	n := s.one(s.but(s.owner(s.nodes...)))
	s.links.cut(state, n, s.but(n)...)
	s.load.more(30)
	s.some(2 * time.Second)
	s.load.more(10)
	s.links.heal()
}

func (s *soak) cutEach() {
	s.t.Helper()
	for _, i := range s.rng.Perm(len(s.nodes)) {
		n := s.nodes[i]
		s.links.cut(linkHeld, n, s.but(n)...)
		s.owner(s.but(n)...)
		s.load.more(20)
		s.links.heal()
		s.ready(n)
	}
}

// cutPair has two nodes not reach each other, while both reach the third.
func (s *soak) cutPair() {
	s.t.Helper()
	a := s.one(s.nodes)
	s.links.cut(linkHeld, a, s.one(s.but(a)))
	s.some(3 * time.Second)
	s.load.more(10)
}

func (s *soak) slow() {
	s.t.Helper()
	for _, n := range s.nodes {
		s.links.cut(linkSlow, n, s.but(n)...)
	}
	s.load.more(60)
}

// flap changes what becomes of the bytes of any nodes, often.
func (s *soak) flap() {
	s.t.Helper()
	for range 15 {
		from := s.one(s.nodes)
		s.links.set(linkState(s.rng.IntN(int(linkLost)+1)), from, s.one(s.but(from)))
		s.some(200 * time.Millisecond)
		if s.rng.IntN(3) == 0 {
			s.links.heal()
		}
	}
	s.links.heal()
	s.load.more(20)
}

// killOwners kills one owner, and the next one soon after.
func (s *soak) killOwners() {
	s.t.Helper()
	for range 2 {
		s.load.more(20)
		old := s.owner(s.nodes...)
		s.some(300 * time.Millisecond)
		old.kill()
		s.load.more(20)
		s.some(300 * time.Millisecond)
		s.start(old)
		s.ready(old)
	}
}

func (s *soak) killStandby() {
	s.t.Helper()
	n := s.one(s.but(s.owner(s.nodes...)))
	s.some(300 * time.Millisecond)
	n.kill()
	s.load.more(300) // snapshots that it does not have
}

func (s *soak) killAll() {
	s.t.Helper()
	for _, n := range slices.Clone(s.nodes) {
		s.some(100 * time.Millisecond)
		n.kill()
	}
}

func (s *soak) pauseOwner() {
	s.t.Helper()
	old := s.owner(s.nodes...)
	old.pause()
	s.owner(s.but(old)...)
	s.load.more(20)
	old.signal(syscall.SIGCONT)
}

// pauseStandby has a standby stand still for up to 15 s, or for as long as the others need to write
// more than a connection to it may hold. They go on.
func (s *soak) pauseStandby() {
	s.t.Helper()
	n := s.one(s.but(s.owner(s.nodes...)))
	n.pause()
	if s.rng.IntN(2) == 0 {
		s.some(15 * time.Second)
	} else {
		s.write(s.one(s.but(n)), 100<<20)
	}
	s.load.more(50)
	n.signal(syscall.SIGCONT)
}

// largeRecord is the size of a record of write, in bytes.
const largeRecord = 256 << 10

// write has a client of a node write large records. They are of one row, so that the state of the
// nodes does not grow.
func (s *soak) write(n *clusterNode, bytes int) {
	s.t.Helper()
	c := &clusterClient{node: n}
	defer c.close()
	var row ipcclient.UpdateEnvelope
	c.surely("a large row", func(ctx context.Context, conn *ipcclient.Conn) (err error) {
		row.Envelope, err = conn.CreateEnvelope(ctx, ipcclient.CreateEnvelope{RawInput: strings.Repeat("x", largeRecord)})
		return err
	})
	for ; bytes > 0; bytes -= largeRecord {
		c.surely("a large record", func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.UpdateEnvelope(ctx, row.Envelope)
			return err
		})
	}
}

// rollOver starts all nodes again, the owner at last.
func (s *soak) rollOver() {
	s.t.Helper()
	owner := s.owner(s.nodes...)
	for _, n := range append(s.but(owner), owner) {
		n.terminate()
		s.load.more(10)
		s.start(n)
		s.ready(n)
		s.caughtUp(n)
	}
}

// killBehindCut kills the owner while one of the others is alone: there is no majority until it
// comes back, and it must not miss what it did not see.
func (s *soak) killBehindCut() {
	s.t.Helper()
	old := s.owner(s.nodes...)
	n := s.one(s.but(old))
	s.links.cut(linkHeld, n, s.but(n)...)
	s.load.more(20)
	old.kill()
	s.some(2 * time.Second)
	s.links.heal()
	s.load.more(20)
}
