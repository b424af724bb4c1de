package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"

	"trunkline/engine/journal"
)

// TestTableFormat: SSTables have rows, in each mode.
func TestTableFormat(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		s, err := Open(Config{Dir: t.TempDir(), Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		if f := s.db.TableFormat(); f != sstable.TableFormatPebblev4 {
			t.Errorf("mode %s: %s", mode, f)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
