package supervisor

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

// TestSupervisorsShareAMachine: their attempts together are within its limit, a place is kept for a
// delivery of any of them, and room that one gives back wakes those that wait for it before their
// next tick, which never comes here.
func TestSupervisorsShareAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parallel = 4
		shared := NewMachine(parallel, quiet)
		var jobs []*fakeJobs
		var all []*Supervisor
		for i := range 3 {
			f := newFakeJobs(t)
			for n := range parallel {
				f.enqueue(Job{TriggerID: fmt.Sprint("run", i, n), Kind: Spawn})
			}
			cfg := f.config(0)
			cfg.Machine = shared
			jobs, all = append(jobs, f), append(all, Start(cfg))
		}
		under := func() (n int) {
			synctest.Wait()
			for _, f := range jobs {
				f.mu.Lock()
				n += len(f.active)
				f.mu.Unlock()
			}
			return n
		}
		if n := under(); n != parallel-1 {
			t.Errorf("%d commands run, want %d", n, parallel-1)
		}
		for i, f := range jobs {
			f.enqueue(Job{TriggerID: fmt.Sprint("delivery", i)})
			all[i].Wake()
		}
		if n := under(); n != parallel {
			t.Errorf("%d attempts are under way, want %d", n, parallel)
		}
		for range 3*parallel + 3 {
			for _, f := range jobs {
				f.mu.Lock()
				for _, end := range f.active {
					end <- Outcome{}
					break
				}
				f.mu.Unlock()
			}
			if n := under(); n > parallel {
				t.Fatalf("%d attempts are under way, want at most %d", n, parallel)
			}
		}
		for i, f := range jobs {
			if len(f.due)+len(f.active) > 0 {
				t.Errorf("supervisor %d has %d jobs that wait, and %d that run", i, len(f.due), len(f.active))
			}
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, s := range all {
			s.Close(over)
		}
		if shared.attempts+shared.runs+shared.claims+len(shared.waiting) != 0 {
			t.Errorf("room is taken after the end: %+v", shared)
		}
	})
}

// TestAnUnusedClaimIsNoLimit: one that looks for room while another one claims is woken when that
// has left some.
func TestAnUnusedClaimIsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewMachine(2, quiet)
		slow := &slowJobs{fakeJobs: newFakeJobs(t), passed: make(chan struct{})}
		first, second := slow.config(0), newFakeJobs(t)
		first.Jobs, first.Machine = slow, shared
		other := second.config(0)
		other.Machine = shared
		a := Start(first)
		synctest.Wait() // it claims
		second.enqueue(Job{TriggerID: "delivery"})
		b := Start(other)
		synctest.Wait()
		if len(second.active) != 0 {
			t.Error("there is more room than the limit")
		}
		slow.passed <- struct{}{}
		synctest.Wait()
		if second.active["delivery"] == nil {
			t.Error("the delivery waits")
		}
		second.end("delivery", Outcome{})
		synctest.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		close(slow.passed)
		a.Close(over)
		b.Close(over)
	})
}
