package kernel

// nsPerMs converts Mono readings to the millisecond resolution of clocks and rate logs.
const nsPerMs = 1000000

// RecordUsage adds delta to pid's usage, saturating, and copies the new totals to total, which may
// be nil (kernel-ipc §4.8). It takes one shard's mutex and does not allocate. ahead is as in Get.
func (k *Kernel) RecordUsage(_ Instant, pid []byte, ahead *Ahead, delta *Usage, total *Usage) Result {
	sh, r := k.lock(pid, ahead)
	defer sh.mu.Unlock()
	if r == nil {
		return NotFound
	}
	if !delta.zero() {
		var sum Usage
		sum.sum(&r.usage, delta)
		if k.cfg.Journal != nil {
			// The shard's own record is filled in place: a fresh one would cost as much as the rest
			// of the call.
			c := &sh.change
			c.Kind, c.PID = ChangeUsage, pid
			c.Usage.set(&sum)
			r.record(k.cfg.Journal(c))
			c.PID = nil
		}
		applyUsage(&sum, r)
	}
	if total != nil {
		total.set(&r.usage)
	}
	return OK
}

// CheckQuota compares pid's usage with its quota (kernel-ipc §4.7) and emits resource.exhausted
// when it is exceeded. Within bounds it takes one shard's mutex and does not allocate. ahead is as
// in Get.
func (k *Kernel) CheckQuota(now Instant, pid []byte, ahead *Ahead, out *QuotaCheck) Result {
	sh, r := k.lock(pid, ahead)
	if r == nil {
		sh.mu.Unlock()
		return NotFound
	}
	out.evaluate(r, sh.quotas.at(r.quota), now.Mono/nsPerMs)
	out.Recorded = r.recorded
	sh.mu.Unlock()
	if !out.Exceeded || k.cfg.Events == nil {
		return OK
	}
	return k.checkExceeded(now, pid, out)
}

// checkExceeded evaluates once more under the scheduling lock, so that the event stands among the
// other events of the process where the answer puts it.
func (k *Kernel) checkExceeded(now Instant, pid []byte, out *QuotaCheck) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.locate(pid)
	if !ok {
		return NotFound
	}
	at.sh.mu.Lock()
	out.evaluate(at.r, at.sh.quotas.at(at.r.quota), now.Mono/nsPerMs)
	out.Recorded = at.r.recorded
	at.sh.mu.Unlock()
	if out.Exceeded && k.hasSubscriber(ResourceExhausted) {
		k.emitExhausted(now, &at, out)
	}
	return OK
}
