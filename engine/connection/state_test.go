package connection

import (
	"testing"

	"pgregory.net/rapid"
)

// TestState takes one connection through each sequence of calls, and looks at what is next.
func TestState(t *testing.T) {
	type step struct {
		call func(s *State)
		want Action
	}
	fed := func(used, rest int, v Verdict) func(*State) { return func(s *State) { s.Fed(used, rest, v, 1) } }
	pumped := func(unread int) func(*State) { return func(s *State) { s.Pumped(0, unread, false, 1) } }
	drainAfter := func(n int) func(*State) { return func(s *State) { s.DrainAfter(n) } }
	lend := func(unread int) func(*State) { return func(s *State) { s.Lend(unread) } }
	drained := func(unread int) func(*State) { return func(s *State) { s.Drained(unread) } }
	f := func(steps ...step) {
		t.Helper()
		var s State
		for i, x := range steps {
			if x.call(&s); s.Next() != x.want {
				t.Fatalf("after step %d next is %d, want %d: %+v", i, s.Next(), x.want, s)
			}
		}
	}
	f(step{fed(5, 0, More), DoRead}, step{fed(5, 3, Yield), DoFeed}, step{fed(3, 0, More), DoRead})
	f(step{fed(5, 3, Blocked), DoWait}, step{(*State).Kept, DoWait}, step{pumped(3), DoFeed})
	f(step{fed(5, 0, Blocked), DoWait}, step{pumped(0), DoRead}, step{(*State).Kept, DoFeed})
	f(step{fed(5, 3, Close), DoClose}, step{(*State).Kept, DoClose}, step{pumped(3), DoClose}, step{drained(3), DoClose})
	f(step{(*State).Close, DoClose})
	f(step{fed(5, 9, Yield), DoFeed}, step{drainAfter(6), DoFeed}, step{fed(6, 3, More), DoDrain}, step{drained(3), DoFeed})
	f(step{fed(5, 9, Blocked), DoWait}, step{drainAfter(9), DoWait}, step{pumped(9), DoFeed}, step{fed(7, 2, More), DoDrain}, step{drained(2), DoFeed})
	f(step{drainAfter(-1), DoDrain}, step{lend(4), DoDrain}, step{fed(2, 2, Yield), DoFeed}, step{fed(2, 0, More), DoDrain}, step{drained(0), DoRead})
}

// TestLend lends what came before a drain.
func TestLend(t *testing.T) {
	f := func(mark, unread, want int) {
		t.Helper()
		var s State
		s.DrainAfter(mark)
		if got := s.Lend(unread); got != want {
			t.Errorf("mark %d, %d unread: lent %d, want %d", mark, unread, got, want)
		}
		s.Fed(want, unread-want, Yield, 1)
		if got := s.Lend(9); mark >= 0 && got != min(mark-want, 9) {
			t.Errorf("mark %d: lent %d after %d were taken", mark, got, want)
		}
		s.Drained(unread)
		if got := s.Lend(unread); got != unread {
			t.Errorf("lent %d of %d after the drain", got, unread)
		}
	}
	f(4, 9, 4)
	f(4, 4, 4)
	f(4, 3, 3)
	f(0, 3, 0)
	f(-1, 3, 3)
}

// owner serves a conversation of frames by a State, as an owner of connections does, and keeps the
// rules of the protocol in plain words beside it.
type owner struct {
	State
	t      rapid.TB
	unread []byte // frames: the first byte of each is its length
	fresh  bool   // bytes came that were not fed
	now    int64

	blocked, closed bool
	before          int // bytes that came before the drain and were not taken; -1: none is due
	drains, eofs    int
}

// loaded is a session of which only Load is called.
type loaded struct {
	Session
	load Load
}

func (l loaded) Load() Load { return l.load }

// arrive appends n frames and part bytes of one more, behind which bytes of later ones may complete
// it.
func (o *owner) arrive(n, part int) {
	for range n {
		o.unread = append(o.unread, 2, 0)
	}
	if part > 0 {
		o.unread = append(append(o.unread, 9), make([]byte, part-1)...)
	}
	if o.fresh = true; o.Verdict != More {
		o.Kept()
	}
}

// feed has the session take whole frames, at most share, and answer with v where it may.
func (o *owner) feed(share int, v Verdict) {
	if n := o.Next(); n == DoWait || n == DoClose || n == DoDrain || n == DoRead && !o.fresh || o.Peer == PeerEOF {
		return
	}
	if o.blocked || o.closed {
		o.t.Fatalf("fed although blocked %v, closed %v: %+v", o.blocked, o.closed, o.State)
	}
	lent := o.unread[:o.Lend(len(o.unread))]
	if o.before >= 0 && len(lent) > o.before {
		o.t.Fatalf("%d bytes lent, %d of them from before the drain", len(lent), o.before)
	}
	used := 0
	for used < len(lent) && used+int(lent[used]) <= len(lent) && share > 0 {
		used += max(int(lent[used]), 1)
		share--
	}
	used = min(used, len(lent))
	if v == More && used < len(lent) && used+int(lent[used]) <= len(lent) {
		v = Yield // a whole frame is left
	}
	o.unread, o.fresh = o.unread[used:], false
	if o.before >= 0 {
		o.before -= used
	}
	o.blocked, o.closed = v == Blocked, v == Close
	act := o.Fed(used, len(o.unread), v, o.now)
	if want := map[Verdict]Action{Yield: DoFeed, Blocked: DoWait, Close: DoClose}[v]; act != want && (v != More || act != DoDrain || o.before < 0) {
		o.t.Fatalf("%d after a Feed with verdict %d", act, v)
	}
	if late := v != More && v != Close; late && o.Frame != 0 {
		o.t.Fatal("the timer of a frame runs while the owner is late")
	}
	o.settle()
}

func (o *owner) settle() {
	if o.Next() == DoDrain {
		o.emitDrain()
	}
}

func (o *owner) emitDrain() {
	o.drains, o.before = o.drains+1, -1
	if o.Drained(len(o.unread)); !o.More || o.DrainDue() {
		o.t.Fatalf("after a drain: %+v", o.State)
	}
}

// run interprets each byte as a step.
func (o *owner) run(steps []byte) {
	o.before = -1
	for _, b := range steps {
		o.now++
		switch arg := int(b >> 3); b % 8 {
		case 0:
			o.arrive(arg%4, arg/4%4)
		case 1, 2:
			v := Verdict(arg % 4)
			if v == Close && arg < 28 {
				v = More // most conversations are long
			}
			o.feed(1+arg/4%3, v)
		case 3:
			o.blocked = false
			o.Pumped(arg%2, len(o.unread), arg/2%2 == 1, o.now)
			o.settle()
		case 4:
			if o.Draining() || o.Peer == PeerEOF {
				break
			}
			if o.Behind() {
				o.before = len(o.unread)
				o.DrainAfter(o.before)
			} else {
				o.emitDrain()
			}
		case 5:
			if o.Draining() || !o.fresh || o.Behind() || o.closed {
				break
			}
			o.before = len(o.unread) // the reader comes round: it lends what it has
			o.DrainAfter(-1)
			o.Lend(o.before)
			o.Kept()
		case 6:
			if o.Next() == DoRead && !o.fresh {
				o.unread = nil
				if o.State.EOF() {
					o.eofs++
				}
			}
		case 7:
			if arg == 31 {
				o.closed = true
				o.Close()
			}
		}
		o.check()
	}
}

func (o *owner) check() {
	if o.drains > 1 || o.eofs > 1 {
		o.t.Fatalf("%d drains, %d ends of input", o.drains, o.eofs)
	}
	if got := o.Next() == DoClose; got != o.closed {
		o.t.Fatalf("closed %v, want %v: %+v", got, o.closed, o.State)
	}
	if got := o.Next() == DoWait; !o.closed && got != o.blocked {
		o.t.Fatalf("waits %v, want %v: %+v", got, o.blocked, o.State)
	}
	if o.DrainDue() != (o.before >= 0) || o.Draining() != (o.DrainDue() || o.drains == 1) {
		o.t.Fatalf("the drain is due %v, begun %v: %+v", o.DrainDue(), o.Draining(), o.State)
	}
	load := Load{Done: o.drains+o.eofs > 0 && !o.blocked}
	switch r, done := o.Finished(loaded{load: load}); {
	case o.closed && (r != ReasonProtocol || !done):
		o.t.Fatalf("a closed connection goes on: %v %v", r, done)
	case !o.closed && done && (o.blocked || o.drains+o.eofs == 0):
		o.t.Fatalf("%v ends a connection with %d drains, blocked %v", r, o.drains, o.blocked)
	case done && r == ReasonDrain && (o.More || o.Behind()):
		o.t.Fatalf("a connection with work ends in a drain: %+v", o.State)
	}
}

func TestStateKeepsTheRules(t *testing.T) {
	var all []byte // rapid.Byte prefers small ones
	for b := range 256 {
		all = append(all, byte(b))
	}
	steps := rapid.SliceOfN(rapid.SampledFrom(all), 50, 200)
	rapid.Check(t, func(t *rapid.T) { (&owner{t: t}).run(steps.Draw(t, "steps")) })
}

func FuzzState(f *testing.F) {
	f.Add([]byte{0x08, 0x01, 0x11, 0x04, 0x01, 0x03, 0x06})
	f.Add([]byte{0x28, 0x05, 0x09, 0x0b, 0x1b, 0x01, 0x07})
	f.Fuzz(func(t *testing.T, steps []byte) { (&owner{t: t}).run(steps) })
}
