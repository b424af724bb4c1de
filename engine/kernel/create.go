package kernel

// Create stores a process and, unless a.NoSchedule, makes it READY and queues it (kernel-ipc §4.1).
// On OK out is the snapshot from creation, with state NEW, and the RateDecision is that of
// a.UserID's log, which recorded the create. Errors in order: AlreadyExists, TableFull,
// RateLimited; a refused create consumes no rate slot and evicts nothing. A full table makes room
// by evicting the terminal process completed longest ago (§5.3). Event process.created.
func (k *Kernel) Create(now Instant, a *CreateArgs, out *PCB) (Result, RateDecision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	at, exists := k.locate(a.PID)
	if exists {
		return AlreadyExists, RateDecision{}
	}
	evict, ok := k.evictions()
	if !ok || !a.fits() {
		return TableFull, RateDecision{}
	}
	d := k.rates.take(now, a.UserID, true)
	if !d.Allowed {
		return RateLimited, d
	}
	for ; evict > 0; evict-- {
		k.removeOldest()
	}
	k.store(now, a, &at, out)
	if k.hasSubscriber(ProcessCreated) {
		k.emitCreated(now, &at)
	}
	return OK, d
}

// evictions returns how many terminal processes have to go before one more fits, and whether there
// are so many. It is more than one only after a journal written under a larger limit. Caller holds
// the scheduling lock.
func (k *Kernel) evictions() (n int, ok bool) {
	n = max(k.total-k.cfg.MaxProcesses+1, 0)
	return n, int64(n) <= k.byState[Terminated]+k.byState[Zombie]
}

// store creates the process of a at at and fills in at.r. Caller holds the scheduling lock.
func (k *Kernel) store(now Instant, a *CreateArgs, at *place, out *PCB) {
	c := Change{Kind: ChangeCreate, PID: a.PID, RequestID: a.RequestID, UserID: a.UserID, SessionID: a.SessionID,
		Priority: a.Priority, Seq: k.nextCreated(now), Quota: a.Quota.over(k.defaults.Load())}
	if !a.NoSchedule {
		c.State, c.ReadySeq = Ready, k.readied+1
	}
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	k.applyCreate(&c, at, k.journalScheduled(&c))
	if out != nil {
		at.sh.fill(out, at.r)
		out.State = StateNew
	}
}

// sequenceBits is how many creation sequences of all partitions a millisecond has: 2^11. The
// sequences stay below 2^53 until the year 2109.
const sequenceBits = 11

// nextCreated returns the creation sequence of a new process. Those of several partitions follow
// the time of day, so that their processes have one order, and leave different remainders. Caller
// holds the scheduling lock.
func (k *Kernel) nextCreated(now Instant) uint64 {
	seq, n := k.created+1, k.cfg.Partitions
	if n <= 1 {
		return seq
	}
	seq = max(seq, uint64(max(now.Wall, 0))<<sequenceBits)
	return seq + (k.cfg.Partition+n-seq%n)%n
}

// removeOldest removes the terminal process completed longest ago. Caller holds the scheduling lock
// and has made sure that there is one.
func (k *Kernel) removeOldest() {
	at := k.placeOf(k.sched.completed.head)
	_, at.tag = k.home(at.sh.pid(at.r))
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	c := Change{Kind: ChangeRemove, PID: at.sh.pid(at.r)}
	k.journalScheduled(&c)
	k.runHook(k.cfg.Removed, c.PID)
	k.applyRemove(&at)
}
