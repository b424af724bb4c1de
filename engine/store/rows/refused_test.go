package rows

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
)

func reads(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpList, errorfs.OpStat, errorfs.OpFileStat:
		return true
	}
	return false
}

// TestRefusedReadsAreNotDamage: whatever the system refuses to read, its answer is returned, not
// damage, and nothing is lost by it.
func TestRefusedReadsAreNotDamage(t *testing.T) {
	image := history(t)
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO} {
		refused := 0
		for from := int64(0); ; from++ {
			fs, fault := cloneOf(t, image), &faulty{match: reads, err: errno, from: from}
			fault.n.Store(1)
			d, err := Open(Config{Dir: "d", FS: errorfs.Wrap(fs, fault)})
			n := 0
			if err == nil {
				err = d.Scan(nil, nil, false, func(_, _ []byte) bool { n++; return true })
				_, ok, also := d.Get(nil, keyOf(70))
				if also == nil && !ok {
					t.Errorf("read %d: a row is missing and no error", from)
				}
				err = errors.Join(err, also)
				mustClose(t, d)
			}
			var damage *journal.DamageError
			switch {
			case errors.As(err, &damage) || err != nil && !errors.Is(err, errno):
				t.Errorf("read %d is refused with %v", from, err)
			case err == nil && n != 90:
				t.Errorf("read %d: %d rows and no error", from, n)
			case err != nil:
				refused++
			}
			d = mustOpen(t, Config{Dir: "d", FS: fs})
			wantRows(t, d, 90, 3000)
			mustClose(t, d)
			if fault.given.Load() == 0 {
				break
			}
		}
		if refused == 0 {
			t.Error("no read was refused")
		}
	}
}
