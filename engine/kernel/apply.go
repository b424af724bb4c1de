package kernel

// This file holds the only writers of rows and scheduler. They read no clock, no randomness and no
// map order: all is in the Change. Callers hold the scheduling lock, and the mutex of the shard of
// the row, unless the function names less.

// applyCreate stores the process of c at at, which locate returned for its pid, and fills in at.r
// and at.ref. index is that of the record, as below; 0 if there is none.
func (k *Kernel) applyCreate(c *Change, at *place, index uint64) {
	r := k.addRow(c, at)
	r.record(index)
	if !k.sched.loose {
		k.order.append(c.Seq, at.ref)
	}
	k.created = max(k.created, c.Seq)
	if c.State == Ready {
		k.readied = max(k.readied, c.ReadySeq)
		k.sched.enqueue(r.node, c.ReadySeq)
	}
}

// addRow stores a row for a new process from c, and a node outside of all lists.
func (k *Kernel) addRow(c *Change, at *place) *row {
	slot := at.sh.takeSlot()
	r := at.sh.row(slot)
	at.r, at.ref = r, slot<<k.shardBits|at.ref&uint32(len(k.shards)-1)
	*r = row{created: c.Seq, state: c.State, priority: c.Priority, quota: at.sh.quotas.keep(&c.Quota)}
	at.sh.keepText(r, c)
	at.sh.enter(at.tag, slot, r.text)
	at.sh.warm.publish(at.sh)
	r.node = k.sched.nodes.take(at.ref, c.Priority)
	k.byState[c.State]++
	k.total++
	return r
}

// applyTransition moves the process at at to c.State.
func (k *Kernel) applyTransition(c *Change, at *place, index uint64) {
	r := at.r
	r.record(index)
	switch r.state {
	case Ready:
		k.sched.leave(r.node)
	case Running:
		r.clock = c.At/nsPerMs - r.clock
	case Blocked:
		at.sh.dropReason(r)
	}
	k.byState[r.state]--
	k.byState[c.State]++
	r.state = c.State
	switch c.State {
	case Ready:
		k.readied = max(k.readied, c.ReadySeq)
		k.sched.enqueue(r.node, c.ReadySeq)
	case Running:
		r.clock = c.At/nsPerMs - r.clock
	case Blocked:
		at.sh.keepReason(r, c.Reason)
		at.sh.warm.publish(at.sh)
	case Terminated:
		k.sched.complete(r.node, c.At, index)
	}
}

// applyLease hands out node i, which is queued, until expiry. Needs no shard.
func (k *Kernel) applyLease(expiry int64, i uint32) { k.sched.handOut(i, expiry) }

// applyReturn brings node i, which was handed out, back to its old place in the queue: the effect
// of ChangeLeaseEnd and ChangeRequeue. Needs no shard.
func (k *Kernel) applyReturn(i uint32) { k.sched.bringBack(i) }

// applyRemove removes the terminal process at at.
func (k *Kernel) applyRemove(at *place) {
	r, slot := at.r, at.ref>>k.shardBits
	k.byState[r.state]--
	k.total--
	if !k.sched.loose {
		k.order.remove(r.created)
	}
	k.sched.forget(r.node)
	at.sh.index.remove(at.tag, slot)
	at.sh.dropReason(r)
	at.sh.texts.release(r.text)
	at.sh.quotas.release(r.quota)
	at.sh.putSlot(slot)
}

// applyUsage sets the totals of r. Needs only the shard's mutex.
func applyUsage(totals *Usage, r *row) { r.usage.set(totals) }

// applyQuotaDefaults puts c.Quota in force.
func (k *Kernel) applyQuotaDefaults(c *Change, index uint64) {
	q := c.Quota
	k.defaults.Store(&q)
	k.defaultsRecord = max(k.defaultsRecord, index)
}
