package idem

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
