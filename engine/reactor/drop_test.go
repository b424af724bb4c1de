package reactor

import (
	"context"
	"errors"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// TestDrop: a connection is closed on its loop and off it, with what it has to send; the others are
// not.
func TestDrop(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 2 })
	first, full, stays := s.dial(), s.dialSmall(), s.dial()
	first.session()
	full.send(linktest.Sized('b', 7<<20))
	s.wantLeft(stream.LeftWrite, 1)
	stays.session()
	f := func(name string, want bool) {
		t.Helper()
		if found, err := s.Drop(context.Background(), name); found != want || err != nil {
			t.Errorf("%s: %v %v, want %v", name, found, err, want)
		}
	}
	f("conn-9", false)
	f("other-1", false)
	row, _ := s.connection(first)
	f(row.ID, true)
	s.wantCount(connection.ReasonDropped, 1)
	first.wantClosed(connection.ReasonDropped)
	f(row.ID, false)
	kit.Until(t, "the connection off its loop", func() bool { _, found := s.connection(full); return found })
	row, _ = s.connection(full)
	f(row.ID, true)
	s.wantCount(connection.ReasonDropped, 2)
	if n := s.Open(); n != 1 {
		t.Errorf("%d are open", n)
	}
	stays.send(linktest.Frame('e', "x"))
	stays.want('e', "x")
}

// TestDropDoesNotWait for a loop that does not come round, which then does not carry the order out,
// nor for one that has ended.
func TestDropDoesNotWait(t *testing.T) {
	sess := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
	s := start(t, "tcp", func(c *Config) {
		c.Loops = 1
		c.Open = func(*connection.Port) connection.Session { return sess }
	})
	s.dial().send([]byte("x"))
	<-sess.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := s.Drop(ctx, "conn-1"); found || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", found, err)
	}
	close(sess.leave)
	if err := s.Probe(t.Context()); err != nil || s.Open() != 1 {
		t.Errorf("%v, %d are open: an order that was given up is carried out", err, s.Open())
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Drop(t.Context(), "conn-1"); found || err != nil {
		t.Errorf("after the end: %v %v", found, err)
	}
}
