package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit"
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
	c := &cluster{
		term: 10 * time.Millisecond, log: slog.New(slog.DiscardHandler),
		dial: peer.Config{Cluster: "c", Node: "n3", Logger: slog.New(slog.DiscardHandler)},
	}
	c.dialer = peer.NewDialer(&c.dial)
	t.Cleanup(c.dialer.Close)
	silent, next := listen(), listen()
	peers, err := peer.NewServer(next, c.dial)
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
	conn, _, err := c.reach(ctx, view, "kernel", 0, "client")
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
	if l := new(lease); !l.stale() {
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
// it, follows anew; one with a damaged log, or that is to give records up, ends.
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

// TestADrainedNodeTakesNothingOver until it is resumed.
func TestADrainedNodeTakesNothingOver(t *testing.T) {
	l := &lease{node: &cluster{id: "a", ids: []string{"a", "b", "c"}, cfg: &config.Cluster{Partitions: 1}, term: time.Nanosecond}, view: owner.NewView(0)}
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

// TestANodeWithoutRoomIsLate: it takes over a term after it would, so that one with room is first.
func TestANodeWithoutRoomIsLate(t *testing.T) {
	silentFor := func(d time.Duration) *lease {
		c := &cluster{id: "a", ids: []string{"a", "b", "c"}, cfg: &config.Cluster{Partitions: 1}, term: time.Hour}
		c.full.Store(true)
		return &lease{node: c, view: owner.NewView(owner.Now() - int64(d))}
	}
	if silentFor(2*time.Hour - time.Minute).due() {
		t.Error("it is as fast as others")
	}
	if !silentFor(2 * time.Hour).due() {
		t.Error("it never takes over")
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

// TestPipes: what connects inside of the process has the name of its client, and finds no one once
// the listener is closed.
func TestPipes(t *testing.T) {
	p := newPipes()
	taken := make(chan net.Conn, 1)
	go func() {
		nc, _ := p.Accept()
		taken <- nc
	}()
	c, err := p.dial(t.Context(), "10.0.0.1:5")
	if err != nil {
		t.Fatal(err)
	}
	there := <-taken
	if name := there.RemoteAddr().String(); name != "10.0.0.1:5" {
		t.Errorf("the client is %s", name)
	}
	asked := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(there)
		asked <- string(b)
		_, _ = io.WriteString(there, "answer")
		_ = there.Close()
	}()
	_, _ = io.WriteString(c, "question")
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	if answer, err := io.ReadAll(c); err != nil || string(answer) != "answer" || <-asked != "question" {
		t.Errorf("after the end of what was asked: %q, %v", answer, err)
	}
	_ = c.SetDeadline(time.Unix(1, 0))
	for _, use := range []func([]byte) (int, error){c.Read, c.Write} {
		if _, err := use(make([]byte, 1)); err == nil {
			t.Error("a connection that has ended is used")
		}
	}
	_, _, _ = c.Close(), there.Close(), p.Close()
	if _, err := p.dial(t.Context(), "x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
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
			err = c.shutdown(t.Context())
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("with %v: %v, want %q", ids, err, want)
		}
	}
	f("", "a", "b", "c")
	f("it was made with the nodes a,b,c, not a,b,c,d", "a", "b", "c", "d")
	f("", "c", "b", "a")
}
