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
