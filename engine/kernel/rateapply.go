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
	s, tag := l.home(c.UserID)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, applied, err := l.replay(c, s, tag, index, lenient)
	if i != none {
		s.touch(i, l.activity.Add(1))
	}
	return applied, err
}

// replay is apply without the order of activity, in the shard and under the tag of the user. It
// returns the active log, or none. Caller holds the growth lock and the shard's mutex, or has the
// shard for itself.
func (l *limiter) replay(c *Change, s *rateShard, tag uint32, index uint64, lenient bool) (active uint32, applied bool, err error) {
	if len(c.UserID) > maxIDLen {
		return none, false, notApplicable(c, "user too long")
	}
	i := s.find(tag, c.UserID)
	switch {
	case i != none && known(s.recorded.at(i), index):
		return none, false, nil
	case c.Kind == ChangeRateStamp:
		i = l.applyStamp(s, tag, i, c, l.limits()[Hour-1])
		s.recorded.set(i, index)
		return i, true, nil
	case i != none:
		l.applyDrop(s, tag, i)
		return none, true, nil
	case lenient:
		return none, false, nil
	}
	return none, false, notApplicable(c, "no such log")
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
