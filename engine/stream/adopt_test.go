package stream

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// adopted hands over a connection as an event loop would.
func adopted(t *testing.T, a Adopted) *peer {
	t.Helper()
	h, book := newHost(t, nil)
	a.Port = h.NewPort("loop")
	a.Session = book.Open(a.Port)
	a.Unread = slices.Clone(a.Unread) // Adopt keeps it, and poison builds overwrite it
	mine, theirs := net.Pipe()
	t.Cleanup(func() { _ = mine.Close() })
	h.Gate.admit()
	h.Adopt(theirs, a)
	return &peer{t, mine, h, book}
}

// after returns the state of a connection whose last Feed had the verdict v.
func after(v connection.Verdict) (s connection.State) {
	s.Fed(0, 0, v, 0)
	return s
}

func TestAdopt(t *testing.T) {
	two := append(linktest.Frame('e', "two"), linktest.Frame('e', "three")...)
	t.Run("unsent goes first, then unread", func(t *testing.T) {
		p := adopted(t, Adopted{Unsent: linktest.Frame('e', "one"), Unread: two, State: after(connection.Yield), Why: LeftBehind})
		p.want('e', "one")
		p.want('e', "two")
		p.want('e', "three")
		if s := p.host.Snapshot(); s.Left[LeftBehind] != 1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a partial frame is completed", func(t *testing.T) {
		p := adopted(t, Adopted{Unread: two[:5], Why: LeftWrite})
		p.send(two[5:])
		p.want('e', "two")
		p.want('e', "three")
	})
	t.Run("closing", func(t *testing.T) {
		p := adopted(t, Adopted{Unsent: linktest.Frame('c', "bye"), State: after(connection.Close)})
		p.want('c', "bye")
		p.wantClosed(connection.ReasonProtocol)
	})
	t.Run("at its end, with frames the session has not seen", func(t *testing.T) {
		ended := after(connection.Yield)
		ended.Peer = connection.PeerEnded
		p := adopted(t, Adopted{Unread: append(two, 0, 0), State: ended})
		p.want('e', "two")
		p.want('e', "three")
		p.wantClosed(connection.ReasonEOF)
	})
	t.Run("draining, with frames read before", func(t *testing.T) {
		draining := after(connection.Yield)
		draining.DrainAfter(len(two))
		p := adopted(t, Adopted{Unread: two, State: draining})
		p.want('e', "two")
		p.want('e', "three")
		p.wantClosed(connection.ReasonDrain)
	})
	t.Run("blocked", func(t *testing.T) {
		p := adopted(t, Adopted{Unread: append(linktest.Frame('h', ""), two...), State: after(connection.Yield)})
		_ = p.c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := p.c.Read(make([]byte, 1)); err == nil {
			t.Fatal("a blocked session was fed")
		}
		_ = p.c.SetReadDeadline(time.Time{})
		p.book.Last().Release()
		p.want('h', "")
		p.want('e', "two")
		p.want('e', "three")
	})
	t.Run("blocked, with no wake-up to come", func(t *testing.T) {
		p := adopted(t, Adopted{Unread: two, State: after(connection.Blocked)})
		p.want('e', "two")
		p.want('e', "three")
	})
}

func TestAdoptKeepsAWakeUp(t *testing.T) {
	h, book := newHost(t, nil)
	port := h.NewPort("loop")
	s := book.Open(port).(*linktest.Session)
	s.Push("news") // no one owns the port yet
	mine, theirs := net.Pipe()
	defer mine.Close()
	h.Gate.admit()
	h.Adopt(theirs, Adopted{Port: port, Session: s})
	p := &peer{t, mine, h, book}
	p.want('s', "news")
	s.Push("later")
	p.want('s', "later")
}

func TestAdoptByAClosedHost(t *testing.T) {
	h, book := newHost(t, nil)
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	port := h.NewPort("loop")
	mine, theirs := net.Pipe()
	h.Gate.admit()
	h.Adopt(theirs, Adopted{Port: port, Session: book.Open(port)})
	(&peer{t, mine, h, book}).wantClosed(connection.ReasonDrain)
}

func TestWakeStorm(t *testing.T) {
	p := pipe(t, nil)
	p.send(linktest.Frame('o', ""))
	p.want('o', "")
	const pushers, each = 8, 200
	var wg sync.WaitGroup
	for range pushers {
		wg.Go(func() {
			for range each {
				p.book.Last().Push("x")
			}
		})
	}
	for range pushers * each {
		p.want('s', "x")
	}
	wg.Wait()
}

func TestNothingLeaks(t *testing.T) {
	before := openFiles(t)
	h, book, ln := listen(t, "tcp", nil)
	for range 20 {
		p := dial(t, h, book, ln)
		p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
		p.want('e', "x")
		_ = p.c.Close()
	}
	if err := h.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, s := range book.All() {
		s.Release() // wakes of connections that are gone
		if n := s.ClosedTimes(); n != 1 {
			t.Errorf("Closed was called %d times", n)
		}
	}
	kit.Until(t, "descriptors to be closed", func() bool { return openFiles(t) <= before })
}

func TestInbufGrowsWithWhatCame(t *testing.T) {
	var i inbuf
	total := 0
	for total < 1<<20 {
		s := i.space()
		if len(s) == 0 {
			t.Fatal("no space to read into")
		}
		if limit := 2*max(total, readMin/2) + readMin; len(i.b) > limit {
			t.Fatalf("%d bytes held for %d received", len(i.b), total)
		}
		n := (len(s) + 1) / 2
		i.to += n
		total += n
	}
	i.take(total)
	if i.b != nil {
		t.Errorf("an empty buffer kept %d bytes", len(i.b))
	}
	for range 10 { // a fast sender's reads grow up to readKeep, no further
		i.to = i.from + len(i.space())
		i.take(len(i.unread()))
	}
	if len(i.b) != readKeep {
		t.Errorf("a fast sender is read %d bytes at a time, want %d", len(i.b), readKeep)
	}
}
