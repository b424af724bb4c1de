package memdisk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestClonesDoNotMeetLinks: no one waits for ever, and each clone is a disk.
func TestClonesDoNotMeetLinks(t *testing.T) {
	d := New()
	f, err := d.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var links sync.WaitGroup
	for w := range 2 {
		links.Go(func() {
			for i := range 5000 {
				name := fmt.Sprint("b", w, "-", i)
				if err := d.Link("a", name); err != nil {
					t.Error(err)
					return
				}
				if f, err := d.ReuseForWrite(name, name+"x", vfs.WriteCategoryUnspecified); err != nil || f.Close() != nil || d.Remove(name+"x") != nil {
					t.Error("cannot reuse", name, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { links.Wait(); close(done) }()
	for n := uint64(0); ; n++ {
		select {
		case <-done:
			if n == 0 {
				t.Error("no clone was taken")
			}
			return
		default:
			clone := d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(n, 1))})
			if _, err := clone.Stat("a"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
