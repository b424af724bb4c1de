package store

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEpoch: wait lasts as long as those who came before, and not for those who come after.
func TestEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g epoch
		g.wait()
		for range 3 { // both phases
			early := g.enter()
			var over atomic.Bool
			go func() { g.wait(); over.Store(true) }()
			if time.Sleep(10 * epochPause); over.Load() {
				t.Fatal("over while somebody is inside")
			}
			late := g.enter()
			g.leave(early)
			for !over.Load() {
				time.Sleep(epochPause)
				g.leave(g.enter()) // who comes and goes holds nothing up
			}
			g.leave(late)
		}
	})
}

// TestEpochUnderLoad: what was done inside is seen after the wait.
func TestEpochUnderLoad(t *testing.T) {
	var g epoch
	var begun, ended atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ticket := g.enter()
				begun.Add(1)
				ended.Add(1)
				g.leave(ticket)
			}
		})
	}
	for range 200 {
		before := begun.Load()
		g.wait()
		if ended.Load() < before {
			t.Fatal("somebody who had begun before the wait has not ended after it")
		}
	}
	close(stop)
	wg.Wait()
}
