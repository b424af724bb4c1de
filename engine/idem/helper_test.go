package idem

// Index returns the index of the last change of k's entry, 0 if there is none: after Started and
// Restart, that of the start, which has to be durable before the tool runs. It
// does not allocate.
func (t *Table) Index(k Key) uint64 {
	s := t.shardOf(&k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[k]; e != nil {
		return e.index
	}
	return 0
}

// Forget removes k, which is Unknown, and reports whether it did.
func (t *Table) Forget(k Key) bool {
	now := t.now()
	s := t.shardOf(&k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.unknown(&k, now)
	if e == nil {
		return false
	}
	s.drop(e, ChangeDropped, now)
	return true
}
