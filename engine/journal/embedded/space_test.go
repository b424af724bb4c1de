package embedded

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/fuzz/kit"
)

func TestFreeSpace(t *testing.T) {
	var book kit.Text
	var free uint64
	var failing error
	var s space
	s.init(func() (uint64, error) { return free, failing }, book.Logger())
	f := func(bytes uint64, want bool) {
		t.Helper()
		free = bytes
		s.look(time.Now())
		if s.full() != want {
			t.Fatalf("full is %v with %d bytes free", s.full(), bytes)
		}
	}
	f(MinFreeBytes, false)
	f(MinFreeBytes-1, true)
	f(MinFreeBytes, true)
	f(2*MinFreeBytes-1, true)
	failing = errors.New("statfs")
	f(1<<50, true)
	f(0, true)
	failing = nil
	f(2*MinFreeBytes, false)
	f(MinFreeBytes, false)
	if n := strings.Count(book.String(), "nothing new is accepted"); n != 1 {
		t.Errorf("said %d times that it is full", n)
	}
	if n := strings.Count(book.String(), "cannot watch"); n != 1 {
		t.Errorf("said %d times that it cannot watch", n)
	}
}

// TestFilesThatCannotBeWritten: a flush that fails for another reason than a full disk is not
// called that.
func TestFilesThatCannotBeWritten(t *testing.T) {
	for err, want := range map[error]bool{syscall.EMFILE: true, syscall.EIO: true, syscall.ENOSPC: false, syscall.EDQUOT: false} {
		book := new(kit.Text)
		var s space
		s.init(plenty, book.Logger())
		s.cause.Store(&err)
		s.set(flushFailing, err)
		if !s.full() || s.broken() != want || book.Has("journal is full") == want {
			t.Errorf("%v: full %v, broken %v: %s", err, s.full(), s.broken(), book.String())
		}
		if s.clear(flushFailing); s.full() || s.broken() {
			t.Errorf("%v: it has passed", err)
		}
	}
}

func TestLongStallIsFull(t *testing.T) {
	var s space
	s.init(plenty, new(kit.Text).Logger())
	s.stallBegins("test")
	s.look(time.Now())
	if s.full() {
		t.Fatal("full at once: a short wait for a flush is common")
	}
	s.look(time.Now().Add(stallGrace))
	if !s.full() {
		t.Fatal("not full after a long stall")
	}
	s.set(flushFailing, "test")
	s.stallEnds()
	if !s.full() {
		t.Fatal("the end of the stall has hidden the failing flush")
	}
	s.clear(flushFailing)
	if s.full() {
		t.Fatal("full for no reason")
	}
}

// TestFlushFails: SSTables find no room, the log does. Full reports it, memory is bounded,
// nothing hangs, and with room again the store goes on.
func TestFlushFails(t *testing.T) {
	for _, mode := range bothModes {
		var noRoom atomic.Bool
		var files atomic.Int64
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			sorted := strings.HasSuffix(op.Path, ".sst") || strings.HasSuffix(op.Path, ".chunks")
			if op.Kind == errorfs.OpCreate && sorted && noRoom.Load() {
				files.Add(1)
				return syscall.ENOSPC
			}
			return nil
		}))
		s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: fs, StallTimeout: 50 * time.Millisecond})
		mustWrite(t, s, 1, 3, 100)
		noRoom.Store(true)
		w, err := s.BeginSnapshot(1)
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(w.Write([]byte("chunk")), w.Commit(nil)); !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("commit: %v", err)
		}
		if s.Full() {
			t.Fatal("full: blocks find room yet")
		}
		if err := s.flush(); !errors.Is(err, ErrFull) || !s.Full() {
			t.Fatalf("not full: %v", err)
		}
		var i uint64 = 3
		for err = nil; err == nil && i < 1000; {
			if err = s.WriteBlock(i+1, blockOf(i+1, 200<<10)); err == nil {
				i++
			}
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("block %d: %v", i+1, err)
		}
		if used := s.Stats().MemTableBytes; used > (memTables+1)*memTableBytes {
			t.Fatalf("%d bytes in memory", used)
		}
		noRoom.Store(false)
		if err := w.Abort(); err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if err := s.flush(); err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		for s.Full() { // the next try of the flush
			time.Sleep(time.Millisecond)
		}
		mustWrite(t, s, i+1, i+3, 200<<10)
		wantPrefix(t, s, i+3)
		mustClose(t, s)
	}
}

// TestWriteAmplification: blocks and snapshots of a busy journal are not merged again and again.
func TestWriteAmplification(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 80 MB")
	}
	s := mustOpen(t, Config{Dir: "d", FS: vfs.NewMem()})
	defer mustClose(t, s)
	var written uint64
	for i := uint64(1); i <= 800; i++ {
		mustWrite(t, s, i, i, 100<<10)
		written += 100 << 10
		if i%200 != 0 {
			continue
		}
		writeSnapshot(t, s, i, 100)
		written += 100 * 20000
		if i > 200 {
			if err := errors.Join(s.DropSnapshot(i-200), s.DropBlocks(i-200)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	st := s.Stats()
	t.Logf("%d MB written, %d flushed, %d merged, %d tables of %d MB", written>>20, st.FlushedBytes>>20, st.CompactedBytes>>20, st.Tables, st.TableBytes>>20)
	if st.CompactedBytes > written {
		t.Errorf("%d bytes were merged for %d written", st.CompactedBytes, written)
	}
	for s.Stats().TableBytes > written/2 { // half of it was dropped
		time.Sleep(time.Millisecond)
	}
}
