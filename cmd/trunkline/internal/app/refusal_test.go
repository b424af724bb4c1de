package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/handlers/ipc/ipcclient"
)

func TestHint(t *testing.T) {
	f := func(err error, parts ...string) {
		t.Helper()
		got := Hint(fmt.Errorf("cannot open store.dir = %q: %w", "d", err))
		for _, p := range parts {
			if !strings.Contains(got, p) {
				t.Errorf("hint for %v is %q, want %q in it", err, got, p)
			}
		}
		if len(parts) == 0 && got != "" {
			t.Errorf("hint for %v: %q", err, got)
		}
	}
	bad := errors.New("bad")
	f(&journal.DamageError{Where: "000004.log", Index: 18, Err: bad}, "serve --recover-to-index 17 keeps what is before")
	f(&journal.DamageError{Where: "000004.log", Index: 1, Err: bad}, "nothing is left")
	f(&journal.DamageError{Where: "000004.sst", Err: bad}, "not known", "restore a copy")
	f(&unrecovered{&journal.DamageError{Where: "block at 9", Index: 9, Err: bad}, 20}, "--recover-to-index 8 ")
	f(&unrecovered{&journal.DamageError{Where: "snapshot generation 2", Index: 9, Err: bad}, 20}, "--recover-to-index 20 ", "snapshot")
	f(&journal.DamageError{Where: "snapshot generation 2", Err: bad}, "--recover-to-index 18446744073709551615 ")
	f(&journal.DamageError{Where: "snapshot generation 2", Index: 9, Err: bad}, "--recover-to-index 8 ")
	f(fmt.Errorf("d: %w", journal.ErrLocked), "another server uses this directory")
	f(&journal.ErrModeMismatch{Made: journal.Always, Asked: journal.Interval}, "made with store.mode=always", "settings say interval", "set store.mode=always")
	f(bad)
	if got := Hint(nil); got != "" {
		t.Errorf("hint for nothing: %q", got)
	}
}

// run starts a server that is not expected to get far.
func run(t *testing.T, o Options, set ...string) error {
	t.Helper()
	o.Banner = io.Discard
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return Run(t.Context(), settings(t, set...), o)
}

func TestRecoverToNeedsAStore(t *testing.T) {
	err := run(t, Options{RecoverTo: 7})
	if err == nil || !strings.Contains(err.Error(), "cannot recover to index 7: store.mode is memory") {
		t.Error(err)
	}
}

// TestDirectoryOfSomebodyElse: a directory in use and one of another mode are refused, with a hint.
func TestDirectoryOfSomebodyElse(t *testing.T) {
	dir := "store.dir=" + t.TempDir()
	i := start(t, "store.mode=interval", dir)
	err := run(t, Options{}, "store.mode=interval", dir)
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(Hint(err), "another server") {
		t.Errorf("%v, hint %q", err, Hint(err))
	}
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	err = run(t, Options{}, "store.mode=always", dir)
	if err == nil || !strings.Contains(Hint(err), "set store.mode=interval") {
		t.Errorf("%v, hint %q", err, Hint(err))
	}
}

// TestDamageIsRefusedAndGivenUp: a flipped byte in the log is refused with file and index;
// recovering to the hint's index keeps what is before, and reports that the rest is given up.
func TestDamageIsRefusedAndGivenUp(t *testing.T) {
	dir := t.TempDir()
	set := []string{"store.mode=always", "store.dir=" + dir}
	i := start(t, set...)
	c := i.dial(i.addr("kernel ipc"))
	for p := range 20 {
		if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: fmt.Sprint("p", p), UserID: fmt.Sprint("u", p)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir)
	err := run(t, Options{}, set...)
	var damage *journal.DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), "("+dir+"/00") || !strings.Contains(err.Error(), ".log)") || !strings.Contains(err.Error(), fmt.Sprintf("index %d", damage.Index)) {
		t.Fatalf("%v, want damage in a log file in %s", err, dir)
	}
	err0 := err.Error()
	m := regexp.MustCompile(`--recover-to-index (\d+) keeps`).FindStringSubmatch(Hint(err))
	if m == nil {
		t.Fatalf("no index in the hint %q", Hint(err))
	}
	to, _ := strconv.ParseUint(m[1], 10, 64)
	if first, err := insideOfABlock(t, dir, to); err != nil {
		t.Fatal(err)
	} else if first != 0 {
		// An index in the middle of a block changes nothing: the damage is refused as before.
		if err := run(t, Options{RecoverTo: first}, set...); err == nil || !strings.Contains(err.Error(), "inside of a block") {
			t.Errorf("recovering to %d: %v", first, err)
		}
		if again := run(t, Options{}, set...); again == nil || again.Error() != err0 {
			t.Errorf("%v, before %v", again, err0)
		}
	}
	back := launch(t, Options{RecoverTo: to}, set...)
	back.await("msg=serving")
	n, err := back.dial(back.addr("kernel ipc")).GetProcessCounts(t.Context())
	if err != nil || n.Total == 0 || n.Total >= 20 {
		t.Errorf("%d processes kept, %v", n.Total, err)
	}
	if !strings.Contains(back.log.String(), `level=WARN msg="as asked, every record after this index is given up`) {
		t.Errorf("no warning of the loss:\n%s", back.log.String())
	}
	if err := back.end(); err != nil {
		t.Error(err)
	}
	start(t, set...) // and what is left is whole
}

// insideOfABlock returns an index before end that is not the last one of its block, 0 if there is
// none.
func insideOfABlock(t *testing.T, dir string, end journal.Index) (inside journal.Index, err error) {
	t.Helper()
	v, err := embedded.Inspect(embedded.Config{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer v.Close()
	return inside, journal.NewInspector(v, 0, v.Mode()).Blocks(1, func(b *journal.BlockView) error {
		if b.First < b.Last && b.Last <= end {
			inside = b.First
		}
		return nil
	}, func(journal.Damage) error { return nil })
}

// flip changes a byte in the middle of what the largest log file holds.
func flip(t *testing.T, dir string) {
	t.Helper()
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	var name string
	var text []byte
	for _, l := range logs {
		b, err := os.ReadFile(l)
		if err != nil {
			t.Fatal(err)
		}
		if b = bytes.TrimRight(b, "\x00"); len(b) > len(text) {
			name, text = l, b
		}
	}
	if len(text) < 100 {
		t.Fatalf("no log to damage among %v", logs)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(len(text) / 2)
	if _, err := f.WriteAt([]byte{text[at] ^ 0x40}, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullStorageIsShown: new work is not welcome while the disk is full, and everything else goes
// on.
func TestFullStorageIsShown(t *testing.T) {
	full := new(atomic.Bool)
	i := launch(t, Options{openStore: opener(func() {}, full)}, "store.mode=interval", "store.dir="+t.TempDir())
	i.await("msg=serving")
	c := i.dial(i.addr("kernel ipc"))
	f := func(state bool) {
		t.Helper()
		full.Store(state)
		status, r := i.ready()
		if got := strings.Join(r.Reasons, ","); (status == 503) != state || (got == reasonFull) != state {
			t.Errorf("full %v: readyz = %d %s", state, status, got)
		}
		_, store := i.get("/store")
		_, metrics := i.get("/metrics")
		want := fmt.Sprintf("\ntrunkline_store_full %v\n", oneIf(state))
		if strings.Contains(store, `"warnings":["storage_full"]`) != state || !strings.Contains(metrics, want) {
			t.Errorf("full %v: %s, and no %s", state, store, want)
		}
		_, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: fmt.Sprint("p", state)})
		if (err != nil) != state {
			t.Errorf("full %v: create: %v", state, err)
		}
		if _, err := c.GetProcessCounts(t.Context()); err != nil {
			t.Errorf("full %v: read: %v", state, err)
		}
	}
	f(false)
	f(true)
	full.Store(false)
	if status, _ := i.ready(); status != 200 {
		t.Errorf("readyz = %d after there is room again", status)
	}
}

// TestStoreShowsTheJournal: /store counts what was written, and knows a snapshot from before the
// start.
func TestStoreShowsTheJournal(t *testing.T) {
	set := filled(t, 6)
	i := start(t, set...)
	_, body := i.get("/store")
	for _, want := range []string{`"mode":"always"`, `"epoch":2,`, `"overloaded":false`, `"last_snapshot":{"index":`, `"snapshots":0,`, `"full":false`, `"warnings":[]`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	if _, body := start(t).get("/store"); strings.TrimSpace(body) != `{"mode":"memory","warnings":[]}` {
		t.Errorf("in memory: %s", body)
	}
}

func TestSurvives(t *testing.T) {
	f := func(mode, want string) {
		t.Helper()
		if got := survives(&config.Store{Mode: mode, Dir: "d"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", mode, got)
		}
	}
	f(config.StoreAlways, "survives, in d")
	f(config.StoreInterval, "but for two seconds of answers, in d")
	f(config.StoreMemory, "nothing survives")
}
