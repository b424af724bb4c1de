package reactor

import (
	"sync"
	"testing"

	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestStreamsReachTheirPeer(t *testing.T) {
	p := start(t, "tcp", nil).dial()
	p.send(linktest.Sized('s', 5000, 100), linktest.Frame('e', "amid"))
	chunks, echoed := 0, false
	for {
		cmd, b, err := linktest.Read(p.c)
		if err != nil {
			t.Fatal(err)
		}
		switch cmd {
		case 's':
			chunks++
			if err := linktest.CheckPattern(b); err != nil {
				t.Fatal(err)
			}
		case 'e':
			echoed = true
		case 'z':
			if chunks != 5000 || !echoed {
				t.Fatalf("%d chunks and echo %v before the end", chunks, echoed)
			}
			return
		}
	}
}

func TestWakeStorm(t *testing.T) {
	s := start(t, "unix", nil)
	const peers, pushers, each = 10, 4, 200
	var got sync.WaitGroup
	var sessions []*linktest.Session
	for range peers {
		p := s.dial()
		sessions = append(sessions, p.session())
		got.Go(func() {
			for range pushers * each {
				if cmd, _, err := linktest.Read(p.c); cmd != 's' || err != nil {
					t.Errorf("got %c, %v", cmd, err)
					return
				}
			}
		})
	}
	var push sync.WaitGroup
	for range pushers {
		push.Go(func() {
			for range each {
				for _, x := range sessions {
					x.Push("tick")
				}
			}
		})
	}
	push.Wait()
	got.Wait()
}

// Connections come and go, and leave their loops, while others wake them.
func TestWakeWhileComingAndGoing(t *testing.T) {
	s := start(t, "unix", nil) // its small socket buffers make connections leave
	stop := make(chan struct{})
	var push sync.WaitGroup
	for range 2 {
		push.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, x := range s.book.All() {
					x.Release()
				}
			}
		})
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for i := range 25 {
				p := s.dial()
				p.send(linktest.Frame('q', ""))
				p.want('q', "")
				p.send(linktest.Frame('h', ""))
				p.want('h', "")
				if i%3 == 0 {
					p.send(linktest.Sized('b', 1<<20))
					p.wantPattern('b', 1<<20)
				}
				_ = p.c.Close()
			}
		})
	}
	clients.Wait()
	close(stop)
	push.Wait()
	kit.Until(t, "all slots to be free", func() bool { return s.Open() == 0 })
	if n := s.Stats().Left[stream.LeftWrite]; n == 0 {
		t.Error("no connection left its loop")
	}
	for _, x := range s.book.All() {
		if n := x.ClosedTimes(); n != 1 {
			t.Errorf("Closed was called %d times", n)
		}
	}
}

func TestAWakeFromAnotherConnection(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 1 })
	a := s.dial()
	held := a.session()
	a.send(linktest.Frame('h', ""), linktest.Frame('e', "then"))
	b := s.dial()
	b.session()
	held.Release()
	a.want('h', "")
	a.want('e', "then")
}
