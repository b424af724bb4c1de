package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"trunkline/engine/cluster/control"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit"
)

// TestANodeWaitsForItsServers: while those elect a leader they have no streams. A node that was one
// of the cluster before tries again, and one that starts for the first time shows the error.
func TestANodeWaitsForItsServers(t *testing.T) {
	err := errors.New("they have no streams for this account")
	if o := (&Options{Again: true}); !errors.Is(o.unopenedBy(err), control.ErrOwnershipLost) {
		t.Error("it ends")
	}
	if o := new(Options); o.unopenedBy(err) != err {
		t.Error("it never ends")
	}
}

// TestARecoveryThatMayFollowAnew: a node that has lost the race for the log, or is too far behind
// it, follows again; one with a damaged log, or that is to give records up, ends.
func TestARecoveryThatMayFollowAnew(t *testing.T) {
	of := func(err error) error { return fmt.Errorf("cannot recover: %w", &unrecovered{err: err}) }
	for _, err := range []error{replicated.ErrNotOwner, replicated.ErrRebuild, errors.New("cannot read snapshot")} {
		if !followsAnew(of(err), true, false) {
			t.Errorf("%v ends a node", err)
		}
	}
	if !followsAnew(fmt.Errorf("cannot open: %w", replicated.ErrRebuild), true, false) {
		t.Error("a node ends that paused while the journal was purged")
	}
	if followsAnew(of(&journal.DamageError{}), true, false) || followsAnew(errors.New("cannot open store.dir"), true, false) {
		t.Error("what another replica finds too is tried again")
	}
	if !followsAnew(errors.New("cannot open stream"), true, true) || followsAnew(of(replicated.ErrBehind), true, true) || followsAnew(&journal.DamageError{}, true, true) {
		t.Error("a node that was one before waits for the others")
	}
	if followsAnew(of(replicated.ErrNotOwner), false, false) {
		t.Error("records are given up another time")
	}
}

// TestLentListeners: the listener outlives those who borrow it, one after the other, and clients
// wait meanwhile.
func TestLentListeners(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 3 {
		l := lend(ln.(peer.Listener))
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		_ = l.Close()
		_ = l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Fatalf("accept ends with %v", err)
		}
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		next := lend(ln.(peer.Listener))
		taken, err := next.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = c.Close(), taken.Close(), next.Close()
	}
}

// TestRoutesAreWrittenDown: a node that was one of three is none of four, also where no other one
// runs: servers that were counted once are counted for good.
func TestRoutesAreWrittenDown(t *testing.T) {
	addr := make(map[string]string)
	for _, id := range []string{"a", "b", "c", "d"} {
		addr[id] = kit.Reserve(t)
	}
	dir, peer := t.TempDir(), kit.Reserve(t)
	f := func(want string, ids ...string) {
		t.Helper()
		var routes []string
		for _, id := range ids {
			routes = append(routes, id+"="+addr[id])
		}
		cfg := settings(t, "cluster.mode=embedded", "cluster.name=prod", "cluster.node=a", "store.mode=always", "store.dir="+dir,
			"cluster.listen_addr="+addr["a"], "cluster.peer_addr="+peer, "cluster.routes="+strings.Join(routes, ","))
		c, err := openCluster(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			err = c.Shutdown(t.Context())
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("with %v: %v, want %q", ids, err, want)
		}
	}
	f("", "a", "b", "c")
	f("it was made with the nodes a,b,c, not a,b,c,d", "a", "b", "c", "d")
	f("", "c", "b", "a")
}
