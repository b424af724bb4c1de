package embedded

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
)

// testClock is a clock that the test moves.
type testClock struct{ nanos atomic.Int64 }

func (c *testClock) now() time.Time          { return time.Unix(1000, c.nanos.Load()) }
func (c *testClock) forward(d time.Duration) { c.nanos.Add(int64(d)) }

// heldDisk is a disk whose syncs of the log wait while held.
type heldDisk struct {
	held   atomic.Bool
	begins chan struct{} // gets one for each sync that is held
	answer chan struct{}
}

func (h *heldDisk) fs() vfs.FS {
	h.begins, h.answer = make(chan struct{}, 100), make(chan struct{})
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isSync(op) && strings.HasSuffix(op.Path, ".log") && h.held.Load() {
			h.begins <- struct{}{}
			<-h.answer
		}
		return nil
	}))
}

// TestIntervalHoldsReplies: while a sync takes long, blocks are acknowledged until what is not
// synced is maxUnsynced old, and no longer; after it, the next sync comes at once, because what was
// acknowledged meanwhile is too old too.
func TestIntervalHoldsReplies(t *testing.T) {
	var disk heldDisk
	var book kit.Text
	var clock testClock
	s := mustOpen(t, Config{Dir: "d", Mode: journal.Interval, FS: disk.fs(), Logger: book.Logger()})
	s.window.mu.Lock()
	s.window.now = clock.now
	s.window.mu.Unlock()
	mustWrite(t, s, 1, 1, 100)
	disk.held.Store(true)
	synced := make(chan struct{})
	go func() { s.syncAndMark(); close(synced) }()
	<-disk.begins
	mustWrite(t, s, 2, 2, 100)
	clock.forward(maxUnsynced)
	mustWrite(t, s, 3, 3, 100) // at the limit
	clock.forward(1)
	if st := s.Stats(); st.Unsynced != maxUnsynced+1 || st.HeldBlocks != 0 {
		t.Errorf("unsynced for %v, %d blocks held", st.Unsynced, st.HeldBlocks)
	}
	acked := make(chan error, 1)
	go func() { acked <- s.WriteBlock(4, blockOf(4, 100)) }()
	for s.Stats().HeldBlocks == 0 {
		time.Sleep(time.Millisecond)
	}
	clock.forward(10 * time.Second)
	disk.answer <- struct{}{} // blocks 2 and 3 are not covered by this sync
	<-synced
	<-disk.begins // of the sync that the held block has asked for
	select {
	case err := <-acked:
		t.Fatalf("acknowledged while blocks of 12 s are not synced: %v", err)
	default:
	}
	if n := strings.Count(book.String(), "journal holds replies"); n != 1 {
		t.Errorf("%d lines that replies are held", n)
	}
	disk.held.Store(false)
	close(disk.answer)
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, 5, 5, 100)
	if !book.Has("journal acknowledges again") || s.Stats().HeldBlocks != 1 {
		t.Errorf("%d blocks held, log %s", s.Stats().HeldBlocks, book.String())
	}
	s.syncAndMark()
	clock.forward(time.Hour)
	mustWrite(t, s, 6, 6, 100) // nothing was unsynced: a quiet hour holds nothing up
	if st := s.Stats(); st.Unsynced != 0 || st.HeldBlocks != 1 {
		t.Errorf("unsynced for %v, %d blocks held", st.Unsynced, st.HeldBlocks)
	}
	mustClose(t, s)
}

// TestHeldBlockEndsWithTheStore: the end of the store ends the wait.
func TestHeldBlockEndsWithTheStore(t *testing.T) {
	var disk heldDisk
	var clock testClock
	s := mustOpen(t, Config{Dir: "d", Mode: journal.Interval, FS: disk.fs()})
	s.window.mu.Lock()
	s.window.now = clock.now
	s.window.mu.Unlock()
	mustWrite(t, s, 1, 1, 100)
	disk.held.Store(true)
	clock.forward(maxUnsynced + 1)
	acked := make(chan error, 1)
	go func() { acked <- s.WriteBlock(2, blockOf(2, 100)) }()
	<-disk.begins
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := <-acked; err == nil {
		t.Error("acknowledged by a store that ends")
	}
	disk.held.Store(false)
	close(disk.answer)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestSlowDiskIsLogged: an operation that the disk does not answer is logged once, in each mode,
// and so is its end.
func TestSlowDiskIsLogged(t *testing.T) {
	for _, mode := range bothModes {
		var disk heldDisk
		var book kit.Text
		s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: disk.fs(), Logger: book.Logger()})
		disk.held.Store(true)
		done := make(chan error, 1)
		go func() {
			err := s.WriteBlock(1, blockOf(1, 100))
			s.syncAndMark()
			done <- err
		}()
		<-disk.begins
		now := time.Now()
		s.fs.slow.look(now)
		if book.Has("slow disk") {
			t.Errorf("%s: logged at once", mode)
		}
		s.fs.slow.look(now.Add(6 * time.Second))
		s.fs.slow.look(now.Add(7 * time.Second))
		if n := strings.Count(book.String(), "journal waits for a slow disk"); n != 1 || !book.Has("operation=sync file=d/00") {
			t.Errorf("%s: %d lines: %s", mode, n, book.String())
		}
		disk.held.Store(false)
		close(disk.answer)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !book.Has("the disk has answered") {
			t.Errorf("%s: no line about the end", mode)
		}
		mustClose(t, s)
	}
}

func TestSlowDiskLimit(t *testing.T) {
	var book kit.Text
	d := diskWatch{log: book.Logger()}
	op := d.begin(opWrite, "f")
	d.look(op.since.Add(slowDiskAfter - 1))
	if book.Has("slow disk") {
		t.Error("logged before the limit")
	}
	d.look(op.since.Add(slowDiskAfter))
	if !book.Has("slow disk") {
		t.Error("not logged at the limit")
	}
	d.end(op)
	if n := testing.AllocsPerRun(100, func() { d.end(d.begin(opSync, "f")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
