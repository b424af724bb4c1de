package storesocket

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The library of the event loops starts its pool when it is linked.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// maker makes checkpoints without a store.
type maker struct {
	mu   sync.Mutex
	n    uint64
	live atomic.Int64
	gone chan struct{}
	fail error
	wait bool // until the client goes away
}

func (m *maker) take(ctx context.Context) (Checkpoint, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wait {
		<-ctx.Done()
		return Checkpoint{}, nil, ctx.Err()
	}
	if m.fail != nil {
		return Checkpoint{}, nil, m.fail
	}
	m.n++
	m.live.Add(1)
	return Checkpoint{Dir: "d", Index: m.n}, func() {
		m.live.Add(-1)
		m.gone <- struct{}{}
	}, nil
}

func (m *maker) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func serve(t *testing.T, dir string) (*maker, *Server) {
	t.Helper()
	m := &maker{gone: make(chan struct{}, 100)}
	s, err := Serve(Config{Store: dir, Take: m.take, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return m, s
}

func ask(t *testing.T, dir string) *Lease {
	t.Helper()
	l, err := Ask(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestACheckpointIsThereUntilTheLeaseEnds(t *testing.T) {
	dir := t.TempDir()
	m, _ := serve(t, dir)
	l := ask(t, dir)
	if l.Dir != "d" || l.Index != 1 || m.live.Load() != 1 || l.Context().Err() != nil {
		t.Errorf("%+v, %d live", l.Checkpoint, m.live.Load())
	}
	l.Close()
	if m.live.Load() != 0 || l.Context().Err() == nil {
		t.Errorf("%d live", m.live.Load())
	}
}

// TestOneTooMany: the last client that is served, and the first one that is not.
func TestOneTooMany(t *testing.T) {
	dir := t.TempDir()
	m, _ := serve(t, dir)
	var leases []*Lease
	for range maxClients {
		leases = append(leases, ask(t, dir))
	}
	if _, err := Ask(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "4 backups are being made already") {
		t.Errorf("one too many: %v", err)
	}
	leases[0].Close()
	<-m.gone
	for again := true; again; { // the place is free a moment after the checkpoint is gone
		l, err := Ask(t.Context(), dir)
		if again = err != nil; !again {
			leases[0] = l
		}
	}
	for _, l := range leases {
		l.Close()
	}
	for range leases {
		<-m.gone
	}
}

// TestTheServerEnds: the lease ends with it, and its checkpoint before Close returns.
func TestTheServerEnds(t *testing.T) {
	dir := t.TempDir()
	m, s := serve(t, dir)
	l := ask(t, dir)
	s.Close()
	if m.live.Load() != 0 {
		t.Error("a checkpoint is left")
	}
	<-l.Context().Done()
	if err := context.Cause(l.Context()); err != errEnded {
		t.Errorf("cause %v", err)
	}
	l.Close()
	if _, err := Ask(t.Context(), dir); !errors.Is(err, ErrNoServer) {
		t.Errorf("after the end: %v", err)
	}
	(*Server)(nil).Close()
}

// TestWhatIsNotMade: errors of the server are the client's, and a client that goes away ends the
// work for it.
func TestWhatIsNotMade(t *testing.T) {
	dir := t.TempDir()
	m, _ := serve(t, dir)
	m.set(func() { m.fail = errors.New("the disk is full") })
	if _, err := Ask(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Error(err)
	}
	m.set(func() { m.wait, m.fail = true, nil })
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := Ask(ctx, dir)
		asked <- err
	}()
	for m.mu.TryLock() { // until the server waits
		m.mu.Unlock()
	}
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.set(func() { m.wait = false }) // once the server has noticed
	ask(t, dir).Close()
}

// TestRequests: a line that is not the request gets a text, and costs no checkpoint.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	m, _ := serve(t, dir)
	f := func(line, want string) {
		t.Helper()
		c, err := net.Dial("unix", filepath.Join(dir, Dir, socketName))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// A server that closes the connection before it has read all makes errors of both.
		_, _ = io.WriteString(c, line)
		_ = c.(*net.UnixConn).CloseWrite()
		if got, err := io.ReadAll(c); !strings.Contains(string(got), want) {
			t.Errorf("%.80q: %q, %v", line, got, err)
		}
	}
	f("", "cannot read the request")
	f("trunkline checkpoint 2\n", "want")
	f("trunkline checkpoint 1", "cannot read")
	f("GET / HTTP/1.1\r\n\r\n", "cannot read")
	f(strings.Repeat("x", 1<<16), "cannot read")
	m.set(func() {
		if m.n != 0 {
			t.Errorf("%d checkpoints were made", m.n)
		}
	})
	f(request, `{"dir":"d","index":1}`)
}

// TestDeepDirectory: the longest path that is the address of a socket itself, and longer ones.
func TestDeepDirectory(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("the system has no /proc: a store in a deep directory is backed up without its server only")
	}
	top, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	for _, n := range []int{maxSocketPath, maxSocketPath + 1, 108, 300} { // bytes of the path of the socket
		n -= len(filepath.Join("/", Dir, socketName))
		dir := top
		for len(dir) < n {
			dir = filepath.Join(dir, strings.Repeat("d", min(n-len(dir)-1, 100)))
		}
		if len(dir) != n {
			t.Fatalf("%s has %d bytes, want %d", dir, len(dir), n)
		}
		m, s := serve(t, dir)
		ask(t, dir).Close()
		<-m.gone
		s.Close()
		if _, err := os.Lstat(filepath.Join(dir, Dir, socketName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// TestTheSocketIsItsOwners: only the user of the store may write to it.
func TestTheSocketIsItsOwners(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir)
	for name, want := range map[string]os.FileMode{".": os.ModeDir | 0o700, socketName: os.ModeSocket | 0o600} {
		info, err := os.Lstat(filepath.Join(dir, Dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
