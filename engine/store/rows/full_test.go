package rows

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// takesSpace matches what needs room on a disk.
func takesSpace(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFilePreallocate, errorfs.OpLink, errorfs.OpRename, errorfs.OpMkdirAll,
		errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		return true
	}
	return false
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
}

// work puts 40 batches with a Flush after each 10, and stops at an error. It returns how many are
// promised.
func work(fs vfs.FS, fatal *atomic.Int64) (flushed int, err error) {
	d, err := Open(Config{Dir: "d", FS: fs, MemTableBytes: 16 << 10, StallTimeout: 50 * time.Millisecond, OnFatal: func(error) { fatal.Add(1) }})
	if err != nil {
		return 0, err
	}
	b := d.NewBatch()
	for i := 0; i < 40 && err == nil; i++ {
		b.Set(keyOf(i), valueOf(i, 3000))
		if err = b.Commit(); err == nil && i%10 == 9 {
			if err = d.Flush(uint64(i + 1)); err == nil {
				flushed = i + 1
			}
		}
	}
	if also := d.Close(); err == nil {
		err = also
	}
	return flushed, err
}

// testFaults runs work with a fault at each operation in turn, until one run meets none. What was
// promised is there afterwards, on a disk that lost its power too.
func testFaults(t *testing.T, match func(errorfs.Op) bool, errno syscall.Errno, n int64) {
	step, refused := int64(rounds.Step(7, 1)), 0
	for from := int64(0); ; from += step {
		mem, fault := memdisk.New(), &faulty{match: match, err: errno, from: from}
		fault.n.Store(n)
		var fatal atomic.Int64
		flushed, err := work(errorfs.Wrap(mem, fault), &fatal)
		if fault.given.Load() == 0 {
			if err != nil || flushed != 40 {
				t.Fatalf("no fault, and %d flushed: %v", flushed, err)
			}
			break
		}
		switch {
		case err != nil && (!errors.Is(err, errno) || errors.Is(err, errFull) != (errno == syscall.ENOSPC)):
			t.Fatalf("fault %d: not typed: %v", from, err)
		case err == nil && flushed != 40:
			t.Fatalf("fault %d: %d flushed and no error", from, flushed)
		case fatal.Load() > 1:
			t.Fatalf("fault %d: OnFatal was called %d times", from, fatal.Load())
		case err != nil:
			refused++
		}
		d, err := Open(Config{Dir: "d", FS: mem.CrashClone(vfs.CrashCloneCfg{})})
		if err != nil {
			t.Fatalf("fault %d: does not open afterwards: %v", from, err)
		}
		got, err := contentOf(d)
		if err != nil || len(got) < flushed || d.Through() < uint64(flushed) || int(d.Through()) > len(got) {
			t.Fatalf("fault %d: flushed %d, found %d, mark %d: %v", from, flushed, len(got), d.Through(), err)
		}
		for i := range len(got) {
			if got[string(keyOf(i))] != string(valueOf(i, 3000)) {
				t.Fatalf("fault %d: row %d of %d is another", from, i, len(got))
			}
		}
		mustFlush(t, d, 99)
		mustClose(t, d)
	}
	if refused == 0 {
		t.Fatal("no fault was met")
	}
}

func TestDiskFullAtEveryWrite(t *testing.T) { testFaults(t, takesSpace, syscall.ENOSPC, -1) }

func TestOneSyncFails(t *testing.T) { testFaults(t, isSync, syscall.EIO, 1) }

func tables(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") && takesSpace(op) }

func manifests(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") && takesSpace(op) }

// faultyDB is a DB whose files fail while the fault is on.
func faultyDB(t *testing.T, match func(errorfs.Op) bool, err error, cfg Config) (*DB, *faulty) {
	t.Helper()
	fault := &faulty{match: match, err: err}
	cfg.Dir, cfg.FS, cfg.MemTableBytes = "d", errorfs.Wrap(vfs.NewMem(), fault), 64<<10
	d := mustOpen(t, cfg)
	mustPut(t, d, 0, 10, 100)
	mustFlush(t, d, 1)
	fault.n.Store(-1)
	return d, fault
}

// TestFullAtTheBeginning: rows for which there is no room are made once there is some.
func TestFullAtTheBeginning(t *testing.T) {
	stamp := func(op errorfs.Op) bool { return strings.Contains(op.Path, stampName) && takesSpace(op) }
	fault := &faulty{match: stamp, err: syscall.ENOSPC}
	fault.n.Store(-1)
	d := mustOpen(t, Config{Dir: "d", FS: errorfs.Wrap(vfs.NewMem(), fault), OnFatal: func(err error) { t.Error(err) }})
	for range 2 {
		if err := d.Flush(1); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
	}
	fault.n.Store(0)
	mustPut(t, d, 0, 10, 100)
	mustFlush(t, d, 1)
	wantRows(t, d, 10, 100)
	mustClose(t, d)
}

// TestFullPasses: without room for files a Flush fails, Full is true, and what is put stays
// readable; with room again everything is as if nothing had been.
func TestFullPasses(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		var book kit.Text
		d, fault := faultyDB(t, tables, errno, Config{Logger: book.Logger(), OnFatal: func(err error) { t.Error(err) }})
		mustPut(t, d, 10, 20, 100)
		err := d.Flush(2)
		if !errors.Is(err, errno) || errors.Is(err, errFull) != (errno == syscall.ENOSPC) {
			t.Error(err)
		}
		for end := time.Now().Add(time.Minute); !book.Has("cannot write their files") && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // it is logged after Flush can see it
		}
		if !d.Full() || d.Broken() != (errno == syscall.EIO) || d.Through() != 1 || !book.Has("cannot write their files") {
			t.Errorf("full %v, broken %v, through %d", d.Full(), d.Broken(), d.Through())
		}
		mustPut(t, d, 20, 30, 100)
		wantRows(t, d, 30, 100)
		fault.n.Store(0)
		for err = d.Flush(3); err != nil; err = d.Flush(3) { // while the failed flush is repeated
			if !errors.Is(err, errno) {
				t.Fatal(err)
			}
		}
		if d.Full() || d.Broken() || d.Through() != 3 {
			t.Errorf("full %v, through %d", d.Full(), d.Through())
		}
		wantRows(t, d, 30, 100)
		mustClose(t, d)
	}
}

// TestStallEnds: a Commit that waits for room ends with Close, or after StallTimeout, which is
// final.
func TestStallEnds(t *testing.T) {
	fill := func(d *DB) error {
		b := d.NewBatch()
		for i := 10; ; i++ {
			b.Set(keyOf(i), valueOf(i, 20000))
			if err := b.Commit(); err != nil {
				return err
			}
		}
	}
	failing := func(d *DB) {
		if err := d.Flush(2); !errors.Is(err, errFull) {
			t.Error(err)
		}
	}
	fatal := make(chan error, 1)
	d, _ := faultyDB(t, tables, syscall.ENOSPC, Config{StallTimeout: time.Millisecond, OnFatal: func(err error) { fatal <- err }})
	failing(d)
	err := fill(d)
	if !errors.Is(err, errFull) || !errors.Is(<-fatal, syscall.ENOSPC) {
		t.Error(err)
	}
	if n := d.Stats().MemTableBytes; n > 2*memTables*(64<<10) {
		t.Errorf("%d bytes wait in memory", n)
	}
	if _, ok, err := d.Get(nil, keyOf(3)); !ok || err != nil {
		t.Error("rows are not readable after the end:", err)
	}
	if err := d.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}

	d, _ = faultyDB(t, tables, syscall.ENOSPC, Config{OnFatal: func(err error) { t.Error(err) }})
	failing(d)
	filled := make(chan error)
	go func() { filled <- fill(d) }()
	for waits := false; !waits; runtime.Gosched() {
		d.stall.mu.Lock()
		waits = d.stall.timer != nil
		d.stall.mu.Unlock()
	}
	mustClose(t, d)
	if err := <-filled; !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// TestManifestIsFinal: after an error of the manifest nothing is put and nothing on the disk
// changes, and OnFatal is called once.
func TestManifestIsFinal(t *testing.T) {
	for name, match := range map[string]func(errorfs.Op) bool{
		"manifest":  manifests,
		"directory": func(op errorfs.Op) bool { return op.Path == "d" && op.Kind == errorfs.OpFileSync },
	} {
		var fatal atomic.Int64
		d, fault := faultyDB(t, match, syscall.EIO, Config{OnFatal: func(error) { fatal.Add(1) }})
		if err := d.Flush(2); !errors.Is(err, syscall.EIO) {
			t.Error(name, err)
		}
		fault.n.Store(0)
		b := d.NewBatch()
		b.Set([]byte("k"), nil)
		if err := b.Commit(); !errors.Is(err, syscall.EIO) {
			t.Error(name, err)
		}
		for fatal.Load() == 0 { // the goroutine that met the error may still be on its way to the hook
			runtime.Gosched()
		}
		if err := d.Flush(3); !errors.Is(err, syscall.EIO) || d.Through() != 1 {
			t.Error(name, err, d.Through())
		}
		for _, change := range []error{d.fs.Remove("d/x"), d.fs.Rename("d/x", "d/y"), d.fs.Link("d/x", "d/y"), d.fs.RemoveAll("d"), d.fs.MkdirAll("d/z", 0o700)} {
			if change != nil {
				t.Error(name, change)
			}
		}
		if err := d.Close(); !errors.Is(err, syscall.EIO) || fatal.Load() != 1 {
			t.Error(name, err, fatal.Load())
		}
	}
}

// TestRowsWaitForTheJournal: no file of new rows is made before Barrier has returned.
func TestRowsWaitForTheJournal(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan error)
	files := &faulty{match: func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") }}
	d := mustOpen(t, Config{Dir: "d", FS: errorfs.Wrap(vfs.NewMem(), files), Barrier: func(ctx context.Context) error {
		asked <- struct{}{}
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	mustPut(t, d, 0, 10, 100)
	flushed := make(chan error)
	flush := func() { flushed <- d.Flush(1) }
	go flush()
	<-asked
	wantRows(t, d, 10, 100)
	mustPut(t, d, 10, 20, 100)
	if files.seen.Load() != 0 {
		t.Error("a file was made")
	}
	answer <- nil
	if err := <-flushed; err != nil || d.Through() != 1 || files.seen.Load() == 0 {
		t.Error(err, d.Through(), files.seen.Load())
	}
	go flush()
	<-asked
	answer <- journal.ErrFailed
	if err := <-flushed; !errors.Is(err, journal.ErrFailed) || !d.Full() || !d.Broken() {
		t.Error(err)
	}
	<-asked // pebble tries again
	mustClose(t, d)
}

// TestFailedJobsAreForgotten: what a failed flush has refused is accepted again once one succeeds;
// damage that a merge met is not.
func TestFailedJobsAreForgotten(t *testing.T) {
	d := mustOpen(t, Config{Memory: true})
	defer mustClose(t, d)
	l := d.listener()
	merge := func(err error) {
		l.CompactionEnd(pebble.CompactionInfo{Done: true, Err: err})
		if err != nil && !errors.Is(err, pebble.ErrCancelledCompaction) {
			l.BackgroundError(err)
		}
	}
	flush := func(err error) {
		if l.FlushEnd(pebble.FlushInfo{Done: true, Err: err}); err != nil {
			l.BackgroundError(err)
		}
	}
	f := func(what string, full, broken bool, bits uint32) {
		t.Helper()
		if d.Full() != full || d.Broken() != broken || d.room.why.Load() != bits {
			t.Errorf("%s: full %v, broken %v, %b", what, d.Full(), d.Broken(), d.room.why.Load())
		}
	}
	merge(syscall.ENOSPC)
	f("a merge without room", false, false, mergeFailing)
	merge(pebble.ErrCancelledCompaction)
	flush(nil)
	f("a flush that succeeds", false, false, mergeFailing)
	merge(nil)
	f("a merge that succeeds", false, false, 0)
	flush(syscall.ENOSPC)
	f("a flush without room", true, false, flushFailing)
	merge(nil)
	f("a merge behind it", true, false, flushFailing)
	flush(syscall.EIO)
	f("a flush that cannot write", true, true, flushFailing)
	flush(nil)
	f("one that succeeds", false, false, 0)
	merge(pebble.ErrCorruption)
	merge(nil)
	flush(nil)
	f("a merge that met damage", true, true, rotten)
}
