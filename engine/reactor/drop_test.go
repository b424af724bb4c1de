package reactor

import (
	"context"
	"errors"
	"testing"

	"trunkline/engine/internal/linktest"
	"trunkline/engine/link"
	"trunkline/engine/stream"
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
	s.wantCount(link.ReasonDropped, 1)
	first.wantClosed(link.ReasonDropped)
	f(row.ID, false)
	wait(t, "the connection off its loop", func() bool { _, found := s.connection(full); return found })
	row, _ = s.connection(full)
	f(row.ID, true)
	s.wantCount(link.ReasonDropped, 2)
	if n := s.Open(); n != 1 {
		t.Errorf("%d are open", n)
	}
	stays.send(linktest.Frame('e', "x"))
	stays.want('e', "x")
}

// TestDropDoesNotWait for a loop that does not come round, nor for one that has ended.
func TestDropDoesNotWait(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 1 })
	stays := s.dial()
	stays.session()
	l := s.loops[0]
	l.rung.Store(true) // so that the order does not ring
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if found, err := s.Drop(ctx, "conn-1"); found || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", found, err)
	}
	l.rung.Store(false)
	l.ring()
	stays.send(linktest.Frame('e', "x"))
	stays.want('e', "x")
	if _, found := s.connection(stays); !found {
		t.Error("an order that was given up is carried out")
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Drop(context.Background(), "conn-1"); found || err != nil {
		t.Errorf("after the end: %v %v", found, err)
	}
}
