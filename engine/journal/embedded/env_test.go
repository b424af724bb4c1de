package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

var bothModes = []journal.Mode{journal.Always, journal.Interval}

// someModes are bothModes, or with -short one of them, for what opens many stores: that is slow
// under the race detector.
func someModes() []journal.Mode {
	if testing.Short() {
		return bothModes[:1]
	}
	return bothModes
}

// inTurn returns a function that returns bothModes in the long form, and else one of them, in turn.
func inTurn() func() []journal.Mode {
	i := 0
	return func() []journal.Mode {
		if rounds.Long() {
			return bothModes
		}
		i++
		return bothModes[i%2 : i%2+1]
	}
}

// never is an interval in which nothing ticks during a test: the tests tick themselves.
const never = 24 * time.Hour

// plenty is a disk that is never full.
func plenty() (uint64, error) { return 1 << 40, nil }

func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustOwn opens a store, and its directory for writing, as the first change does.
func mustOwn(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := mustOpen(t, cfg)
	if err := s.own(); err != nil {
		t.Fatal(err)
	}
	return s
}

func quiet(cfg Config) Config {
	if cfg.FreeBytes == nil {
		cfg.FreeBytes = plenty
	}
	if cfg.SyncEvery == 0 {
		cfg.SyncEvery = never
	}
	return cfg
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// blockOf is a block of n bytes that only index first has, and that shows any changed byte.
func blockOf(first journal.Index, n int) []byte {
	b := make([]byte, max(n, 12))
	binary.LittleEndian.PutUint64(b, first)
	x := first*0x9e3779b97f4a7c15 | 1
	for i := 8; i < len(b)-4; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

func checkBlock(first journal.Index, b []byte) error {
	if len(b) < 12 || binary.LittleEndian.Uint64(b) != first {
		return fmt.Errorf("block %d: not its own", first)
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return fmt.Errorf("block %d: changed", first)
	}
	return nil
}

func mustWrite(t testing.TB, s *Store, from, to journal.Index, size int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := s.WriteBlock(i, blockOf(i, size)); err != nil {
			t.Fatal(err)
		}
	}
}

// prefixOf reads all blocks, which must be 1, 2, 3 ... as written, and returns the last.
func prefixOf(s *Store) (last journal.Index, err error) {
	err = s.Blocks(0, func(first journal.Index, block []byte) error {
		if first != last+1 {
			return fmt.Errorf("block %d after block %d", first, last)
		}
		last = first
		return checkBlock(first, block)
	})
	return last, err
}

func wantPrefix(t testing.TB, s *Store, want journal.Index) {
	t.Helper()
	if got, err := prefixOf(s); err != nil || got != want {
		t.Fatalf("blocks up to %d (%v), want %d", got, err, want)
	}
}

// copyDir copies the files of a directory that may be in use, as a crash of the process would leave
// them.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	if ok, err := vfs.Clone(vfs.Default, vfs.Default, from, to+"/copy"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return to + "/copy"
}

// addRows puts files into a journal's directory as engine/store/rows does.
func addRows(t testing.TB, dir string) {
	t.Helper()
	err := os.Mkdir(filepath.Join(dir, RowsDir), 0o700)
	for _, name := range []string{"LOCK", "ROWS", "000002.log", "000004.sst", "MANIFEST-000001", "marker.manifest.000001.MANIFEST-000001"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, RowsDir, name), []byte("rows "+name), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		runChild(dir, os.Getenv(childMode))
	}
	kit.Leaks(m)
}
