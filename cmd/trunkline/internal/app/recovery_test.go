package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

func TestProgressTellsPercentAndTime(t *testing.T) {
	var p progress
	at := func(secs float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(secs * 1e9)) }
	f := func(now float64, want string) {
		t.Helper()
		got, err := json.Marshal(p.view(at(now)))
		if err != nil || string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
	f(0, `null`)
	p.begin(at(0))
	f(1, `{"phase":"open","done":0,"total":0,"percent":0,"eta_secs":null}`)
	p.opened(at(2))
	p.report(store.RecoverProgress{Snapshot: true, Done: 100, Total: 400}, at(3))
	f(3, `{"phase":"snapshot","done":100,"total":400,"percent":25,"eta_secs":3}`)
	f(4, `{"phase":"snapshot","done":100,"total":400,"percent":25,"eta_secs":2}`)
	f(99, `{"phase":"snapshot","done":100,"total":400,"percent":25,"eta_secs":0}`)
	p.report(store.RecoverProgress{Snapshot: true, Done: 400, Total: 400}, at(6))
	f(6, `{"phase":"snapshot","done":400,"total":400,"percent":100,"eta_secs":0}`)
	p.report(store.RecoverProgress{Done: 1, Total: 8}, at(10))
	f(10, `{"phase":"log","done":1,"total":8,"percent":12.5,"eta_secs":28}`)
	if n := p.end(); n != 1 {
		t.Errorf("%d records replayed", n)
	}
	f(11, `null`)
}

func TestProgressIsLogged(t *testing.T) {
	var log banner
	s := &storage{logger: slog.New(slog.NewTextHandler(&log, nil))}
	s.report() // after the end there is nothing to report
	s.progress.begin(time.Now())
	s.report()
	s.progress.report(store.RecoverProgress{Snapshot: true, Done: 1, Total: 8}, time.Now())
	s.report()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "msg=recovering phase=open done=0 total=0 percent=0") ||
		!strings.Contains(lines[1], "msg=recovering phase=snapshot done=1 total=8 percent=12.5 eta_secs=") {
		t.Errorf("%q", lines)
	}
}

// hooked is a store that reports every call that recovery makes, and of every block and chunk it
// reads.
type hooked struct {
	diskStore
	hook func()
	full *atomic.Bool // nil: as it is
}

func (h *hooked) Blocks(from journal.Index, f func(journal.Index, []byte) error) error {
	h.hook()
	return h.diskStore.Blocks(from, func(first journal.Index, b []byte) error { h.hook(); return f(first, b) })
}

func (h *hooked) ReadSnapshot(g uint64, f func([]byte) error) error {
	h.hook()
	return h.diskStore.ReadSnapshot(g, func(b []byte) error { h.hook(); return f(b) })
}

func (h *hooked) WriteBlock(first journal.Index, b []byte) error {
	h.hook()
	return h.diskStore.WriteBlock(first, b)
}

func (h *hooked) CutBlocks(from journal.Index) error { h.hook(); return h.diskStore.CutBlocks(from) }
func (h *hooked) DropSnapshot(g uint64) error        { h.hook(); return h.diskStore.DropSnapshot(g) }
func (h *hooked) Sync() error                        { h.hook(); return h.diskStore.Sync() }

func (h *hooked) Full() bool {
	if h.full != nil {
		return h.full.Load()
	}
	return h.diskStore.Full()
}

func (h *hooked) Stats() embedded.Stats {
	st := h.diskStore.Stats()
	st.Full = h.Full()
	return st
}

// opener opens stores with a hook.
func opener(hook func(), full *atomic.Bool) func(embedded.Config) (diskStore, error) {
	return func(c embedded.Config) (diskStore, error) {
		s, err := embedded.Open(c)
		if err != nil {
			return nil, err
		}
		return &hooked{s, hook, full}, nil
	}
}

// filled makes a store with n processes, and with a snapshot of the first half of them.
func filled(t *testing.T, n int) (set []string) {
	t.Helper()
	set = []string{"store.mode=always", "store.dir=" + t.TempDir(), "store.snapshot_interval_secs=1"}
	i := start(t, set...)
	c := i.dial(i.addr("kernel ipc"))
	for p := range n {
		if p == n/2 {
			i.await("snapshot written")
		}
		if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: fmt.Sprint("p", p)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	return set
}

func (i *instance) ready() (int, ops.Ready) {
	i.t.Helper()
	status, body := i.get("/readyz")
	var r ops.Ready
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		i.t.Fatalf("%v: %s", err, body)
	}
	return status, r
}

// TestRecoveryIsShown: while the store is read, probes are answered, clients wait, and the table is
// not read.
func TestRecoveryIsShown(t *testing.T) {
	set := filled(t, 8)
	pass, waits := make(chan struct{}), make(chan struct{}, 1)
	i := launch(t, Options{openStore: opener(func() {
		select {
		case waits <- struct{}{}:
		default:
		}
		<-pass
	}, nil)}, set...)
	<-waits
	status, r := i.ready()
	if status != http.StatusServiceUnavailable || strings.Join(r.Reasons, ",") != "recovering" || r.Recovery == nil || r.Recovery.Phase != phaseOpen {
		t.Errorf("readyz = %d %+v", status, r)
	}
	if status, body := i.get("/healthz"); status != http.StatusOK {
		t.Errorf("healthz = %d %s", status, body)
	}
	if _, body := i.get("/metrics"); strings.Contains(body, "trunkline_processes") || !strings.Contains(body, "trunkline_connections_open 0") {
		t.Error("metrics of a table that is not whole, or none of connections")
	}
	if _, body := i.get("/store"); !strings.Contains(body, `"mode":"always"`) || !strings.Contains(body, `"phase":"open"`) {
		t.Errorf("store: %s", body)
	}
	if first, _, _ := strings.Cut(i.banner.String(), "\n"); !strings.HasPrefix(first, "store: always, ") {
		t.Errorf("the banner begins with %q", first)
	}
	answered := make(chan error, 1)
	c := i.dial(i.addr("kernel ipc")) // the backlog takes it
	go func() {
		p, err := c.GetProcess(context.Background(), "p7")
		if err == nil && p.PID != "p7" {
			err = fmt.Errorf("%+v", p)
		}
		answered <- err
	}()
	// Only the store is let on, a step at a time: what is shown belongs to the log and the snapshot
	// in turn.
	seen := map[string]bool{}
	for steps := 0; ; steps++ {
		select {
		case pass <- struct{}{}:
			if _, r := i.ready(); r.Recovery != nil {
				seen[r.Recovery.Phase] = true
			}
			continue
		case err := <-answered:
			if err != nil {
				t.Error(err)
			}
		}
		break
	}
	close(pass)
	i.await("msg=serving")
	if status, r := i.ready(); status != http.StatusOK || r.Recovery != nil {
		t.Errorf("readyz = %d %+v", status, r)
	}
	log := i.log.String()
	for _, want := range []string{"msg=recovering dir=", "msg=recovered dir=", "records=", "secs=", "mb_per_sec=", "replayed="} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	t.Logf("phases seen: %v", seen)
	if _, body := i.get("/metrics"); !strings.Contains(body, `trunkline_processes{state="READY"} 8`) {
		t.Error("not everything came back")
	}
}

// TestStopDuringRecovery: a signal ends it at once and well, and what is stored stays.
func TestStopDuringRecovery(t *testing.T) {
	set := filled(t, 4)
	pass, waits := make(chan struct{}), make(chan struct{}, 1)
	i := launch(t, Options{openStore: opener(func() {
		select {
		case waits <- struct{}{}:
		default:
		}
		<-pass
	}, nil)}, set...)
	<-waits
	i.stop()
	close(pass)
	if err := i.end(); err != nil {
		t.Error(err)
	}
	again := start(t, set...)
	if n, err := again.dial(again.addr("kernel ipc")).GetProcessCounts(t.Context()); err != nil || n.Total != 4 {
		t.Errorf("%+v, %v", n, err)
	}
}

// recovered opens the storage that the settings name on state machines of its own. interruptAt is
// the number of the call to the store before which an interrupt comes, 0 for none; calls is how
// many there were.
func recovered(
	t *testing.T,
	to journal.Index,
	interruptAt int,
	set ...string,
) (rt *runtime.Runtime, calls int, err error) {
	t.Helper()
	c := settings(t, set...)
	logger := slog.New(slog.DiscardHandler)
	rt = runtime.New(runtimeConfig(c, Options{Logger: logger}))
	var s *storage
	s, err = newStorage(&c.Store, rt, Options{Logger: logger, RecoverTo: to, openStore: opener(func() {
		if calls++; calls == interruptAt {
			s.stopped.Store(true)
		}
	}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	err = s.recover(t.Context(), nil)
	steps := calls
	_ = s.Close()
	_ = rt.CloseRows()
	return rt, steps, err
}

// TestInterruptedAnywhere: wherever a recovery is ended, with or without something to give up, the
// next one gives the same state.
func TestInterruptedAnywhere(t *testing.T) {
	dir := strings.TrimPrefix(filled(t, 6)[1], "store.dir=")
	again := func() []string {
		t.Helper()
		to := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return []string{"store.mode=always", "store.dir=" + to}
	}
	f := func(to journal.Index) {
		t.Helper()
		first, steps, err := recovered(t, to, 0, again()...)
		if err != nil || steps < 5 {
			t.Fatalf("to %d: %d steps, %v", to, steps, err)
		}
		interrupted := 0
		for n := 1; n <= steps; n++ {
			set := again()
			_, _, err := recovered(t, to, n, set...)
			if errors.Is(err, errInterrupted) {
				interrupted++
			} else if err != nil {
				t.Fatalf("to %d: interrupted at call %d: %v", to, n, err)
			}
			back, _, err := recovered(t, 0, 0, set...)
			if err != nil || back.Store.Digest() != first.Store.Digest() {
				t.Fatalf(
					"to %d: after an interruption at call %d: digest %x, want %x, %v",
					to,
					n,
					back.Store.Digest(),
					first.Store.Digest(),
					err,
				)
			}
		}
		if interrupted < steps/2 {
			t.Errorf("to %d: interrupted %d times of %d", to, interrupted, steps)
		}
	}
	f(0)
	f(1 << 40) // gives up nothing, but goes the way of a loss
}

// TestInterruptKeepsDamage: an interrupted recovery still reports damage, and nothing else but its
// cause.
func TestInterruptKeepsDamage(t *testing.T) {
	cause, damage := errors.New("cause"), &journal.DamageError{Index: 5}
	f := func(met, want error) {
		t.Helper()
		s, done := &storage{patience: time.Minute}, make(chan error, 1)
		done <- met
		if got := s.interrupt(done, cause); got != want || !s.stopped.Load() {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(nil, cause)
	f(fmt.Errorf("cannot read: %w", errInterrupted), cause)
	f(fmt.Errorf("cannot follow: %w", context.Canceled), cause)
	f(damage, damage)
}

// TestOneSignalEndsAStartThatHangs: a disk that does not answer does not hold up the end of the
// process.
func TestOneSignalEndsAStartThatHangs(t *testing.T) {
	answers, asked := make(chan struct{}), make(chan struct{})
	var log banner
	c := settings(t, "store.mode=always", "store.dir="+t.TempDir())
	s, err := newStorage(&c.Store, runtime.New(runtimeConfig(c, Options{})), Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		openStore: func(embedded.Config) (diskStore, error) {
			close(asked)
			<-answers
			return nil, errors.New("too late")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.recover(ctx, nil) }()
	<-asked
	cancel()
	if err := <-ended; err != context.Canceled || !strings.Contains(log.String(), "stopping without waiting for it") {
		t.Errorf("%v, log %s", err, log.String())
	}
	close(answers)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAFailureDuringAStartIsReturned: the claim cannot be written. The start returns the reason,
// and the process is not ended from inside.
func TestAFailureDuringAStartIsReturned(t *testing.T) {
	for _, reason := range []error{syscall.ENOSPC, syscall.EACCES} {
		c := settings(t, "store.mode=always", "store.dir="+t.TempDir())
		s, err := newStorage(&c.Store, runtime.New(runtimeConfig(c, Options{})), Options{
			Logger: slog.New(slog.DiscardHandler),
			openStore: func(ec embedded.Config) (diskStore, error) {
				store, err := embedded.Open(ec)
				return &unwritable{store, ec.OnFatal, reason}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err = s.recover(t.Context(), nil); !errors.Is(err, reason) {
			t.Errorf("%v, want %v", err, reason)
		}
	}
}

// unwritable is a store whose log cannot be written.
type unwritable struct {
	diskStore
	fatal  func(error)
	reason error
}

func (u *unwritable) WriteBlock(journal.Index, []byte) error {
	u.fatal(u.reason)
	return u.reason
}

// TestAddressesAreTakenBeforeTheStoreIsRead: what cannot be bound is an error at once, and the
// store is not touched.
func TestAddressesAreTakenBeforeTheStoreIsRead(t *testing.T) {
	i := start(t)
	f := func(set string) {
		t.Helper()
		opened := false
		err := Run(t.Context(), settings(t, set, "store.mode=always", "store.dir="+t.TempDir()), Options{
			Banner: &i.banner, Logger: slog.New(slog.DiscardHandler),
			openStore: func(embedded.Config) (diskStore, error) { opened = true; return nil, errors.New("opened") },
		})
		if err == nil || opened || strings.Contains(err.Error(), "opened") {
			t.Errorf("%s: %v, opened %v", set, err, opened)
		}
	}
	f("kernel.listen_addr=" + i.addr("kernel ipc"))
	f("http.listen_addr=" + i.addr("http"))
	f("admin.listen_addr=" + i.addr("admin"))
}

// lateStore is a store whose stream does not answer for a while.
type lateStore struct {
	diskStore
	unanswered int
}

func (s *lateStore) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	if s.unanswered > 0 {
		s.unanswered--
		return fmt.Errorf("cannot read journal: %w", context.DeadlineExceeded)
	}
	return s.diskStore.Blocks(from, f)
}

// TestAStartWaitsForItsStreams for cluster.join_timeout_secs, also where they answered once and do
// not show the end of the journal. After that it ends with what it could not read.
func TestAStartWaitsForItsStreams(t *testing.T) {
	f := func(within time.Duration, want string) {
		t.Helper()
		c := settings(t, "store.mode=always", "store.dir="+t.TempDir())
		log := slog.New(slog.DiscardHandler)
		node := control.New(control.Config{Lease: time.Minute, JoinTimeout: within, Partitions: 1, Logger: log})
		defer func() { _ = node.Shutdown(t.Context()) }()
		o := Options{Logger: log, cluster: node, lease: node.NewLease(0, false)}
		rt := runtime.New(runtimeConfig(c, o))
		s, err := newStorage(&c.Store, rt, o)
		if err != nil {
			t.Fatal(err)
		}
		s.opener = func(ec embedded.Config) (diskStore, error) {
			disk, err := embedded.Open(ec)
			return &lateStore{disk, 3}, err
		}
		err = s.recover(t.Context(), nil)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) || strings.Contains(got, "18446744073709551615") {
			t.Errorf("within %v: %v, want %q", within, err, want)
		}
		if err := errors.Join(s.Close(), rt.CloseRows()); err != nil {
			t.Error(err)
		}
	}
	f(time.Hour, "")
	f(0, "cannot read the end of the journal: cannot read journal: context deadline exceeded")
}
