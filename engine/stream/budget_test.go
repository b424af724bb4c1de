package stream

import (
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// TestReadingAheadPausesWithoutRoom: where the budget of input is used up, a connection whose
// session is blocked is not refused, but read no further, and goes on when the session does.
func TestReadingAheadPausesWithoutRoom(t *testing.T) {
	b := connection.NewBudget(1)
	h, made := aheadHost(t, 8, false, func(l *connection.Limits) {
		l.AheadBytes = 8 << 20
		l.Input, l.NoRoom = b, func(dst []byte) []byte { return append(dst, "no room"...) }
	})
	p := pipeTo(t, h)
	one := linktest.Frame('e', string(make([]byte, 1<<10-linktest.HeaderBytes-1)))
	const frames = 1000
	sent := make(chan int, frames)
	go func() {
		for i := range frames {
			if _, err := p.Write(one); err != nil {
				break
			}
			sent <- i
		}
		close(sent)
	}()
	a := <-made
	last := 0
	kit.Until(t, "reading to pause", func() bool {
		before := last
		for len(sent) > 0 {
			last = <-sent
		}
		return last > 32 && last == before
	})
	if most := (connection.OwnInput + 2*readKeep) / len(one); last > most {
		t.Errorf("%d frames were read ahead without room, want at most %d", last, most)
	}
	a.mu.Lock()
	a.auto = true
	a.mu.Unlock()
	a.answer()
	for i := range frames {
		if cmd, _, err := linktest.Read(p); cmd != 'a' || err != nil {
			t.Fatalf("answer %d: %c, %v", i, cmd, err)
		}
	}
	if b.Refused() != 0 {
		t.Errorf("%d refused", b.Refused())
	}
}

// TestLateFrameIsLetGo: a connection that was informed of its late frame does not hold it while it
// parts.
func TestLateFrameIsLetGo(t *testing.T) {
	b := connection.NewBudget(8 << 20)
	h, book, ln := listen(t, "tcp", func(c *Config) {
		c.Limits.FrameWithin, c.Limits.LateFrame = 1, func(dst []byte) []byte { return append(dst, "late"...) }
		c.Limits.Input = b
	})
	p := dial(t, h, book, ln)
	p.send(linktest.Frame('e', string(make([]byte, 2<<20)))[:1<<20])
	got := make([]byte, 4)
	if _, err := p.c.Read(got); err != nil || string(got) != "late" {
		t.Fatalf("%q, %v", got, err)
	}
	// The peer neither sends nor closes.
	kit.Until(t, "the frame to be let go", func() bool { return b.Used() == 0 && h.Gate.Open() == 0 })
}

// TestUntil: a connection whose session has a time is closed when that is over, whatever it does.
func TestUntil(t *testing.T) {
	tm, l := connection.Timers{Quiet: 1}, &connection.Limits{}
	f := func(load connection.Load, now int64, want bool) {
		t.Helper()
		if r, late := tm.Overdue(l, load, true, now); late != want || late && r != connection.ReasonFrame {
			t.Errorf("%+v at %d: %v %v", load, now, r, late)
		}
	}
	f(connection.Load{}, 100, false)
	f(connection.Load{Until: 101}, 100, false)
	f(connection.Load{Until: 101, Busy: true}, 101, true)
}
