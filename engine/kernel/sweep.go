package kernel

// sweepBatch bounds the work per hold of a lock.
const sweepBatch = 256

// Sweep collects garbage (kernel-ipc §5.3) and emits no events. A TERMINATED process whose
// completion is older than the retention becomes a ZOMBIE and, its completion being that old, is
// removed in the same step; zombied counts those, removed counts all removed. logs counts the
// rate-limit logs dropped because they had no stamp in the last hour. The work is done in bounded
// batches, others get the locks in between.
func (k *Kernel) Sweep(now Instant) (zombied, removed, logs int) {
	for {
		z, r := k.sweepSome(now)
		zombied, removed = zombied+z, removed+r
		if r < sweepBatch || k.cfg.Overloaded() {
			return zombied, removed, k.rates.sweep(now)
		}
	}
}

// sweepSome removes up to sweepBatch expired processes.
func (k *Kernel) sweepSome(now Instant) (zombied, removed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	for removed < sweepBatch {
		i := k.sched.completed.head
		if i == none || k.now-k.sched.nodes.at(i).stamp <= int64(k.cfg.Retention) {
			break
		}
		if _, r := k.rowOf(k.sched.nodes.at(i).ref); r.state == Terminated {
			zombied++
		}
		k.removeOldest()
		removed++
	}
	return zombied, removed
}
