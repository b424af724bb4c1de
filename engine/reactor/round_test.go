package reactor

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// committer stands for a journal: the end of a round makes durable what was appended before it.
type committer struct {
	mark             connection.Watermark
	appended, rounds atomic.Uint64
}

// RoundEnded implements connection.RoundHook.
func (c *committer) RoundEnded() {
	c.rounds.Add(1)
	go c.mark.Reach(c.appended.Load())
}

// deferring keeps the replies of a session until the committer has reached their index.
type deferring struct {
	connection.Session
	port  *connection.Port
	log   *committer
	kept  []byte
	until uint64
}

func (d *deferring) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	start := len(out)
	used, out, v := d.Session.Feed(in, out, now)
	if len(out) > start {
		d.kept, d.until = append(d.kept, out[start:]...), d.log.appended.Add(1)
		d.port.Await(&d.log.mark, d.until)
		d.port.AtRoundEnd(d.log)
	}
	return used, out[:start], v
}

func (d *deferring) Pump(out []byte, room int, now connection.Instant) ([]byte, bool) {
	if len(d.kept) > 0 {
		if d.log.mark.At() < d.until {
			d.port.Await(&d.log.mark, d.until)
		} else {
			out, d.kept = append(out, d.kept...), d.kept[:0]
		}
	}
	return d.Session.Pump(out, room, now)
}

func (d *deferring) Load() connection.Load {
	l := d.Session.Load()
	l.Busy, l.Done = l.Busy || len(d.kept) > 0, l.Done && len(d.kept) == 0
	return l
}

// TestRepliesWaitForTheEndOfARound runs many connections whose replies leave after a commit; half
// of them leave their loop on the way.
func TestRepliesWaitForTheEndOfARound(t *testing.T) {
	var log committer
	s := start(t, "unix", func(c *Config) {
		open := c.Open
		c.Open = func(p *connection.Port) connection.Session { return &deferring{Session: open(p), port: p, log: &log} }
	})
	const peers, rounds = 8, 50
	var all []*peer
	for range peers {
		all = append(all, s.dial())
	}
	for r := range rounds {
		for _, p := range all {
			p.send(linktest.Frame('e', "kept"))
		}
		if r == rounds/2 {
			for _, p := range all[:peers/2] { // more than the socket takes: only goroutines can send it
				p.send(linktest.Sized('b', 4<<20))
			}
		}
		for i, p := range all {
			p.want('e', "kept")
			if r == rounds/2 && i < peers/2 {
				if cmd, _, err := linktest.Read(p.c); cmd != 'b' || err != nil {
					t.Fatalf("got %c, %v", cmd, err)
				}
			}
		}
	}
	for end := time.Now().Add(10 * time.Second); s.Stats().Left[0] < peers/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections left their loop, want %d", s.Stats().Left[0], peers/2)
		}
	}
	if n := log.rounds.Load(); n == 0 || n > log.appended.Load() {
		t.Fatalf("%d ends of rounds for %d changes", n, log.appended.Load())
	}
}

// onLoop is the owner of a port on a loop without gnet.
type onLoop struct {
	loop  *loop
	woken func()
}

func (o onLoop) Loop() *connection.Loop { return o.loop.group }
func (o onLoop) Wake(*connection.Port)  { o.woken() }

// TestAReachedIndexIsNotLost has the index of a second port reached after the round has looked and
// before the bell rings again.
func TestAReachedIndexIsNotLost(t *testing.T) {
	bell, _ := net.Pipe()
	defer bell.Close()
	l := &loop{srv: &Server{now: connection.Now}, bell: bell}
	l.group = connection.NewLoop(l.ring)
	l.rung.Store(true) // round is called for a ring
	var w connection.Watermark
	woken := 0
	for n, f := range []func(){func() { w.Reach(2) }, func() { woken++ }} {
		p := connection.NewPort(uint64(n), "test")
		p.SetOwner(onLoop{l, f})
		p.Await(&w, uint64(n+1))
	}
	w.Reach(1)
	if l.round(); woken != 1 {
		t.Fatalf("the second port was woken %d times, want 1", woken)
	}
}
