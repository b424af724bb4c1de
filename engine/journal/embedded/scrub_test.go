package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestScrub: no file has a block that was dropped before a Scrub, those that are kept for reuse
// included; what follows is kept.
func TestScrub(t *testing.T) {
	for _, mode := range bothModes {
		dir := t.TempDir()
		s := mustOpen(t, Config{Dir: dir, Mode: mode})
		text := bytes.Repeat([]byte("5ecretText"), 10)
		holders := func() (names []string) {
			all, err := filepath.Glob(dir + "/*")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range all {
				if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, text) {
					names = append(names, filepath.Base(name))
				}
			}
			return names
		}
		for i := uint64(1); i <= 3; i++ {
			if err := s.WriteBlock(i, text); err != nil {
				t.Fatal(err)
			}
			if err := s.flush(); err != nil { // there is a file of each, and logs for reuse
				t.Fatal(err)
			}
		}
		if len(holders()) == 0 {
			t.Fatal("it tests nothing")
		}
		mustWrite(t, s, 4, 4, 100)
		if err := s.DropBlocks(4); err != nil {
			t.Fatal(err)
		}
		if err := s.Scrub(); err != nil {
			t.Fatal(err)
		}
		if names := holders(); len(names) > 0 {
			t.Errorf("%v: %v have it", mode, names)
		}
		mustWrite(t, s, 5, 30, 3000)
		mustClose(t, s)
		s = mustOpen(t, Config{Dir: dir, Mode: mode})
		last := uint64(3)
		if err := s.Blocks(0, func(first uint64, block []byte) error {
			last++
			return checkBlock(last, block)
		}); err != nil || last != 30 {
			t.Errorf("%v: %d, %v", mode, last, err)
		}
		mustClose(t, s)
	}
}
