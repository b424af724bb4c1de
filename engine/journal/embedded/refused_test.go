package embedded

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
)

// onDisk is a closed or crashed store in memory: two SSTables, a snapshot, and blocks that only
// the log has.
func onDisk(t *testing.T, mode journal.Mode) vfs.FS {
	t.Helper()
	mem := vfs.NewMem()
	s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: mem})
	mustWrite(t, s, 1, 20, 1000)
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	writeSnapshot(t, s, 1, 5)
	mustWrite(t, s, 21, 40, 1000)
	s.syncAndMark()
	after := cloneOf(t, mem)
	mustClose(t, s)
	return after
}

func cloneOf(t *testing.T, disk vfs.FS) vfs.FS {
	t.Helper()
	after := vfs.NewMem()
	if ok, err := vfs.Clone(disk, after, "d", "d"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return after
}

func reads(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpList, errorfs.OpStat, errorfs.OpFileStat:
		return true
	}
	return false
}

// readAll reads everything that is in a store, or in a view.
func readAll(s journal.Store) (last journal.Index, err error) {
	err = s.Blocks(0, func(first journal.Index, b []byte) error { last = first; return checkBlock(first, b) })
	if err == nil {
		err = s.ReadSnapshot(1, func([]byte) error { return nil })
	}
	return last, err
}

// TestRefusedReadsAreNotDamage: whatever the system refuses to read, a start and an inspection name
// the system's answer and never damage, and what they give up is there afterwards.
func TestRefusedReadsAreNotDamage(t *testing.T) {
	open := func(fs vfs.FS) (journal.Store, error) { return Open(quiet(Config{Dir: "d", FS: fs})) }
	look := func(fs vfs.FS) (journal.Store, error) { return Inspect(Config{Dir: "d", FS: fs}) }
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO} {
		for name, start := range map[string]func(vfs.FS) (journal.Store, error){"open": open, "inspect": look} {
			t.Run(name+" "+strings.ReplaceAll(errno.Error(), "/", " "), func(t *testing.T) { testRefusedReads(t, errno, start) })
		}
	}
}

func testRefusedReads(t *testing.T, errno syscall.Errno, start func(vfs.FS) (journal.Store, error)) {
	refused, image := 0, onDisk(t, journal.Always)
	for from := int64(0); ; from++ {
		disk := cloneOf(t, image)
		fault := &faulty{match: reads, err: errno, from: from, n: 1}
		var last journal.Index
		s, err := start(errorfs.Wrap(disk, fault))
		if err == nil {
			last, err = readAll(s)
			_ = s.Close()
		}
		var damage *journal.DamageError
		switch {
		case fault.given.Load() == 0:
			if err != nil || last != 40 || refused == 0 {
				t.Fatalf("no fault: blocks up to %d, %d refused: %v", last, refused, err)
			}
			t.Logf("%d reads, %d refused", from, refused)
			return
		case errors.As(err, &damage):
			t.Errorf("read %d is called damage: %v", from, err)
		case err != nil && !errors.Is(err, errno):
			t.Errorf("read %d is refused with %v", from, err)
		case err != nil:
			refused++
		case last != 40:
			t.Errorf("read %d: blocks up to %d and no error", from, last)
		}
		s = mustOpen(t, Config{Dir: "d", FS: disk})
		if last, err := readAll(s); err != nil || last != 40 {
			t.Fatalf("after read %d: blocks up to %d: %v", from, last, err)
		}
		_ = s.Close()
	}
}

// changes matches everything that writes.
func changes(op errorfs.Op) bool {
	return takesSpace(op) || op.Kind == errorfs.OpRemove
}

// TestRefusedStartEnds: whatever the system refuses to write from some moment of a start on, the
// start ends with the system's answer, which is not called damage and ends no process; and with the
// answer gone everything is there.
func TestRefusedStartEnds(t *testing.T) {
	for _, mode := range someModes() {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EACCES, syscall.EROFS} {
			t.Run(mode.String()+" "+errno.Error(), func(t *testing.T) { testRefusedStart(t, mode, errno) })
		}
	}
}

func testRefusedStart(t *testing.T, mode journal.Mode, errno syscall.Errno) {
	refused, image := 0, onDisk(t, mode)
	for from := int64(0); ; from++ {
		disk := cloneOf(t, image)
		fault := &faulty{match: changes, err: errno, from: from, n: -1}
		fatal := 0
		s, err := Open(quiet(Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(disk, fault), OnFatal: func(error) { fatal++ }}))
		if err == nil {
			err = s.own()
		}
		met := fault.given.Load() > 0
		if s != nil {
			_ = s.Close()
		}
		var damage *journal.DamageError
		switch {
		case err == nil && !met:
			if refused == 0 {
				t.Fatal("no write was refused")
			}
			t.Logf("%d writes, %d refused", from, refused)
			return
		case errors.As(err, &damage):
			t.Errorf("write %d is called damage: %v", from, err)
		case err != nil && (!errors.Is(err, errno) || errors.Is(err, ErrFull) != (errno == syscall.ENOSPC)):
			t.Errorf("write %d is refused with %v", from, err)
		case err != nil:
			refused++
		}
		if err != nil && fatal > 0 {
			t.Errorf("write %d: the opening failed, and OnFatal was called", from)
		}
		s = mustOpen(t, Config{Dir: "d", Mode: mode, FS: disk})
		if last, err := readAll(s); err != nil || last != 40 {
			t.Fatalf("after write %d: blocks up to %d: %v", from, last, err)
		}
		mustClose(t, s)
	}
}
