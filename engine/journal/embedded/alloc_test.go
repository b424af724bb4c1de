//go:build !race

package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWriteBlockAllocations: the sync of a group may wake goroutines of pebble that allocate; the
// block itself must not.
func TestWriteBlockAllocations(t *testing.T) {
	for _, mode := range bothModes {
		s := mustOpen(t, Config{Dir: t.TempDir(), Mode: mode})
		block := blockOf(1, 4000)
		i := uint64(0)
		write := func() {
			i++
			if err := s.WriteBlock(i, block); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			write()
		}
		if n := testing.AllocsPerRun(200, write); n > 0 {
			t.Errorf("%s: %.2f allocations per block", mode, n)
		}
		mustClose(t, s)
	}
}

// BenchmarkWriteBlock: what does a block of 64 records of 300 bytes cost, beside the sync of the
// disk?
func BenchmarkWriteBlock(b *testing.B) {
	for _, mode := range bothModes {
		for _, fs := range []struct {
			name string
			fs   vfs.FS
		}{{"disk", nil}, {"memory", vfs.NewMem()}} {
			b.Run(mode.String()+"/"+fs.name, func(b *testing.B) {
				cfg := Config{Dir: b.TempDir(), Mode: mode, FS: fs.fs}
				s := mustOpen(b, cfg)
				defer s.Close()
				block := blockOf(1, 64*300)
				b.SetBytes(int64(len(block)))
				b.ReportAllocs()
				last := s.last.Load()
				for i := range b.N {
					if err := s.WriteBlock(last+uint64(i)+1, block); err != nil {
						b.Fatal(err)
					}
					if i%5000 == 4999 {
						if err := s.DropBlocks(last + uint64(i)); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
