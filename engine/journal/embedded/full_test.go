package embedded

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// faulty fails operations: those that match, from the from-th on, n of them (-1: all).
type faulty struct {
	match func(errorfs.Op) bool
	err   error
	from  int64
	n     int64
	seen  atomic.Int64
	given atomic.Int64
}

// String implements errorfs.Injector.
func (f *faulty) String() string { return "faulty" }

// MaybeError implements errorfs.Injector.
func (f *faulty) MaybeError(op errorfs.Op) error {
	if !f.match(op) {
		return nil
	}
	if at := f.seen.Add(1) - 1; at < f.from || f.n >= 0 && at >= f.from+f.n {
		return nil
	}
	f.given.Add(1)
	return f.err
}

// takesSpace matches what a full disk refuses.
func takesSpace(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpMkdirAll,
		errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData:
		return true
	}
	return false
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
}

// work does everything that a journal does, until an error, and returns what was acknowledged.
func work(fs vfs.FS, mode journal.Mode) (acked journal.Index, fatal int, err error) {
	cfg := quiet(Config{Dir: "d", Mode: mode, FS: fs, StallTimeout: 20 * time.Millisecond, OnFatal: func(error) { fatal++ }})
	s, err := Open(cfg)
	if err != nil {
		return 0, fatal, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := uint64(1); i <= 40; i++ {
		if err := s.WriteBlock(i, blockOf(i, 20000)); err != nil {
			return acked, fatal, err
		}
		acked = i
		if i%5 == 0 {
			s.syncAndMark()
		}
		if i != 20 {
			continue
		}
		w, err := s.BeginSnapshot(1)
		if err != nil {
			return acked, fatal, err
		}
		if err = w.Write(blockOf(256, 20000)); err == nil {
			err = w.Commit([]byte("meta"))
		}
		if err != nil {
			return acked, fatal, err
		}
	}
	return acked, fatal, s.Sync()
}

// testFaults runs work with a fault at each operation in turn, until one run meets none.
func testFaults(t *testing.T, mode journal.Mode, f func() *faulty, typed bool) {
	step := int64(rounds.Step(7, 7))
	runs, refused := 0, 0
	for from := int64(0); ; from += step {
		mem, fault := memdisk.New(), f()
		fault.from = from
		acked, fatal, err := work(errorfs.Wrap(mem, fault), mode)
		if fault.given.Load() == 0 {
			if err != nil || acked != 40 {
				t.Fatalf("no fault, and %d acknowledged: %v", acked, err)
			}
			break
		}
		runs++
		if err != nil {
			refused++
			if typed && !errors.Is(err, ErrFull) || !errors.Is(err, fault.err) {
				t.Fatalf("fault %d: not typed: %v", from, err)
			}
		} else if acked != 40 {
			t.Fatalf("fault %d: %d acknowledged and no error", from, acked)
		}
		if fatal > 1 {
			t.Fatalf("fault %d: OnFatal was called %d times", from, fatal)
		}
		var after vfs.FS = mem
		if mode == journal.Always {
			after = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		s, err := Open(quiet(Config{Dir: "d", Mode: mode, FS: after}))
		if err != nil {
			t.Fatalf("fault %d: does not open with space: %v", from, err)
		}
		if last, err := prefixOf(s); err != nil || last < acked {
			t.Fatalf("fault %d: acknowledged %d, found %d: %v", from, acked, last, err)
		}
		mustClose(t, s)
	}
	if refused == 0 {
		t.Fatal("no fault was met")
	}
	t.Logf("%d faults, %d refused", runs, refused)
}

func TestDiskFullAtEveryWrite(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			testFaults(t, mode, func() *faulty { return &faulty{match: takesSpace, err: syscall.ENOSPC, n: -1} }, true)
		})
	}
}

func TestOneSyncFails(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			testFaults(t, mode, func() *faulty { return &faulty{match: isSync, err: syscall.EIO, n: 1} }, false)
		})
	}
}
