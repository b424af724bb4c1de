package embedded

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/rounds"
)

// largeChunks of journal.MaxChunkBytes are two files.
const largeChunks = chunkFileBytes/journal.MaxChunkBytes + 2

// sparseBlock is a blockOf that takes no time to make: mostly zeros.
func sparseBlock(first journal.Index, n int) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint64(b, first)
	binary.LittleEndian.PutUint32(b[n-4:], crc32.Checksum(b[:n-4], castagnoli))
	return b
}

// tryLarge writes a snapshot of two files, up to Commit.
func tryLarge(s *Store, g uint64) (journal.SnapshotWriter, error) {
	w, err := s.BeginSnapshot(g)
	for i := range largeChunks {
		if err == nil {
			err = w.Write(sparseBlock(g<<8+uint64(i), journal.MaxChunkBytes))
		}
	}
	return w, err
}

func writeLarge(t testing.TB, s *Store, g uint64) {
	t.Helper()
	w, err := tryLarge(s, g)
	if err == nil {
		err = w.Commit([]byte("meta"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wantSnapshots reads all snapshots, which must be those of the numbers, and looks that there is
// nothing else of one.
func wantSnapshots(t testing.TB, s *Store, chunks int, numbers ...uint64) {
	t.Helper()
	list, err := s.ListSnapshots()
	if err != nil || len(list) != len(numbers) {
		t.Fatalf("generations %v (%v), want %v", list, err, numbers)
	}
	for i, g := range list {
		if g.Number != numbers[i] {
			t.Fatalf("generations %v, want %v", list, numbers)
		}
		if err := checkSnapshot(s, g, chunks); err != nil {
			t.Fatal(err)
		}
	}
	wantChunks(t, s, chunks*len(numbers))
	if names, err := s.cfg.FS.List(s.incomingPath()); err == nil && len(names) > 0 {
		t.Fatalf("still incoming: %v", names)
	}
	if got := s.Stats().IncomingBytes; got != 0 {
		t.Fatalf("%d bytes are counted as incoming", got)
	}
}

func wantChunks(t testing.TB, s *Store, want int) {
	t.Helper()
	lower, upper := keyRange(kindChunk, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for ok := it.First(); ok; ok = it.Next() {
		if binary.BigEndian.Uint32(it.Key()[numberLen:]) != metaSeq {
			got++
		}
	}
	if err := it.Close(); err != nil || got != want {
		t.Fatalf("%d chunks in the database (%v), want %d", got, err, want)
	}
}

// TestSnapshotIsNotInTheLog: a snapshot of several files, written beside blocks, checkpoints and
// statistics, is whole, and the log and the memory before the files have seen nothing of it.
func TestSnapshotIsNotInTheLog(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: t.TempDir(), Mode: mode, SnapshotRate: -1}
		s := mustOwn(t, cfg)
		mustWrite(t, s, 1, 1, 100)
		stop := make(chan struct{})
		var beside sync.WaitGroup
		last := journal.Index(1)
		beside.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.WriteBlock(last+1, blockOf(last+1, 500)); err != nil {
					t.Error(err)
					return
				}
				last++
			}
		})
		beside.Go(func() {
			for s.Stats().IngestedBytes == 0 {
				time.Sleep(time.Millisecond)
			}
		})
		writeLarge(t, s, 1)
		writeLarge(t, s, 2)
		close(stop)
		beside.Wait()
		m := s.db.Metrics()
		if logged := m.WAL.BytesWritten; logged > 2*last*500+largeChunks*journal.MaxChunkBytes/2 {
			t.Errorf("%s: %d bytes in the log after %d blocks of 500", mode, logged, last)
		}
		if got := s.Stats().IngestedBytes; got < 2*largeChunks*journal.MaxChunkBytes {
			t.Errorf("%s: %d bytes were ingested", mode, got)
		}
		wantSnapshots(t, s, largeChunks, 1, 2)
		mustClose(t, s)
		s = mustOwn(t, cfg)
		wantPrefix(t, s, last)
		wantSnapshots(t, s, largeChunks, 1, 2)
		mustClose(t, s)
	}
}

// TestDroppedSnapshotGivesItsRoomBack, without anything being written again.
func TestDroppedSnapshotGivesItsRoomBack(t *testing.T) {
	s := mustOwn(t, Config{Dir: "d", FS: vfs.NewMem(), SnapshotRate: -1})
	defer mustClose(t, s)
	for g := uint64(1); g <= 6; g++ {
		mustWrite(t, s, g, g, 1000)
		writeLarge(t, s, g)
		if g > 2 {
			if err := errors.Join(s.DropSnapshot(g-2), s.DropBlocks(g-2)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.flush(); err != nil { // as pebble does after reclaimAfter
			t.Fatal(err)
		}
		for s.Stats().TableBytes > 2*(largeChunks+2)*journal.MaxChunkBytes {
			time.Sleep(time.Millisecond)
		}
	}
	if st := s.Stats(); st.CompactedBytes > journal.MaxChunkBytes {
		t.Errorf("%d bytes were written again", st.CompactedBytes)
	}
	wantSnapshots(t, s, largeChunks, 5, 6)
}

// TestSnapshotBeginsAgain: whatever of a number was there before, in files or in memory, is not in
// the snapshot.
func TestSnapshotBeginsAgain(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: "d", Mode: mode, FS: vfs.NewMem()}
		s := mustOwn(t, cfg)
		begin := func(g uint64, chunks int) *snapshotWriter {
			t.Helper()
			w, err := s.BeginSnapshot(g)
			for range chunks {
				err = errors.Join(err, w.Write([]byte("of another life")))
			}
			if err != nil {
				t.Fatal(err)
			}
			return w.(*snapshotWriter)
		}
		writeSnapshot(t, s, 3, 9)
		if err := s.DropSnapshot(3); err != nil {
			t.Fatal(err)
		}
		writeSnapshot(t, s, 3, 5)
		half := begin(4, 9)
		if err := errors.Join(half.finish(), half.ingest()); err != nil {
			t.Fatal(err)
		}
		wantChunks(t, s, 5+9)
		if err := half.Abort(); err != nil {
			t.Fatal(err)
		}
		wantSnapshots(t, s, 5, 3)
		writeSnapshot(t, s, 4, 5)
		wantSnapshots(t, s, 5, 3, 4)

		old := begin(6, 3)
		writeSnapshot(t, s, 5, 5)
		if err := old.Write([]byte("late")); err == nil {
			t.Error("two generations at a time")
		}
		dropped := begin(6, 1)
		if err := s.DropSnapshot(6); err != nil || dropped.Commit(nil) == nil {
			t.Error("a dropped generation was committed", err)
		}
		half = begin(6, 9)
		if err := errors.Join(half.finish(), half.ingest()); err != nil {
			t.Fatal(err)
		}
		s.fs.fail(errors.New("the machine is gone"))
		_ = s.Close()
		s = mustOwn(t, cfg)
		wantSnapshots(t, s, 5, 3, 4, 5)
		writeSnapshot(t, s, 6, 5)
		wantSnapshots(t, s, 5, 3, 4, 5, 6)
		mustClose(t, s)
	}
}

// TestSnapshotFindsNoRoom at each operation on its files in turn: the snapshot fails, and nothing
// else does.
func TestSnapshotFindsNoRoom(t *testing.T) {
	step := int64(rounds.Step(20, 16))
	for _, mode := range someModes() {
		fault := &faulty{err: syscall.ENOSPC, n: -1, from: 1 << 40, match: func(op errorfs.Op) bool {
			// Where a link fails, pebble tries a copy, in the directory of the database.
			return takesSpace(op) && op.Kind != errorfs.OpLink && strings.Contains(op.Path, incomingDir)
		}}
		s := mustOwn(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(vfs.NewMem(), fault), SnapshotRate: -1, OnFatal: func(err error) { t.Error(err) }})
		failed := 0
		for from := int64(0); ; from += step {
			fault.seen.Store(0)
			fault.given.Store(0)
			fault.from = from
			w, err := tryLarge(s, 1)
			if err == nil {
				err = w.Commit([]byte("meta"))
			}
			fault.from = 1 << 40
			mustWrite(t, s, uint64(from)+1, uint64(from)+1, 100)
			if fault.given.Load() == 0 {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			failed++
			if !errors.Is(err, ErrFull) || s.Full() {
				t.Fatalf("fault %d: %v, full %v", from, err, s.Full())
			}
			if w != nil {
				if err := w.Abort(); err != nil {
					t.Fatalf("fault %d: abort: %v", from, err)
				}
			}
			wantSnapshots(t, s, 0)
		}
		if failed < largeChunks/int(step) {
			t.Fatalf("%d faults", failed)
		}
		wantSnapshots(t, s, largeChunks, 1)
		mustClose(t, s)
	}
}

// TestNothingIsIngestedAfterAFailure: a sync that failed is the end of everything, also where it is
// that of a chunk.
func TestNothingIsIngestedAfterAFailure(t *testing.T) {
	f := func(name string, mode journal.Mode, fail func(s *Store, fault *faulty)) {
		t.Helper()
		mem := vfs.NewMem()
		fault := &faulty{err: syscall.EIO, n: 1, from: 1 << 40, match: func(op errorfs.Op) bool {
			return isSync(op) && strings.Contains(op.Path, incomingDir)
		}}
		fatal := 0
		s := mustOwn(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(mem, fault), SnapshotRate: -1, OnFatal: func(error) { fatal++ }})
		mustWrite(t, s, 1, 5, 100)
		w, err := tryLarge(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		fail(s, fault)
		if err := w.Commit([]byte("meta")); !errors.Is(err, fault.err) || fatal != 1 {
			t.Errorf("%s: commit: %v, %d times fatal", name, err, fatal)
		}
		if err := s.WriteBlock(6, blockOf(6, 10)); !errors.Is(err, fault.err) {
			t.Errorf("%s: a block after it: %v", name, err)
		}
		if got := s.Stats().IngestedBytes; got != 0 {
			t.Errorf("%s: %d bytes were ingested", name, got)
		}
		if err := s.Close(); !errors.Is(err, fault.err) {
			t.Errorf("%s: close: %v", name, err)
		}
		s = mustOwn(t, Config{Dir: "d", Mode: mode, FS: mem})
		wantPrefix(t, s, 5)
		wantSnapshots(t, s, 0)
		mustClose(t, s)
	}
	for _, mode := range bothModes {
		f("sync of a chunk", mode, func(_ *Store, fault *faulty) { fault.from = fault.seen.Load() })
		f("the log", mode, func(s *Store, fault *faulty) { s.fs.fail(fault.err) })
	}
}

func TestEndFile(t *testing.T) {
	f := func(start, end string) {
		t.Helper()
		if _, got, err := endFile([]byte(start)); string(got) != end || err != nil {
			t.Errorf("%q ends at %q (%v), want %q", start, got, err, end)
		}
	}
	f(string(appendKey(nil, kindBlock, 0, 7)), "c")
	f(string(appendChunkKey(nil, 0, 7, 1)), string(after(appendKey(nil, kindChunk, 0, 7))))
	f(string(appendKey(nil, kindChunk, 0, 7)), string(after(appendKey(nil, kindChunk, 0, 7))))
	f(string(appendKey(nil, kindMeta, 0, 7)), "n")
	f("c", "d")
}

func TestPacer(t *testing.T) {
	start := time.Unix(1000, 0)
	p := pacer{rate: 1000}
	f := func(at time.Duration, n int, want time.Duration) {
		t.Helper()
		if got := p.delay(start.Add(at), n); got != want {
			t.Errorf("%d bytes at %v wait %v, want %v", n, at, got, want)
		}
	}
	f(0, 100, 0)
	f(0, 100, 100*time.Millisecond)
	f(100*time.Millisecond, 500, 100*time.Millisecond)
	f(700*time.Millisecond, 100, 0)
	f(5*time.Second, 100, 0) // the pause gives no credit
	f(5*time.Second, 100, 100*time.Millisecond)
	p = pacer{rate: -1}
	f(0, 1<<30, 0)
	f(0, 1<<30, 0)
}
