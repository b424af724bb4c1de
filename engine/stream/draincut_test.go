package stream

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// TestLaterFramesAreToldOffTheLoop: what is read after the order to drain is later, however long
// frames before it keep the session.
func TestLaterFramesAreToldOffTheLoop(t *testing.T) {
	f := func(name string, before, after []byte, told string, change func(*connection.Limits)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, made := aheadHost(t, 10, false, change)
				mine, theirs := net.Pipe()
				go func() { _ = h.Serve(theirs, "pipe") }()
				p := &peer{t, mine, h, nil}
				go p.send(before)
				a := <-made
				synctest.Wait()
				h.Drain()
				go func() { _, _ = mine.Write(after) }()
				synctest.Wait()
				for _, want := range []byte(told) {
					if synctest.Wait(); want == 'a' {
						go a.answer()
					}
					if cmd, _, err := linktest.Read(mine); err != nil || cmd != want {
						t.Fatalf("got %c, %v, want %c of %s", cmd, err, want, told)
					}
				}
				if _, _, err := linktest.Read(mine); err != io.EOF {
					t.Fatalf("after %s: %v", told, err)
				}
				_ = mine.Close()
				_ = h.Close(context.Background())
			})
		})
	}
	one, two, three := linktest.Frame('1', ""), linktest.Frame('2', ""), linktest.Frame('3', "")
	join := func(b ...[]byte) (all []byte) {
		for _, x := range b {
			all = append(all, x...)
		}
		return all
	}
	f("read ahead", one, join(two, three), "auu", nil)
	f("behind a held one", join(one, two), three, "aau", nil)
	f("begun before", join(one, two[:3]), join(two[3:], three), "auu", nil)
	f("held, and begun before", join(one, two, three[:2]), three[2:], "aau", nil)
	f("nothing is read ahead", join(one, two), nil, "aa", func(l *connection.Limits) { l.AheadBytes = 0 })
}

// TestDrainWhileReadAheadHoldsNothing: the reader sits in a Read ahead, with nothing left to feed.
func TestDrainWhileReadAheadHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, made := aheadHost(t, 10, false, nil)
		mine, theirs := net.Pipe()
		go func() { _ = h.Serve(theirs, "pipe") }()
		p := &peer{t, mine, h, nil}
		go p.send(linktest.Frame('1', ""))
		a := <-made
		synctest.Wait()
		go a.answer()
		if cmd, _, err := linktest.Read(mine); cmd != 'a' || err != nil {
			t.Fatalf("got %c, %v", cmd, err)
		}
		synctest.Wait()
		h.Drain()
		if _, _, err := linktest.Read(mine); err != io.EOF {
			t.Fatalf("after the drain: %v", err)
		}
		_ = h.Close(context.Background())
	})
}

// TestAdoptedBeforeTheDrain: only what the former owner had read before the order is served before
// Drain.
func TestAdoptedBeforeTheDrain(t *testing.T) {
	h, book := newHost(t, judged)
	port := h.NewPort("loop")
	mine, theirs := net.Pipe()
	defer mine.Close()
	h.Gate.admit()
	early := linktest.Frame('e', "early")
	draining := after(connection.Yield)
	draining.DrainAfter(len(early))
	h.Adopt(theirs, Adopted{
		Port: port, Session: h.cfg.Open(port), Unread: append(linktest.Frame('e', "early"), linktest.Frame('e', "late")...),
		State: draining,
	})
	p := &peer{t, mine, h, book}
	p.want('e', "early")
	p.want('e', "late")
	p.want('u', "")
	p.wantClosed(connection.ReasonDrain)
}
