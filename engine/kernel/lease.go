package kernel

import "math"

// noExpiry is the end of a lease that never ends: the process stays handed out until it is
// scheduled again or changes state (D20, dequeue_lease_secs = 0).
const noExpiry = math.MaxInt64

// leaseEnd returns when a lease given now ends.
func (k *Kernel) leaseEnd() int64 {
	if k.cfg.DequeueLease == 0 || k.now > noExpiry-int64(k.cfg.DequeueLease) {
		return noExpiry
	}
	return k.now + int64(k.cfg.DequeueLease)
}

// tick records now and takes back expired leases (kernel-ipc §5.2, D22). Loops read their clocks at
// slightly different moments: time never runs backwards here. Caller holds the scheduling lock.
func (k *Kernel) tick(now Instant) {
	k.now = max(k.now, now.Mono)
	for i := k.sched.leases.head; i != none && k.sched.nodes.at(i).stamp <= k.now; i = k.sched.leases.head {
		if k.cfg.Journal != nil {
			k.journalQueue(ChangeLeaseEnd, k.placeOf(i), 0)
		}
		k.applyReturn(i)
	}
}
