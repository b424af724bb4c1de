package crash

import (
	"os"
	"sync"
	"sync/atomic"
)

// A kill shows what a reply ran ahead of only if there is time between the two. So half of the
// servers have one processor, where the part that answers goes before the part that writes the
// journal, and in half of the rounds the disk is busy, so that changes wait for it.

// oneProcessor is in the environment of half of the servers.
const oneProcessor = "GOMAXPROCS=1"

// syncers is how many files are written beside the journal when the disk is to be busy.
const syncers = 2

// occupyDisk keeps the disk of the directory busy until calm is called.
func (g *game) occupyDisk() (calm func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range syncers {
		wg.Go(func() {
			if err := syncing(g.temp, &stop); err != nil {
				g.fault("cannot keep the disk busy: %v", err)
			}
		})
	}
	return func() {
		stop.Store(true)
		wg.Wait()
	}
}

// syncing writes and syncs a page at a time, at the same place again and again.
func syncing(dir string, stop *atomic.Bool) error {
	f, err := os.CreateTemp(dir, "busy-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4<<10)
	for at := int64(0); !stop.Load(); at += int64(len(page)) {
		if at == 1<<20 {
			at = 0
			if err := f.Truncate(0); err != nil {
				return err
			}
		}
		if _, err := f.WriteAt(page, at); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
