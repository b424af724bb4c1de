package embedded

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// slowDisk holds each sync of a log until it is let go.
type slowDisk struct {
	armed   atomic.Bool
	reached chan struct{}
	letGo   chan struct{}
}

// String implements errorfs.Injector.
func (d *slowDisk) String() string { return "slow disk" }

// MaybeError implements errorfs.Injector.
func (d *slowDisk) MaybeError(op errorfs.Op) error {
	if isSync(op) && len(op.Path) > 4 && op.Path[len(op.Path)-4:] == ".log" && d.armed.Load() {
		d.reached <- struct{}{}
		<-d.letGo
	}
	return nil
}

// TestSlowSync: in mode Always a block is not acknowledged before its sync ends; in mode Interval
// it is, while a sync of what came before it hangs.
func TestSlowSync(t *testing.T) {
	for _, mode := range bothModes {
		disk := &slowDisk{reached: make(chan struct{}), letGo: make(chan struct{})}
		s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(vfs.NewMem(), disk)})
		mustWrite(t, s, 1, 10, 100)
		disk.armed.Store(true)
		done := make(chan error)
		if mode == journal.Always {
			go func() { done <- s.WriteBlock(11, blockOf(11, 100)) }()
			<-disk.reached
			select {
			case err := <-done:
				t.Fatalf("acknowledged before its sync: %v", err)
			default:
			}
			if s.last.Load() != 10 {
				t.Fatal("counted before its sync")
			}
		} else {
			go func() { s.syncAndMark(); done <- nil }()
			<-disk.reached
			mustWrite(t, s, 11, 20, 100)
		}
		disk.armed.Store(false)
		disk.letGo <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if mode == journal.Interval && s.mark.first != 10 {
			t.Fatalf("marked %d, want 10: the others came after the sync began", s.mark.first)
		}
		mustClose(t, s)
	}
}

// TestSyncsOfALog counts what reaches the disk.
func TestSyncsOfALog(t *testing.T) {
	f := func(mode journal.Mode, want int64) {
		t.Helper()
		var syncs atomic.Int64
		count := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if isSync(op) {
				syncs.Add(1)
			}
			return nil
		})
		s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(vfs.NewMem(), count)})
		defer mustClose(t, s)
		before := syncs.Load()
		mustWrite(t, s, 1, 50, 100)
		if got := syncs.Load() - before; got != want {
			t.Errorf("%s: %d syncs for 50 blocks, want %d", mode, got, want)
		}
		before = syncs.Load()
		s.syncAndMark()
		s.syncAndMark()
		if got := syncs.Load() - before; mode == journal.Interval && got != 1 {
			t.Errorf("%d syncs for two ticks with something new before the first, want 1", got)
		}
	}
	f(journal.Always, 50)
	f(journal.Interval, 0)
}

// TestFailureIsOneAndFinal: the first error of the log is reported once, and neither a later write
// nor Close hides it.
func TestFailureIsOneAndFinal(t *testing.T) {
	for _, mode := range bothModes {
		fault := &faulty{match: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }, err: syscall.EIO, n: 1, from: 1 << 40}
		var told []error
		s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(vfs.NewMem(), fault), OnFatal: func(err error) { told = append(told, err) }})
		mustWrite(t, s, 1, 5, 100)
		fault.from = fault.seen.Load()
		for i := range 3 {
			if err := s.WriteBlock(6+uint64(i), blockOf(6, 100)); !errors.Is(err, syscall.EIO) {
				t.Fatalf("write %d: %v", i, err)
			}
		}
		if len(told) != 1 || !errors.Is(told[0], syscall.EIO) || errors.Is(told[0], ErrFull) {
			t.Fatalf("told %v", told)
		}
		for name, err := range map[string]error{"sync": s.Sync(), "drop": s.DropBlocks(3), "cut": s.CutBlocks(3), "generation": s.DropSnapshot(1)} {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantPrefix(t, s, 5+1) // what is in memory; it was not acknowledged, and the process ends
		if err := s.Close(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("second close: %v", err)
		}
	}
}

// TestSunkLogChangesNothing: once the log has failed, pebble sees that the log works and that
// nothing else does, and the directory stays as it was.
func TestSunkLogChangesNothing(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d", 0o700); err != nil {
		t.Fatal(err)
	}
	told := 0
	l := newLogFS(mem, "d", true)
	l.fatal, l.pause = func(error) { told++ }, func() {}
	if err := l.opened(); err != nil {
		t.Fatal(err)
	}
	create := func(name string) vfs.File {
		f, err := l.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	table, log := create("d/000001.sst"), create("d/000002.log")
	dir, err := l.OpenDir("d")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []vfs.File{table, log} {
		if _, err := f.Write([]byte("before")); err != nil {
			t.Fatal(err)
		}
	}
	l.fail(syscall.EIO)
	l.fail(syscall.ENOSPC)
	if err := l.err(); told != 1 || !errors.Is(err, syscall.EIO) || errors.Is(err, ErrFull) {
		t.Fatalf("told %d times, %v", told, err)
	}
	works := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	fails := func(what string, err error) {
		t.Helper()
		if err != errLogFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = log.Write([]byte("after"))
	works("log write", err)
	works("log sync", log.Sync())
	_, err = log.SyncTo(3)
	works("log sync to", err)
	works("log preallocate", log.Preallocate(0, 100))
	works("directory sync", dir.Sync())
	works("next log", create("d/000003.log").Close())
	_, err = l.ReuseForWrite("d/000002.log", "d/000004.log", vfs.WriteCategoryUnspecified)
	works("log reuse", err)
	works("log close", log.Close())
	_, err = table.Write([]byte("after"))
	fails("write", err)
	fails("sync", table.Sync())
	fails("sync data", table.SyncData())
	_, err = l.Create("d/000005.sst", vfs.WriteCategoryUnspecified)
	fails("create", err)
	fails("remove", l.Remove("d/000001.sst"))
	fails("remove all", l.RemoveAll("d"))
	fails("rename", l.Rename("d/000001.sst", "d/x"))
	fails("link", l.Link("d/000001.sst", "d/x"))
	names, err := mem.List("d")
	if err != nil || len(names) != 2 {
		t.Errorf("the directory has changed: %v (%v)", names, err)
	}
	for _, name := range []string{"d/000001.sst", "d/000002.log"} {
		if got, err := pebbledir.Read(mem, name, maxStampBytes); err != nil || string(got) != "before" {
			t.Errorf("%s is %q (%v)", name, got, err)
		}
	}
}

// TestAGrowingLogIsReadToTheEndOfAWrite: what is written after the open is not read, nor what an
// older log has left behind the end; a log that is closed is read to its end.
func TestAGrowingLogIsReadToTheEndOfAWrite(t *testing.T) {
	mem := vfs.NewMem()
	old, err := mem.Create("old", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = old.Write(bytes.Repeat([]byte("old"), 100))
	}
	if err = errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	l := newLogFS(mem, "", false)
	l.fatal, l.pause = func(err error) { t.Error(err) }, func() {}
	l.opening.Store(false)
	l.dir = mem.PathDir("1.log")
	f, err := l.ReuseForWrite("old", "1.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(r io.Reader, want string) {
		t.Helper()
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("read %q (%v), want %q", got, err, want)
		}
	}
	open := func() vfs.File {
		t.Helper()
		r, err := l.Open("1.log")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	read(open(), "")
	write("first ")
	r := open()
	write("second ")
	read(r, "first ")
	read(open(), "first second ")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	read(open(), "first second "+strings.Repeat("old", 100)[len("first second "):])
}
