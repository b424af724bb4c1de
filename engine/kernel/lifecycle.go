package kernel

import (
	"unicode/utf8"
)

// Schedule makes a NEW process READY and queues it; a READY process that was handed out and not
// started goes back to its old place in the queue; a queued one stays as it is (kernel-ipc §4.3).
// On NotSchedulable out.State is the current state. Event process.state_changed from NEW only. out
// may be nil.
func (k *Kernel) Schedule(now Instant, pid []byte, out *PCB) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	at, ok := k.locate(pid)
	if !ok {
		return NotFound
	}
	switch at.r.state {
	case StateNew:
		k.move(&at, Ready, nil, out)
		k.emitStateChanged(now, &at, StateNew, nil)
		return OK
	case Ready:
		k.requeue(&at)
		k.snapshot(&at, out)
		return OK
	default:
		k.snapshot(&at, out)
		return NotSchedulable
	}
}

// requeue brings back the READY process at at if it was handed out.
func (k *Kernel) requeue(at *place) {
	if where := k.sched.nodes.at(at.r.node).where; where != leased && where != handedOut {
		return
	}
	k.journalQueue(ChangeRequeue, *at, 0)
	k.applyReturn(at.r.node)
}

// Next takes the READY process with the best priority, first in READY first, out of the queue
// (kernel-ipc §4.4). With start it becomes RUNNING, with event process.state_changed; otherwise it
// stays READY and is leased. out may be nil.
func (k *Kernel) Next(now Instant, start bool, out *PCB) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	i := k.sched.best()
	if i == none {
		return NoRunnable
	}
	at := k.placeOf(i)
	if start {
		k.move(&at, Running, nil, out)
		k.emitStateChanged(now, &at, Ready, nil)
		return OK
	}
	end := k.leaseEnd()
	k.journalQueue(ChangeLease, at, end)
	k.applyLease(end, i)
	k.snapshot(&at, out)
	return OK
}

// Transition moves pid to state to if the table of kernel-ipc §5.1 has the pair (§4.5); on
// BadTransition out.State is the old state. reason goes into the event, and is kept while BLOCKED.
// Event process.state_changed, then process.terminated if to is TERMINATED (D24). out may be nil,
// and ahead is as in Get.
func (k *Kernel) Transition(now Instant, pid []byte, ahead *Ahead, to State, reason []byte, out *PCB) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	var at place
	if at.sh, at.r = ahead.row(); at.r == nil || !at.sh.isRow(at.r, pid) {
		var ok bool
		if at, ok = k.locate(pid); !ok {
			return NotFound
		}
	}
	old := at.r.state
	if !old.CanBecome(to) {
		k.snapshot(&at, out)
		return BadTransition
	}
	k.move(&at, to, reason, out)
	k.emitStateChanged(now, &at, old, reason)
	if to == Terminated {
		k.emitTerminated(now, &at, reason)
	}
	return OK
}

// Terminate moves pid to TERMINATED from any state; a terminal process stays as it is, without
// event (kernel-ipc §4.6, D25). Events process.terminated, then process.state_changed. out may be
// nil.
func (k *Kernel) Terminate(now Instant, pid, reason []byte, out *PCB) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	at, ok := k.locate(pid)
	if !ok {
		return NotFound
	}
	old := at.r.state
	if old.terminal() {
		k.snapshot(&at, out)
		k.runHook(k.cfg.Ended, pid)
		return OK
	}
	k.move(&at, Terminated, reason, out)
	k.emitTerminated(now, &at, reason)
	k.emitStateChanged(now, &at, old, reason)
	return OK
}

// move makes the transition of the process at at to state to, which the table allows. Caller holds
// the scheduling lock.
func (k *Kernel) move(at *place, to State, reason []byte, out *PCB) {
	// The kernel's own record is filled in place: a fresh one would cost as much as the rest of the
	// call.
	c := &k.change
	c.Kind, c.PID, c.State, c.At, c.ReadySeq, c.Reason = ChangeTransition, at.sh.pid(at.r), to, k.now, 0, nil
	switch to {
	case Ready:
		c.ReadySeq = k.readied + 1
	case Blocked:
		c.Reason = cutReason(reason)
	}
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	index := uint64(0)
	if k.cfg.Journal != nil {
		index = k.cfg.Journal(c)
	}
	k.applyTransition(c, at, index)
	at.sh.fill(out, at.r)
	if to == Terminated {
		k.runHook(k.cfg.Ended, c.PID)
	}
	c.PID, c.Reason = nil, nil
}

// runHook calls a hook, if there is one.
func (k *Kernel) runHook(hook func(pid []byte), pid []byte) {
	if hook != nil {
		hook(pid)
	}
}

// cutReason returns the first maxIDLen bytes of reason, less a character that would be cut.
func cutReason(reason []byte) []byte {
	if len(reason) <= maxIDLen {
		return reason
	}
	n := maxIDLen
	for n > maxIDLen-utf8.UTFMax && !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}

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
		if i == none || k.now-k.sched.nodes.at(i).stamp <= int64(k.cfg.ProcessRetention) {
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
