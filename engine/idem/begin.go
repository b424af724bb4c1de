package idem

// Outcome is what Begin found.
type Outcome uint8

// The outcomes of Begin (toolhost §4.3 step 7).
const (
	// Full: there is no room, for every entry is in flight (idempotency_cache_full), or must not be
	// evicted (Config.NoEviction).
	Full Outcome = iota
	// Started: the key is in flight now, and the caller ends that with Finish or Release, once.
	Started
	// Done: here is the stored outcome.
	Done
	// InFlight: another caller executes it; the waiter is registered.
	InFlight
	// Conflict: the key is there with another input (idempotency_conflict, D11).
	Conflict
	// Unknown: an execution was begun before a restart and may have had its effect. Nothing is
	// reserved; the caller calls FinishUnknown or Forget.
	Unknown
	// Interrupted is Unknown where BeginRepeatable began the execution: the caller calls Restart.
	Interrupted
	// Crowded: another caller executes it, and no further waiter can be registered.
	Crowded

	numOutcomes
)

// String returns the name of the outcome in lower case.
func (o Outcome) String() string {
	names := [numOutcomes]string{Full: "full", Started: "started", Done: "done", InFlight: "in flight", Conflict: "conflict",
		Unknown: "unknown", Interrupted: "interrupted", Crowded: "crowded"}
	if o < numOutcomes {
		return names[o]
	}
	return "invalid"
}

// Waiter waits for the execution of another caller. It must be comparable, as a pointer is.
type Waiter interface {
	// Wake is called once for each Begin that returned InFlight, unless Cancel came first, by the
	// goroutine that ended the execution and without a lock. r is the outcome, which may be kept;
	// nil means that there was no execution: call Begin again.
	Wake(r *Stored)
}

// Begin looks k up, or reserves it (toolhost §4.3 step 7), in one atomic step. now is a reading of
// Now: one may serve all requests that came together. input is the SHA-256 of the effective input.
// The result is set for Done only. w, which may be nil, is registered for InFlight only. Done,
// Unknown and Interrupted make the entry the most recently used. Only Started and InFlight
// allocate.
func (t *Table) Begin(now int64, k Key, input [32]byte, w Waiter) (Outcome, *Stored) {
	return t.begin(now, &k, &input, w, false)
}

// BeginRepeatable is Begin for an execution that may be run twice. The key keeps that: what counts
// after a restart is what the execution was when it began.
func (t *Table) BeginRepeatable(now int64, k Key, input [32]byte, w Waiter) (Outcome, *Stored) {
	return t.begin(now, &k, &input, w, true)
}

func (t *Table) begin(now int64, k *Key, input *[32]byte, w Waiter, repeatable bool) (Outcome, *Stored) {
	t.sweepDue(now)
	s := t.shardOf(k)
	for {
		o, r := s.begin(k, input, w, now, repeatable)
		if o != Full || t.noEviction || t.inFlight.Load() >= t.maxEntries {
			return o, r
		}
		// Others may take the room; then this repeats, and each round drops one entry.
		t.makeRoom(now)
	}
}

// begin is Begin without making room. Caller does not hold mu.
func (s *shard) begin(k *Key, input *[32]byte, w Waiter, now int64, repeatable bool) (Outcome, *Stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(k, now); e != nil {
		return s.meet(e, input, w)
	}
	t := s.table
	if t.noEviction && t.bytes.Load() >= t.maxBytes || !reserve(&t.entries, 1, t.maxEntries) {
		return Full, nil
	}
	s.start(k, input, now, repeatable)
	return Started, nil
}

// meet answers a request for e.
func (s *shard) meet(e *entry, input *[32]byte, w Waiter) (Outcome, *Stored) {
	switch {
	case e.input != *input:
		return Conflict, nil
	case e.state == done:
		s.hits++
		s.touch(e)
		return Done, e.result
	case e.state == unknown:
		s.touch(e)
		if e.repeatable {
			return Interrupted, nil
		}
		return Unknown, nil
	case w == nil:
		return InFlight, nil
	case !reserve(&s.table.waiting, 1, s.table.maxWaiters):
		return Crowded, nil
	}
	e.waiters = append(e.waiters, w)
	return InFlight, nil
}

// Now reads the clock of the table.
func (t *Table) Now() int64 { return t.now() }

// Cancel takes back w, which waits for k, and reports whether it did: then w is not woken.
// Otherwise it was woken, or is about to be. A waiter that was registered twice is taken back once.
func (t *Table) Cancel(k Key, w Waiter) bool {
	s := t.shardOf(&k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[k]
	if e == nil {
		return false
	}
	for i, at := range e.waiters {
		if at == w {
			last := len(e.waiters) - 1
			e.waiters[i], e.waiters[last] = e.waiters[last], nil
			e.waiters = e.waiters[:last]
			t.waiting.Add(-1)
			return true
		}
	}
	return false
}

// Finish ends the execution of k, which is in flight, with the outcome r, wakes the waiters with it
// and returns it as they get it: a copy. Its Stored.Index must be durable before it is shown. It is
// nil, and nothing happens, if k is not in flight. The outcome is valid for Config.TTL from now;
// one larger than Config.MaxBytes is not kept. Completed entries are evicted to make room for it.
func (t *Table) Finish(k Key, r Stored) *Stored { return t.complete(&k, running, &r) }

// complete ends k, which must be in state from, with a copy of r.
func (t *Table) complete(k *Key, from state, r *Stored) *Stored {
	c := r.clone()
	now := t.now()
	s := t.shardOf(k)
	for {
		ok, waiters, fits := s.complete(k, from, c, now)
		if !ok {
			return nil
		}
		if fits {
			wake(waiters, c)
			return c
		}
		t.makeRoom(now)
	}
}

// complete ends k if it is in state from (ok) and there is room for r (fits). Caller does not hold
// mu.
func (s *shard) complete(k *Key, from state, r *Stored, now int64) (ok bool, waiters []Waiter, fits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, e := s.table, s.entries[*k]
	if e == nil || e.state != from || s.expired(e, now) {
		return false, nil, false
	}
	if r.size() > t.maxBytes && !t.noEviction {
		waiters = s.detach(e, r)
		s.drop(e, ChangeDropped, now)
		r.Index = e.index
		return true, waiters, true
	}
	if t.noEviction {
		t.bytes.Add(r.size())
	} else if !reserve(&t.bytes, r.size(), t.maxBytes) {
		if from == unknown {
			s.touch(e) // so that it is not evicted to make room for its own result
		}
		return true, nil, false
	}
	waiters = s.detach(e, r)
	s.settle(e, done, r, now)
	s.record(ChangeFinished, e, now)
	r.Index = e.index
	return true, waiters, true
}

// Release ends the reservation of k, which is in flight, without an execution (toolhost §4.3 steps
// 8-10), and reports whether it was. The waiters are woken with nil. A reservation that Restart
// made is unknown again, since the attempt before it may have had its effect; any other is gone.
func (t *Table) Release(k Key) bool {
	now := t.now()
	waiters, ok := t.shardOf(&k).release(&k, now)
	wake(waiters, nil)
	return ok
}

// release is Release without waking. Caller does not hold mu.
func (s *shard) release(k *Key, now int64) (waiters []Waiter, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[*k]
	if e == nil || e.state != running {
		return nil, false
	}
	waiters = s.detach(e, nil)
	if e.attempt == 1 {
		s.drop(e, ChangeReleased, now)
		return waiters, true
	}
	s.record(ChangeReleased, e, now)
	e.attempt--
	s.settle(e, unknown, nil, now)
	return waiters, true
}

// wake calls the waiters. Caller holds no lock.
func wake(waiters []Waiter, r *Stored) {
	for _, w := range waiters {
		w.Wake(r)
	}
}

// Restart puts k, which is Interrupted, in flight again and returns the number of the attempt, at
// least
// 2. ok is false if another caller was faster or the entry is gone: call Begin again. The caller
// ends it with Finish or Release.
func (t *Table) Restart(k Key) (attempt uint32, ok bool) {
	now := t.now()
	s := t.shardOf(&k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.unknown(&k, now)
	if e == nil || !e.repeatable {
		return 0, false
	}
	s.restart(e, now)
	return e.attempt, true
}

// FinishUnknown gives k, which is Unknown or Interrupted, the outcome r, an error as a rule, and
// returns it as Finish does; nil if another caller was faster or the entry is gone: call Begin
// again.
func (t *Table) FinishUnknown(k Key, r Stored) *Stored { return t.complete(&k, unknown, &r) }

// unknown returns the entry of k if it is valid and unknown, else nil.
func (s *shard) unknown(k *Key, now int64) *entry {
	e := s.find(k, now)
	if e == nil || e.state != unknown {
		return nil
	}
	return e
}

// Recovered ends a replay and returns how many entries are Unknown. It is called once, before the
// table is used. The window of an Unknown entry starts now: the execution may have gone on until
// the process ended. An end that lies in the future, because the clock did not go on where the
// journal ended, counts as now.
func (t *Table) Recovered() (unknowns int) {
	now := t.now()
	t.due.Store(none)
	for i := range t.shards {
		unknowns += t.shards[i].recovered(now)
	}
	return unknowns
}

// recovered is Recovered for one shard. Caller does not hold mu.
func (s *shard) recovered(now int64) (unknowns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.state == unknown {
			unknowns++
		}
		if e.state == unknown || e.state == done && e.at > now {
			s.unlink(byEnd, e)
			e.at = now
			s.link(byEnd, e)
		}
	}
	if head := s.lists[byEnd].head; head != nil {
		s.table.noteDue(s.table.expiry(head.at))
	}
	return unknowns
}
