package reactor

import (
	"context"
	"fmt"
	"testing"

	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// connection returns the row of a peer's connection.
func (s *server) connection(p *peer) (row obs.Connection, found bool) {
	for _, c := range s.Connections(context.Background()) {
		if c.Peer == p.c.LocalAddr().String() {
			return c, true
		}
	}
	return row, false
}

// TestConnectionsAreListed: each connection is listed once, also where a loop has as many as it
// describes in one round, and one more.
func TestConnectionsAreListed(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Protocol, c.Loops = "test", 1 })
	if rows := s.Connections(context.Background()); len(rows) != 0 {
		t.Fatalf("%+v without connections", rows)
	}
	peers := map[string]*peer{}
	dial := func() {
		t.Helper()
		p := s.dial()
		p.session()
		peers[p.c.LocalAddr().String()] = p
	}
	check := func() {
		t.Helper()
		rows := s.Connections(context.Background())
		if len(rows) != len(peers) {
			t.Fatalf("%d connections are listed, there are %d", len(rows), len(peers))
		}
		n := int64(len(linktest.Frame('e', "who")))
		for i, c := range rows {
			if peers[c.Peer] == nil || c.ID != fmt.Sprintf("test-%d", i+1) || c.Protocol != "test" || c.Listener != s.ln.Addr().String() ||
				c.BytesIn != n || c.BytesOut != n || c.UnsentBytes != 0 || c.InFlight != 0 || c.Streams != 0 || c.State != "open" ||
				c.Opened.IsZero() || c.AgeSeconds < 0 || c.IdleSeconds < 0 || c.IdleSeconds > c.AgeSeconds {
				t.Fatalf("%+v", c)
			}
		}
	}
	for range listPerRound {
		dial()
	}
	check()
	dial()
	check()
}

// TestWhatAConnectionHasIsListed: streams, requests without an answer, and bytes that are not sent,
// on a loop and off it.
func TestWhatAConnectionHasIsListed(t *testing.T) {
	s := start(t, "tcp", nil)
	busy := s.dial()
	busy.send(linktest.Frame('o', ""))
	busy.want('o', "")
	busy.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	busy.want('e', "x")
	if c, _ := s.connection(busy); c.InFlight != 1 || c.Streams != 1 || c.ID != "conn-1" {
		t.Errorf("%+v", c)
	}
	full, question := s.dialSmall(), linktest.Sized('b', 7<<20)
	full.send(question)
	s.wantLeft(stream.LeftWrite, 1)
	kit.Until(t, "the connection off its loop", func() bool { _, found := s.connection(full); return found })
	c, _ := s.connection(full)
	if c.BytesIn != int64(len(question)) || c.UnsentBytes == 0 || c.BytesOut+c.UnsentBytes < 7<<20 {
		t.Errorf("%+v", c)
	}
	full.wantPattern('b', 7<<20)
	kit.Until(t, "all to be sent", func() bool {
		c, _ := s.connection(full)
		return c.UnsentBytes == 0 && c.BytesOut == 7<<20+linktest.HeaderBytes+1
	})
}

// TestALoopThatEndedIsNotWaitedFor lists a server that was shut down, and one whose caller does not
// wait.
func TestALoopThatEndedIsNotWaitedFor(t *testing.T) {
	s := start(t, "tcp", nil)
	s.dial().session()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.Connections(ended)
	if rows := s.Connections(context.Background()); len(rows) != 1 {
		t.Errorf("%+v", rows)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if rows := s.Connections(context.Background()); len(rows) != 0 {
		t.Errorf("%+v after the end", rows)
	}
}
