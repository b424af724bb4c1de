package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	for _, err := range []error{replicated.ErrNotOwner, replicated.ErrRebuild, errors.New("cannot read snapshot")} {
		if !again(of(err)) {
			t.Errorf("%v ends a node", err)
		}
	}
	if again(of(&journal.DamageError{})) || again(errors.New("cannot open store.dir")) {
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
