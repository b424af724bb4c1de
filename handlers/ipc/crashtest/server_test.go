package crashtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc"
)

var bothModes = []journal.Mode{journal.Always, journal.Interval}

// modes are both, or in a short run the stricter one where the other is not expected to differ.
func modes() []journal.Mode {
	if testing.Short() {
		return bothModes[:1]
	}
	return bothModes
}

const (
	// never is an interval in which nothing ticks during a test.
	never = 24 * time.Hour
	// patience is how long a test waits for what must come, before it fails.
	patience = 20 * time.Second
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func TestMain(m *testing.M) { kit.Leaks(m) }

// plenty is a disk that is never full.
func plenty() (uint64, error) { return 1 << 40, nil }

// options are what a test changes of a server. The zero value is a quiet server in mode Always
// whose clock stands still.
type options struct {
	ipc     ipc.Config
	state   runtime.Config
	journal journal.Config
	store   embedded.Config
	// wrap puts something between the journal and its store.
	wrap func(journal.Store) journal.Store
	// start runs the periodic work of the service.
	start bool
}

// server is an endpoint without sockets: a service, its journal and its store.
type server struct {
	svc   *ipc.Service
	log   *journal.Log
	store *embedded.Store

	started bool
	dead    chan struct{} // closed when the journal or its store stops
	dies    sync.Once
	cause   atomic.Pointer[error] // why
	ports   atomic.Uint64
}

// recoverService is the one place that knows how a service takes over a journal.
func recoverService(svc *ipc.Service, log *journal.Log, full func() bool) error {
	return svc.Runtime().Recover(log, store.RecoverOptions{Full: full})
}

// boot opens a server on dir of fs; nil is the disk.
func boot(fs vfs.FS, dir string, mode journal.Mode, o options) (*server, error) {
	s := &server{dead: make(chan struct{})}
	o.store.FS, o.store.Dir, o.store.Mode = fs, dir, mode
	o.store.OnFatal = s.die
	if o.store.FreeBytes == nil {
		o.store.FreeBytes = plenty
	}
	if o.store.SyncEvery == 0 {
		o.store.SyncEvery = never
	}
	store, err := embedded.Open(o.store)
	if err != nil {
		return nil, err
	}
	s.store = store
	if err = s.serve(store, mode, o, store.Full); err != nil {
		return nil, err
	}
	return s, nil
}

// serve opens the journal over a store, which it closes on an error, and the service over the
// journal.
func (s *server) serve(store journal.Store, mode journal.Mode, o options, full func() bool) (err error) {
	if o.wrap != nil {
		store = o.wrap(store)
	}
	o.state.Journaled = true
	s.svc = ipc.NewService(o.ipc, runtime.New(o.state))
	o.journal.Mode, o.journal.OnDurable, o.journal.OnFailure = mode, s.svc.Runtime().Durable, s.die
	if s.log, err = journal.Open(store, o.journal); err != nil {
		s.svc.Runtime().Close()
		return errors.Join(err, store.Close())
	}
	if err = recoverService(s.svc, s.log, full); err != nil {
		s.svc.Runtime().Close()
		return errors.Join(err, s.log.Close(), s.svc.Runtime().CloseRows())
	}
	if s.started = o.start; s.started {
		s.svc.Runtime().Start()
	}
	return nil
}

func mustBoot(t testing.TB, fs vfs.FS, dir string, mode journal.Mode, o options) *server {
	t.Helper()
	s, err := boot(fs, dir, mode, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// die notes that the server has stopped, and why.
func (s *server) die(err error) {
	s.dies.Do(func() {
		s.cause.Store(&err)
		close(s.dead)
	})
}

// why returns what stopped the server.
func (s *server) why() error {
	if p := s.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// stop ends a server and returns the error of its journal.
func (s *server) stop() error {
	s.svc.Runtime().Close()
	return errors.Join(s.log.Close(), s.svc.Runtime().CloseRows())
}

func mustStop(t testing.TB, s *server) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

// settle waits until all that was appended is durable.
func (s *server) settle(t tester) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.log.Barrier(ctx); err != nil {
		t.Fatal(err)
	}
}

// clock is both clocks of a service, in the hand of a test.
type clock struct {
	mono, wall atomic.Int64
	// read is called with each reading, if it is set before other goroutines read the clock.
	read func()
}

func newClock() *clock {
	c := &clock{}
	c.mono.Store(int64(1000 * time.Hour))
	c.wall.Store(1_700_000_000_000)
	return c
}

func (c *clock) now() connection.Instant {
	if c.read != nil {
		c.read()
	}
	return connection.Instant{Mono: c.mono.Load(), Wall: c.wall.Load()}
}

func (c *clock) pass(d time.Duration) {
	c.mono.Add(int64(d))
	c.wall.Add(d.Milliseconds())
}

// digestOf is the state that a fresh replay of recorded blocks gives, without any snapshot.
func digestOf(t tester, blocks []block, mode journal.Mode, cfg runtime.Config) uint64 {
	t.Helper()
	s := &server{dead: make(chan struct{})}
	if err := s.serve(&reel{blocks: blocks}, mode, options{state: cfg}, nil); err != nil {
		t.Fatalf("cannot replay %d recorded blocks: %v", len(blocks), err)
	}
	digest := s.svc.Runtime().Store.Digest()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	return digest
}

// text is an error for looking into, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
