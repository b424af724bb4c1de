package idem

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
