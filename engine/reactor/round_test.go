package reactor

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// committer stands for a journal: the end of a round makes durable what was appended before it.
type committer struct {
	mark             connection.Watermark
	appended, rounds atomic.Uint64
	hung             atomic.Bool // nothing becomes durable, though it is reported to come soon
}

// RoundEnded implements connection.RoundHook.
func (c *committer) RoundEnded() (soon bool) {
	c.rounds.Add(1)
	if !c.hung.Load() {
		go c.mark.Reach(c.appended.Load())
	}
	return true
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

// oneWaits starts a server of one loop with two connections: the replies to one wait for log. It
// has had the reply "kept".
func oneWaits(t *testing.T, log *committer) (s *server, waits, other *peer) {
	s = start(t, "unix", func(c *Config) {
		c.Loops = 1
		open, kept := c.Open, true
		c.Open = func(p *connection.Port) connection.Session {
			session := open(p)
			if kept {
				session, kept = &deferring{Session: session, port: p, log: log}, false
			}
			return session
		}
	})
	waits = s.dial()
	waits.send(linktest.Frame('e', "kept"))
	waits.want('e', "kept") // it is the first connection
	return s, waits, s.dial()
}

// TestAHungJournalDelaysOthersBriefly: a loop that waits for a journal serves its other connections
// before the journal is done.
func TestAHungJournalDelaysOthersBriefly(t *testing.T) {
	var log committer
	s, waits, other := oneWaits(t, &log)
	log.hung.Store(true)
	parked := func() bool {
		for begin := time.Now(); time.Since(begin) < 2*maxPark; {
			for _, l := range s.loops {
				if l.parked.Load() {
					return true
				}
			}
		}
		return false
	}
	sent := 0
	for seen := 0; seen < 5 && sent < 10_000; sent++ {
		waits.send(linktest.Frame('e', "late"))
		if parked() && sent%16 == 15 {
			other.send(linktest.Frame('e', "at once"))
			other.want('e', "at once")
			seen++
		}
	}
	if sent == 10_000 {
		t.Fatal("no loop waits for its journal")
	}
	log.hung.Store(false)
	log.mark.Reach(log.appended.Load())
	for range sent {
		waits.want('e', "late")
	}
}

// parkable returns a loop whose bell is counted.
func parkable(t *testing.T) (l *loop, bells *atomic.Int64) {
	bell, far := net.Pipe()
	t.Cleanup(func() { bell.Close(); far.Close() })
	bells = new(atomic.Int64)
	go func() {
		for b := make([]byte, 1); ; bells.Add(1) {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	l = &loop{srv: &Server{now: connection.Now}, bell: bell, unpark: make(chan struct{}, 1), timer: time.NewTimer(maxPark)}
	l.group = connection.NewLoop(l.ring)
	return l, bells
}

// TestParkEnds: by a ring, which then needs no bell, or by its time.
func TestParkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, bells := parkable(t)
		begin := time.Now()
		go func() { time.Sleep(maxPark - 1); l.ring() }()
		if !l.park() || time.Since(begin) != maxPark-1 || bells.Load() != 0 {
			t.Errorf("not ended by the ring: %s, %d bells", time.Since(begin), bells.Load())
		}
		l.rung.Store(false)
		begin = time.Now()
		if l.park() || time.Since(begin) != maxPark {
			t.Errorf("ended after %s, want %s", time.Since(begin), maxPark)
		}
		l.ring()
		if synctest.Wait(); bells.Load() != 1 {
			t.Errorf("%d bells after the park, want 1", bells.Load())
		}
		begin = time.Now()
		if l.park() || time.Since(begin) != 0 {
			t.Error("parked although the bell was rung")
		}
	})
}

// TestNoWakeUpIsLost: each one ends a park or is a byte for the loop, never both.
func TestNoWakeUpIsLost(t *testing.T) {
	l, bells := parkable(t)
	const rings = 2000
	heard := make(chan struct{})
	go func() {
		for range rings {
			l.ring()
			<-heard
		}
	}()
	ended, seen := int64(0), int64(0)
	for range rings {
		for {
			if l.park() {
				ended++
				break
			}
			if n := bells.Load(); n > seen {
				seen = n
				break
			}
		}
		l.rung.Store(false)
		heard <- struct{}{}
	}
	if n := bells.Load(); n+ended != rings {
		t.Errorf("%d bells and %d parks ended for %d rings", n, ended, rings)
	}
}

// TestALoopParksWhereMostWaits: it does not where more than an eighth of what was read recently
// does not wait, or nothing comes soon.
func TestALoopParksWhereMostWaits(t *testing.T) {
	for _, c := range []struct {
		input  input
		soon   bool
		parked time.Duration
	}{
		{input{fed: 800, waiting: 700}, true, maxPark},
		{input{fed: 800, waiting: 699}, true, 0},
		{input{fed: 800, waiting: 800}, false, 0},
		{input{}, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := parkable(t)
			l.input = c.input
			p := connection.NewPort(1, "test")
			p.SetOwner(onLoop{l, func() {}})
			log := &committer{}
			if log.hung.Store(true); c.soon {
				p.AtRoundEnd(log)
			}
			synctest.Wait() // the bell
			begin := time.Now()
			if l.round(); time.Since(begin) != c.parked {
				t.Errorf("%+v: parked for %s, want %s", c, time.Since(begin), c.parked)
			}
		})
	}
}

func TestInputIsRecent(t *testing.T) {
	var i input
	i.add(1<<40, false) // of years
	for range 10 {
		i.add(inputWindow/2, true)
	}
	if !i.mostlyWaiting() || i.fed >= 2*inputWindow || i.waiting > i.fed {
		t.Errorf("what was long ago still counts: %+v", i)
	}
	i.add(inputWindow/2, false)
	if i.mostlyWaiting() {
		t.Errorf("much that does not wait counts too little: %+v", i)
	}
}

// TestInputOfALoop: a loop counts what it was fed, and that a session waits once for each read:
// neither what it does beside, nor how often it calls Await.
func TestInputOfALoop(t *testing.T) {
	var log committer
	s, waits, other := oneWaits(t, &log)
	text := strings.Repeat("x", 100)
	for range 20 {
		waits.send(linktest.Frame('e', text))
		waits.want('e', text)
	}
	for range 3 {
		other.send(linktest.Frame('e', text))
		other.want('e', text)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	frame := len(linktest.Frame('e', text))
	want := input{fed: 23*frame + len(linktest.Frame('e', "kept")), waiting: 20*frame + len(linktest.Frame('e', "kept"))}
	if got := s.loops[0].input; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
