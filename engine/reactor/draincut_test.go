package reactor

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// TestLaterFramesAreToldOnTheLoop: what is read after the order to drain is later, however long
// frames before it keep the session; also where the connection leaves its loop meanwhile.
func TestLaterFramesAreToldOnTheLoop(t *testing.T) {
	f := func(name string, before, after []byte, fed []string, told int, left bool) {
		t.Run(name, func(t *testing.T) {
			s := start(t, "tcp", func(c *Config) {
				judged(c)
				c.Limits.AheadBytes = 1 << 20
			})
			other := s.dial()
			other.send(linktest.Frame('o', ""))
			other.want('o', "")
			p := s.dial()
			held := p.session()
			p.send(linktest.Frame('e', "first"), linktest.Frame('h', ""), before)
			p.want('e', "first")
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(context.Background()) }()
			other.want('z', "") // the drain has reached its connections
			read := s.Stats().BytesIn
			p.send(after)
			if left {
				s.wantLeft(stream.LeftBlocked, 1)
			}
			kit.Until(
				t,
				"it to be read",
				func() bool { s.order(dueScan); return s.Stats().BytesIn >= read+int64(len(after)) },
			)
			held.Release()
			p.want('h', "")
			for _, frame := range fed {
				p.want('e', frame)
			}
			for answers, after := 0, 0; told > 0 && (answers < told || after == 0); {
				switch cmd, _, err := linktest.Read(p.c); {
				case err != nil:
					t.Fatalf("after %d of %d late frames: %v", answers, told, err)
				case cmd == 'e':
					answers++
				case cmd == 'u':
					after++
				}
			}
			_ = p.c.Close()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		})
	}
	early, late := linktest.Frame('e', "early"), linktest.Frame('e', "late")
	f("behind the one that runs", nil, late, nil, 1, false)
	f("behind a held one", early, late, []string{"early"}, 1, false)
	f("begun before", late[:3], late[3:], nil, 1, false)
	f("held, and begun before", append(bytes.Clone(early), late[:3]...), late[3:], []string{"early"}, 1, false)
	f("nothing comes", early, nil, []string{"early"}, 0, false)
	big := linktest.Frame('e', string(make([]byte, 1000)))
	f("too much for the loop", early, bytes.Repeat(big, 200), []string{"early"}, 200, true)
}

// TestHeldFramesLeaveTheLoop: on a loop reading cannot be paused, so a connection that holds as
// much as may be held leaves.
func TestHeldFramesLeaveTheLoop(t *testing.T) {
	one := linktest.Frame('e', "x")
	const most = 100
	s := start(t, "tcp", func(c *Config) {
		c.Limits.AheadBytes, c.Limits.AheadFrames = 1<<20, most
		c.Limits.FramesIn = func(b []byte) int { return len(b) / len(one) }
	})
	p := s.dial()
	held := p.session()
	p.send(linktest.Frame('h', ""))
	read := s.Stats().BytesIn
	sent := func(frames int) {
		t.Helper()
		p.send(bytes.Repeat(one, frames))
		read += int64(frames * len(one))
		kit.Until(t, "it to be read", func() bool { s.order(dueScan); return s.Stats().BytesIn >= read })
	}
	sent(most - 1)
	if n := s.Stats().Left[stream.LeftBlocked]; n != 0 {
		t.Fatal("left the loop below the bound")
	}
	p.send(one)
	s.wantLeft(stream.LeftBlocked, 1)
	held.Release()
	p.want('h', "")
	for range most {
		p.want('e', "x")
	}
}

// TestSendAllThenRead: a peer that reads nothing before it has sent everything is not stuck below
// the limits, although each frame waits for something from elsewhere.
func TestSendAllThenRead(t *testing.T) {
	const frames = 5000
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			s := start(t, network, func(c *Config) {
				c.Limits.UnsentBytes, c.Limits.AheadBytes = 8<<20, 16<<20
				open := c.Open
				c.Open = func(p *connection.Port) connection.Session { return &released{open(p).(*linktest.Session)} }
			})
			p := s.dial()
			_ = p.c.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(4096)
			one := append(linktest.Frame('h', ""), linktest.Frame('e', string(make([]byte, 500)))...)
			for range frames {
				p.send(one)
			}
			for range frames {
				p.want('h', "")
				p.want('e', string(make([]byte, 500)))
			}
			if c, ok := p.c.(*net.TCPConn); ok {
				_ = c.CloseWrite()
			}
		})
	}
}

// released ends what it waits for by itself.
type released struct{ *linktest.Session }

func (r *released) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	used, out, v := r.Session.Feed(in, out, now)
	if v == connection.Blocked {
		time.AfterFunc(10*time.Microsecond, r.Release)
	}
	return used, out, v
}
