//go:build !race

package reactor

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit/linktest"
)

// mirror is a session without any allocation of its own: it echoes, and sends "news" when asked.
type mirror struct {
	port *connection.Port
	news atomic.Int32
}

var newsFrame = linktest.Frame('n', "news")

func (m *mirror) Feed(in, out []byte, _ connection.Instant) (int, []byte, connection.Verdict) {
	used := 0
	for frames := 0; len(in)-used >= 4; frames++ {
		n := 4 + int(binary.BigEndian.Uint32(in[used:]))
		if len(in)-used < n {
			break
		}
		if frames == linktest.FramesPerTurn {
			return used, out, connection.Yield
		}
		out = append(out, in[used:used+n]...)
		used += n
	}
	return used, out, connection.More
}

func (m *mirror) Pump(out []byte, _ int, _ connection.Instant) ([]byte, bool) {
	for m.news.Load() > 0 {
		m.news.Add(-1)
		out = append(out, newsFrame...)
	}
	return out, false
}

func (m *mirror) EOF(connection.Instant)   {}
func (m *mirror) Drain(connection.Instant) {}
func (m *mirror) Load() connection.Load    { return connection.Load{Done: true} }
func (m *mirror) Closed()                  {}
func (m *mirror) tell()                    { m.news.Add(1); m.port.Wake() }

func startMirror(tb testing.TB) (*server, chan *mirror) {
	made := make(chan *mirror, 1024)
	return start(tb, "tcp", func(c *Config) {
		c.Loops = 1
		c.Open = func(p *connection.Port) connection.Session {
			m := &mirror{port: p}
			made <- m
			return m
		}
	}), made
}

func TestTurnsDoNotAllocate(t *testing.T) {
	s, made := startMirror(t)
	p := s.dial()
	m := <-made
	one := linktest.Frame('e', string(make([]byte, 100)))
	var many []byte
	for range 3 * linktest.FramesPerTurn {
		many = append(many, linktest.Frame('e', "x")...)
	}
	buf := make([]byte, 1<<20)
	say := func(b []byte) {
		if _, err := p.c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(n int) {
		if _, err := io.ReadFull(p.c, buf[:n]); err != nil {
			t.Fatal(err)
		}
	}
	f := func(what string, turn func()) {
		t.Helper()
		for range 200 { // buffers grow to their size
			turn()
		}
		if n := testing.AllocsPerRun(2000, turn); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	f("a whole frame", func() { say(one); hear(len(one)) })
	f("a frame in two parts", func() {
		say(append(append(buf[:0], one...), one[:50]...))
		hear(len(one))
		say(one[50:])
		hear(len(one))
	})
	f("a burst that yields", func() { say(many); hear(len(many)) })
	f("a wake-up", func() { m.tell(); hear(len(newsFrame)) })
}
