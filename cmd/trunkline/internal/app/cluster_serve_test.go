package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/handlers/ops"
)

// TestAStandbyFeedsTheWatchdog: it is ready for the supervisor of its process, which from then on
// ends one that gives no sign of life.
func TestAStandbyFeedsTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fed atomic.Int32
		s := &server{kernel: &endpoint{}, ready: new(ops.Readiness), log: slog.New(slog.DiscardHandler), options: Options{
			cluster:  &cluster{view: owner.NewView(0), forwards: peer.NewForwarder(peer.ForwardConfig{})},
			Watchdog: watchdogShare * time.Second,
			Notify: func(states string) {
				if strings.Contains(states, stateAlive) {
					fed.Add(1)
				}
			},
		}}
		stop := s.standBy()
		time.Sleep(10*time.Second + time.Millisecond)
		stop()
		if n := fed.Load(); n != 10 {
			t.Errorf("%d signs of life in ten seconds", n)
		}
	})
}

// TestAStandbyWithoutAServerStartsAgain, as an owner does.
func TestAStandbyWithoutAServerStartsAgain(t *testing.T) {
	c := &cluster{view: owner.NewView(0), forwards: peer.NewForwarder(peer.ForwardConfig{}), lost: make(chan error, 1)}
	s := &server{kernel: &endpoint{}, ready: new(ops.Readiness), log: slog.New(slog.DiscardHandler), failed: make(chan error, 1), options: Options{cluster: c, Notify: func(string) {}}}
	stop := s.standBy()
	defer stop()
	c.lose(errors.New("no room"))
	if err := <-s.failed; !errors.Is(err, ErrOwnershipLost) {
		t.Error(err)
	}
}

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
	c := &cluster{
		view: owner.NewView(0), term: 10 * time.Millisecond, log: slog.New(slog.DiscardHandler),
		dial: peer.Config{Cluster: "c", Node: "n3", Logger: slog.New(slog.DiscardHandler)},
	}
	silent, next := listen(), listen()
	peers, err := peer.NewServer(next, c.dial)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- peers.Serve() }()
	service := peers.Service("kernel")
	go func() {
		if taken, err := service.Accept(); err == nil {
			_ = taken.Close()
		}
	}()
	c.view.Saw(owner.Beat{Node: "n1", Addr: silent.Addr().String()})
	go func() {
		asked, err := silent.Accept()
		if err != nil {
			return
		}
		_, _ = asked.Read(make([]byte, 1))
		c.view.Saw(owner.Beat{Node: "n2", Addr: next.Addr().String()})
		_, _ = io.Copy(io.Discard, asked)
		_ = asked.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // shorter than a handshake may take
	defer cancel()
	conn, _, err := c.reach(ctx, "kernel", "client")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := errors.Join(peers.Close(), <-served); err != nil {
		t.Error(err)
	}
}

// TestStreamsWithoutALeaderAreAskedAgain, and those that refuse are not.
func TestStreamsWithoutALeaderAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := func(answers ...error) (n int, err error) {
			err = attempts(t.Context(), func(context.Context) error {
				n++
				return fmt.Errorf("cannot open stream: %w", answers[n-1])
			})
			return n, err
		}
		refused := errors.New("it could lose what was acknowledged")
		if n, err := asked(nats.ErrNoResponders, context.DeadlineExceeded, refused, nil); n != 3 || !errors.Is(err, refused) {
			t.Errorf("asked %d times: %v", n, err)
		}
	})
}

// TestAnOwnerAsksPastItsLease, and for no longer than the stream remembers what it was sent.
func TestAnOwnerAsksPastItsLease(t *testing.T) {
	for term, want := range map[time.Duration]time.Duration{time.Second: 5 * time.Second, 12 * time.Second: time.Minute, time.Minute: time.Minute} {
		if got := askWithin(term); got != want {
			t.Errorf("lease %v: %v, want %v", term, got, want)
		}
	}
}

// TestANewOwnerHasNoLease before others know of it and of its term.
func TestANewOwnerHasNoLease(t *testing.T) {
	if c := new(cluster); !c.stale() {
		t.Error("it answers what it reads before its first beat is stored")
	}
}

// TestANodeWaitsForItsServers: while those elect a leader they have no streams. A node that was one
// of the cluster before tries again, and one that starts for the first time shows the error.
func TestANodeWaitsForItsServers(t *testing.T) {
	err := errors.New("they have no streams for this account")
	if o := (&Options{Again: true}); !errors.Is(o.unopenedBy(err), ErrOwnershipLost) {
		t.Error("it ends")
	}
	if o := new(Options); o.unopenedBy(err) != err {
		t.Error("it never ends")
	}
}

// TestARecoveryThatMayFollowAnew: a node that has lost the race for the log, or is too far behind
// it, starts again; one with a damaged log, or that is to give records up, ends.
func TestARecoveryThatMayFollowAnew(t *testing.T) {
	s := &server{options: Options{cluster: &cluster{}}}
	again := func(err error) bool { return errors.Is(s.unrecoveredBy(err), ErrOwnershipLost) }
	of := func(err error) error { return fmt.Errorf("cannot recover: %w", &unrecovered{err: err}) }
	if late := context.DeadlineExceeded; again(late) {
		t.Error("a node that has not joined in time does not end")
	}
	c := s.options.cluster
	c.closed, c.close = context.WithCancel(t.Context())
	c.shared.Store(new(sharedStore))
	if late := context.DeadlineExceeded; !again(late) {
		t.Error("a stream that does not answer ends a node")
	}
	if c.close(); again(errors.New("cannot listen")) {
		t.Error("a node goes on without one of its parts")
	}
	_, newer := owner.Decode([]byte{2}) // of a later version, which this node becomes, too
	for _, err := range []error{replicated.ErrNotOwner, replicated.ErrRebuild, errors.New("cannot read snapshot"), newer} {
		if !again(of(err)) {
			t.Errorf("%v ends a node", err)
		}
	}
	if !again(fmt.Errorf("%w: its server has stopped", ErrOwnershipLost)) {
		t.Error("a node without a server ends")
	}
	if again(of(&journal.DamageError{})) || again(&journal.ErrModeMismatch{}) || again(&journal.LayoutError{}) {
		t.Error("what a new process finds too is tried again")
	}
	s.options.Again = true
	if !again(errors.New("cannot open stream")) || again(of(replicated.ErrBehind)) || again(&journal.DamageError{}) {
		t.Error("a node that was one before waits for the others")
	}
	s.options.RecoverTo = 1
	if again(of(replicated.ErrNotOwner)) {
		t.Error("records are given up another time")
	}
	if s.options.RecoverTo, s.options.cluster = 0, nil; again(of(replicated.ErrNotOwner)) {
		t.Error("a single server starts again")
	}
}
