package control

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
)

// TestASilentOwnerIsNotWaitedFor any longer than it is one: a client that is about to be forwarded
// to a node that does not answer goes to the next owner.
func TestASilentOwnerIsNotWaitedFor(t *testing.T) {
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		return ln
	}
	view := owner.NewView(0)
	n := nodeOf(t, "n3", Config{Name: "c"}) // without a term there are no pulses
	n.term = 10 * time.Millisecond
	silent, next := listen(), listen()
	peers, err := peer.NewServer(next, n.dial)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- peers.Serve() }()
	service := peers.Service("kernel", 0)
	go func() {
		if taken, err := service.Accept(); err == nil {
			_ = taken.Close()
		}
	}()
	view.Saw(owner.Beat{Node: "n1", Addr: silent.Addr().String()})
	go func() {
		asked, err := silent.Accept()
		if err != nil {
			return
		}
		_, _ = asked.Read(make([]byte, 1))
		view.Saw(owner.Beat{Node: "n2", Addr: next.Addr().String()})
		_, _ = io.Copy(io.Discard, asked)
		_ = asked.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // shorter than a handshake may take
	defer cancel()
	conn, _, err := n.reach(ctx, view, "kernel", 0, "client")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := errors.Join(peers.Close(), <-served); err != nil {
		t.Error(err)
	}
}

// TestANewOwnerHasNoLease before others know of it and of its term.
func TestANewOwnerHasNoLease(t *testing.T) {
	if l := new(Lease); !l.Stale() {
		t.Error("it answers what it reads before its first beat is stored")
	}
}

// TestADrainedNodeTakesNothingOver until it is resumed.
func TestADrainedNodeTakesNothingOver(t *testing.T) {
	l := nodeOf(t, "a", Config{Lease: time.Nanosecond}).NewLease(0, false)
	l.view = owner.NewView(0)
	if !l.due() {
		t.Error("a node does not take over")
	}
	l.node.drained.Store(true)
	if l.due() {
		t.Error("a drained node takes over")
	}
	l.node.drained.Store(false)
	l.node.leaving.Store(true)
	if l.due() {
		t.Error("a node that ends takes over")
	}
}

// TestANodeWithoutSpaceIsLate: it takes over a term after it would, so that one with space comes
// first.
func TestANodeWithoutSpaceIsLate(t *testing.T) {
	silentFor := func(d time.Duration) *Lease {
		n := nodeOf(t, "a", Config{Lease: time.Hour})
		n.full.Store(true)
		l := n.NewLease(0, false)
		l.view = owner.NewView(owner.Now() - int64(d))
		return l
	}
	if silentFor(2*time.Hour - time.Minute).due() {
		t.Error("it is as fast as others")
	}
	if !silentFor(2 * time.Hour).due() {
		t.Error("it never takes over")
	}
}
