package threads

// Stats are the numbers that an operator asks for.
type Stats struct {
	Threads, Sessions, OpenJobs int
	// Unacknowledged counts the deliveries without a sign of their target in time.
	Unacknowledged uint64
	// Posted counts the messages of this process.
	Posted uint64
	// HotBytes is the memory of the latest messages, UnstoredBytes what of them is no row yet.
	HotBytes, UnstoredBytes int64
	// Keys counts the idempotency keys that are remembered, about; KeyBytes is the memory of their
	// filters.
	Keys, KeyBytes int
}

// Stats returns the numbers. It takes one lock after the other.
func (e *Engine) Stats() (s Stats) {
	e.numbers.Lock()
	s.Threads = len(e.numbers.list)
	e.numbers.Unlock()
	e.sessions.mu.Lock()
	s.Sessions = len(e.sessions.agents)
	e.sessions.mu.Unlock()
	e.jobs.mu.Lock()
	s.OpenJobs, s.Unacknowledged = len(e.jobs.open), e.jobs.unacked
	e.jobs.mu.Unlock()
	e.hot.mu.Lock()
	s.HotBytes = int64(e.hot.bytes)
	e.hot.mu.Unlock()
	keys := e.keys.Stats()
	s.Keys, s.KeyBytes = keys.Entries+keys.Recent, keys.FilterBytes
	s.Posted, s.UnstoredBytes = e.posted.Load(), e.hot.unstored.Load()
	return s
}
