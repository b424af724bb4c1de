package embedded

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
)

// TestFailedJobsAreForgotten: what a failed flush or compaction has refused is accepted again once
// a job of its kind succeeds. A flush that succeeds stands for both: it writes files too.
func TestFailedJobsAreForgotten(t *testing.T) {
	s := mustOwn(t, quiet(Config{Dir: "d", Mode: journal.Always, FS: memdisk.New()}))
	defer mustClose(t, s)
	l := s.listener()
	compaction := func(err error) {
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
	f := func(what string, full, broken bool) {
		t.Helper()
		if s.Full() != full || s.Broken() != broken {
			t.Errorf("%s: full %v, broken %v", what, s.Full(), s.Broken())
		}
	}
	f("at the beginning", false, false)
	compaction(syscall.ENOSPC)
	f("a compaction without room", true, false)
	compaction(pebble.ErrCancelledCompaction)
	f("one that was cancelled behind it", true, false)
	compaction(nil)
	f("one that succeeds", false, false)
	compaction(syscall.EIO)
	f("one that cannot write", true, true)
	flush(nil)
	f("a flush that succeeds behind it", false, false)
	flush(syscall.ENOSPC)
	compaction(nil)
	f("a flush without room, and a compaction that succeeds", true, false)
	flush(nil)
	f("the next flush", false, false)
	l.CompactionEnd(pebble.CompactionInfo{Done: true, Err: syscall.EIO}) // pebble reports no error of some
	flush(syscall.ENOSPC)
	compaction(nil)
	f("a flush without room behind a compaction that was not reported", true, false)
}
