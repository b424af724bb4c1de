package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// framesIn counts frames of exactly size bytes.
func framesIn(size int) func([]byte) int { return func(b []byte) int { return len(b) / size } }

// away answers each frame, one at a time, from elsewhere: at once, or when asked.
type away struct {
	port *connection.Port
	size int // of an answer's payload
	auto bool

	mu      sync.Mutex
	blocked bool
	ready   []byte
	served  []byte // the frames' commands
	drained bool
	eof     bool
}

func (a *away) Feed(in, out []byte, _ connection.Instant) (int, []byte, connection.Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blocked {
		return 0, out, connection.Blocked
	}
	if len(in) < linktest.HeaderBytes {
		return 0, out, connection.More
	}
	n := linktest.HeaderBytes + int(binary.BigEndian.Uint32(in))
	if n > len(in) {
		return 0, out, connection.More
	}
	cmd := in[linktest.HeaderBytes]
	if a.served = append(a.served, cmd); a.drained {
		return n, linktest.Append(out, 'u', nil), connection.Yield
	}
	a.blocked = true
	if a.auto {
		go a.answer()
	}
	return n, out, connection.Blocked
}

// answer ends the work on a frame.
func (a *away) answer() {
	a.mu.Lock()
	a.ready = linktest.Append(nil, 'a', make([]byte, a.size))
	a.mu.Unlock()
	a.port.Wake()
}

func (a *away) Pump(out []byte, _ int, _ connection.Instant) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready != nil {
		out, a.ready, a.blocked = append(out, a.ready...), nil, false
	}
	return out, false
}

func (a *away) EOF(connection.Instant) { a.mu.Lock(); a.eof = true; a.mu.Unlock() }

func (a *away) Drain(connection.Instant) { a.mu.Lock(); a.drained = true; a.mu.Unlock() }

func (a *away) Load() connection.Load {
	a.mu.Lock()
	defer a.mu.Unlock()
	return connection.Load{Busy: a.blocked, Done: (a.eof || a.drained) && !a.blocked}
}

func (a *away) Closed() {}

func (a *away) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.served)
}

// aheadHost serves away sessions.
func aheadHost(t *testing.T, size int, auto bool, change func(*connection.Limits)) (h *Host, made chan *away) {
	made = make(chan *away, 1)
	h, _ = newHost(t, func(c *Config) {
		c.Open = func(p *connection.Port) connection.Session {
			a := &away{port: p, size: size, auto: auto}
			made <- a
			return a
		}
		c.Limits.UnsentBytes, c.Limits.AheadBytes = 1<<20, 1<<20
		if change != nil {
			change(&c.Limits)
		}
	})
	return h, made
}

// TestSendAllThenRead: a peer that reads nothing before it has sent everything is not stuck below
// the limits, although each frame is answered from elsewhere and the transport takes next to
// nothing. A pipe takes nothing at all.
func TestSendAllThenRead(t *testing.T) {
	one := linktest.Frame('e', string(make([]byte, 95)))
	f := func(name string, frames, size int, mine io.ReadWriter, theirs io.ReadWriteCloser) {
		t.Run(name, func(t *testing.T) {
			h, _ := aheadHost(t, size, true, nil)
			go func() { _ = h.Serve(theirs, name) }()
			sent := make(chan error, 1)
			go func() {
				for range frames {
					if _, err := mine.Write(one); err != nil {
						sent <- err
						return
					}
				}
				sent <- nil
			}()
			select {
			case err := <-sent:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the peer is stuck")
			}
			for i := range frames {
				if cmd, b, err := linktest.Read(mine); cmd != 'a' || len(b) != size || err != nil {
					t.Fatalf("answer %d: %c of %d bytes, %v", i, cmd, len(b), err)
				}
			}
			_ = h.Close(context.Background())
		})
	}
	mine, theirs := net.Pipe()
	defer mine.Close()
	f("pipe", 3000, 200, mine, theirs)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	defer inW.Close()
	f("stdio", 3000, 200, struct {
		io.Reader
		io.Writer
	}{outR, inW}, duplex{inR, outW})
	ln, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f("unix", 3000, 300, a, b)
}

// counter counts the Writes that were read whole.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) write(w io.Writer, frame []byte, times int) {
	for range times {
		if _, err := w.Write(frame); err != nil {
			return
		}
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
}

func (c *counter) want(t *testing.T, what string, want int) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != want {
		t.Errorf("%s: %d frames read, want %d", what, c.n, want)
	}
}

// TestReadingAheadIsBounded: at a limit reading pauses, and it resumes at half of it.
func TestReadingAheadIsBounded(t *testing.T) {
	one := linktest.Frame('e', string(make([]byte, 95)))
	f := func(name string, change func(*connection.Limits)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, made := aheadHost(t, 10, false, change)
				mine, theirs := net.Pipe()
				go func() { _ = h.Serve(theirs, "pipe") }()
				var c counter
				go c.write(mine, one, 100)
				go func() { _, _ = io.Copy(io.Discard, mine) }()
				a := <-made
				c.want(t, "blocked by the first", 1+10) // not the eleventh
				for range 4 {
					a.answer()
					c.want(t, "more than half", 1+10)
				}
				a.answer() // five are held
				c.want(t, "half", 1+10+5)
				a.answer()
				c.want(t, "full again", 1+10+5)
				_ = mine.Close()
				_ = h.Close(context.Background())
			})
		})
	}
	f("frames", func(l *connection.Limits) { l.AheadFrames, l.FramesIn = 10, framesIn(len(one)) })
	f("bytes", func(l *connection.Limits) { l.AheadBytes = 10 * len(one) })
	f("bytes before frames", func(l *connection.Limits) {
		l.AheadBytes, l.AheadFrames, l.FramesIn = 10*len(one), 11, framesIn(len(one))
	})
}

// TestNothingIsReadAheadUnlessWanted: a blocked session is not read, where the limits are not set.
func TestNothingIsReadAheadUnlessWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, made := aheadHost(t, 10, false, func(l *connection.Limits) { l.AheadBytes = 0 })
		mine, theirs := net.Pipe()
		go func() { _ = h.Serve(theirs, "pipe") }()
		var c counter
		go c.write(mine, linktest.Frame('e', "x"), 10)
		<-made
		c.want(t, "blocked by the first", 1)
		_ = mine.Close()
		_ = h.Close(context.Background())
	})
}

// TestUnsentStopsTheSession: replies that no one takes stop it at their limit, while reading goes
// on to its own.
func TestUnsentStopsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := linktest.Frame('e', "x")
		h, made := aheadHost(t, 1000-linktest.HeaderBytes-1, true, func(l *connection.Limits) {
			l.UnsentBytes, l.AheadFrames, l.FramesIn = 5000, 20, framesIn(len(one))
		})
		mine, theirs := net.Pipe()
		go func() { _ = h.Serve(theirs, "pipe") }()
		var c counter
		go c.write(mine, one, 100)
		a := <-made
		synctest.Wait()
		c.mu.Lock()
		read := c.n
		c.mu.Unlock()
		if n := len(a.seen()); n != 6 || read <= 6+20/2 || read > 6+20 {
			t.Errorf("%d frames served with 5000 bytes allowed unsent, and %d read with 20 allowed ahead", n, read)
		}
		go func() { _, _ = io.Copy(io.Discard, mine) }()
		c.want(t, "the peer reads", 100)
		_ = mine.Close()
		_ = h.Close(context.Background())
	})
}

// failing ends with an error of its own.
type failing struct {
	net.Conn
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

// TestTheEndComesAfterWhatIsHeld, whatever the end.
func TestTheEndComesAfterWhatIsHeld(t *testing.T) {
	f := func(name string, end error, r connection.Reason) {
		t.Run(name, func(t *testing.T) {
			h, made := aheadHost(t, 10, false, nil)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			nc, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = h.Serve(failing{nc, end}, "failing") }()
			_, _ = c.Write(bytes.Join([][]byte{linktest.Frame('1', ""), linktest.Frame('2', "")}, nil))
			a := <-made
			kit.Until(t, "the first frame", func() bool { return a.seen() == "1" })
			_, _ = c.Write(linktest.Frame('3', "")) // read ahead
			_ = c.(*net.TCPConn).CloseWrite()
			time.Sleep(20 * time.Millisecond)
			for _, want := range []string{"1", "12", "123"} {
				kit.Until(t, want, func() bool { return a.seen() == want })
				if h.Gate.Open() != 1 {
					t.Fatalf("closed after %s", want)
				}
				a.answer()
			}
			kit.Until(t, "the end", func() bool { return h.Snapshot().Closed[r] == 1 })
		})
	}
	f("EOF", io.EOF, connection.ReasonEOF)
	f("an error", errors.New("reset"), connection.ReasonError)
}
