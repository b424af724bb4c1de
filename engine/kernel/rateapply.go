package kernel

// applyStamp records the request of c in log i of s, in a new log if i is none, and returns the
// log. hourLimit bounds how far the log grows. Caller holds s's mutex.
func (l *limiter) applyStamp(s *rateShard, tag, i uint32, c *Change, hourLimit int32) uint32 {
	if i == none {
		i = s.add(tag, c.UserID, c.At/nsPerMs)
		l.live.Add(1)
	}
	s.log(i).push(c.At/nsPerMs, int(hourLimit))
	return i
}

// applyDrop forgets log i of s, whose user has the given tag. Caller holds s's mutex.
func (l *limiter) applyDrop(s *rateShard, tag, i uint32) {
	s.drop(tag, i)
	l.live.Add(-1)
}

// apply replays a ChangeRateStamp or ChangeRateDrop; see Apply.
func (l *limiter) apply(c *Change, index uint64, lenient bool) (applied bool, err error) {
	l.grow.Lock()
	defer l.grow.Unlock()
	s, i, applied, err := l.replay(c, index, lenient)
	if i != none {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.touch(i, l.activity.Add(1))
	}
	return applied, err
}

// replay is apply without the order of activity. It returns the active log, or none. Changes of one
// user come from one goroutine, so the growth lock is not needed.
func (l *limiter) replay(c *Change, index uint64, lenient bool) (s *rateShard, active uint32, applied bool, err error) {
	if len(c.UserID) > maxIDLen {
		return nil, none, false, notApplicable(c, "user too long")
	}
	s, tag := l.home(c.UserID)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(tag, c.UserID)
	switch {
	case i != none && known(s.recorded.at(i), index):
		return s, none, false, nil
	case c.Kind == ChangeRateStamp:
		i = l.applyStamp(s, tag, i, c, l.limits()[Hour-1])
		s.recorded.set(i, index)
		return s, i, true, nil
	case i != none:
		l.applyDrop(s, tag, i)
		return s, none, true, nil
	case lenient:
		return s, none, false, nil
	}
	return s, none, false, notApplicable(c, "no such log")
}

// sweep drops the logs without a stamp in the last hour (kernel-ipc §5.3) and returns how many. It
// holds a shard for at most sweepBatch logs at a time.
func (l *limiter) sweep(now Instant) (dropped int) {
	for n := range l.shards {
		s := &l.shards[n]
		for from, more := uint32(0), true; more && !l.overloaded(); from += sweepBatch {
			var d int
			d, more = l.sweepSome(s, from, now.Mono/nsPerMs)
			dropped += d
		}
	}
	return dropped
}

// sweepSome drops expired logs among sweepBatch slots from the given one on; more: further slots
// follow.
func (l *limiter) sweepSome(s *rateShard, from uint32, nowMs int64) (dropped int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(from+sweepBatch, s.used)
	for i := from; i < end; i++ {
		if g := s.log(i); g.live && nowMs-g.last > windowMs[Hour-1] {
			l.drop(s, i)
			dropped++
		}
	}
	return dropped, end < s.used
}
