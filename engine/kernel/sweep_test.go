package kernel

import (
	"fmt"
	"testing"
	"time"
)

func (r *rig) sweep(want string) {
	r.t.Helper()
	z, n, l := r.k.Sweep(r.now)
	r.want("sweep", fmt.Sprintf("zombied %d removed %d logs %d", z, n, l), want)
}

// TestSweep is kernel-ipc §5.3: both steps in one sweep, by completion, strictly older than the
// retention.
func TestSweep(t *testing.T) {
	r := newRig(t, Config{ProcessRetention: time.Minute, Defaults: unlimited()})
	r.mk("live", Running)
	r.mk("a", Terminated)
	r.mk("z", Terminated, Zombie)
	r.after(time.Second)
	r.mk("b", Terminated)
	r.takeEvents()
	r.after(59 * time.Second)
	r.sweep("zombied 0 removed 0 logs 0") // a is exactly as old as the retention
	r.after(time.Millisecond)
	r.sweep("zombied 1 removed 2 logs 0")
	r.want("counts", r.counts(), "RUNNING:1 TERMINATED:1 total:2 queue:0")
	r.want("no events", r.takeEvents(), "")
	r.want("a", r.state("a"), "not found")
	r.mk("a") // the pid is free again
	r.after(time.Hour)
	r.sweep("zombied 1 removed 1 logs 3") // all but that of a, used again later
	r.want("counts", r.counts(), "READY:1 RUNNING:1 total:2 queue:1")
}

func TestSweepInBatches(t *testing.T) {
	r := newRig(t, Config{ProcessRetention: time.Second, Defaults: unlimited()})
	for n := range 2*sweepBatch + 1 {
		r.mk(fmt.Sprint("p", n), Terminated)
	}
	r.after(2 * time.Second)
	r.sweep(fmt.Sprintf("zombied %d removed %d logs 0", 2*sweepBatch+1, 2*sweepBatch+1))
	r.want("counts", r.counts(), "total:0 queue:0")
	r.after(time.Hour)
	r.sweep(fmt.Sprintf("zombied 0 removed 0 logs %d", 2*sweepBatch+1))
}

// TestSweepLogs: a log goes when its newest stamp is older than an hour; peeks and refusals do not
// keep it.
func TestSweepLogs(t *testing.T) {
	q := unlimited()
	q[RateLimitBurst] = 1
	r := newRig(t, Config{Defaults: q})
	for i := range 20000 { // several batches per shard
		r.k.CheckRate(r.now, []byte(fmt.Sprint("u", i)), true)
	}
	r.after(time.Second)
	r.k.CheckRate(r.now, []byte("late"), true)
	r.k.CheckRate(r.now, []byte("u1"), true)
	r.after(time.Hour - time.Second)
	r.k.CheckRate(r.now, []byte("u2"), false)
	r.sweep("zombied 0 removed 0 logs 0")
	r.after(time.Millisecond)
	r.sweep("zombied 0 removed 0 logs 20000")
	r.after(time.Second)
	r.sweep("zombied 0 removed 0 logs 1")
	if n := r.k.rates.live.Load(); n != 0 {
		t.Errorf("%d logs left", n)
	}
}

// TestChurnDoesNotGrow: what is removed is used again.
func TestChurnDoesNotGrow(t *testing.T) {
	k := New(Config{Shards: minShards, MaxProcesses: 1000, Defaults: unlimited()})
	now := fillTable(k, 1000)
	size := func() (n int) {
		for i := range k.shards {
			n += len(k.shards[i].rows) + len(k.shards[i].texts.pages)
			if len(k.shards[i].index.entries) > 64 {
				t.Errorf("index of %d for about 16 rows", len(k.shards[i].index.entries))
			}
		}
		return n + len(k.sched.nodes.chunks) + len(k.order.chunks)
	}
	var a CreateArgs
	churn := func(from, n int) {
		for i := range n {
			if k.Len() == 1000 {
				k.Terminate(now, benchID(nil, 'p', from+i-1000), nil, nil)
			}
			benchArgs(&a, from+i)
			now.Mono += int64(40 * time.Millisecond)
			if res, d := k.Create(now, &a, nil); res != OK {
				t.Fatal(res, d)
			}
		}
	}
	churn(1000, 20000)
	before := size()
	churn(21000, 50000)
	if after := size(); after > before+before/10 {
		t.Errorf("grew from %d to %d", before, after)
	}
}
