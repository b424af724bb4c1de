package kernel

import (
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"
)

// Window is a rate-limit window (kernel-ipc §4.9).
type Window uint8

// The windows, in the order in which they are checked.
const (
	NoWindow Window = iota
	Hour
	Minute
	Burst
)

var windowNames = [...]string{"", "hour", "minute", "burst"}

// String returns the limit_type on the wire. It does not allocate.
func (w Window) String() string {
	if int(w) < len(windowNames) {
		return windowNames[w]
	}
	return ""
}

const numWindows = 3

// windowMs gives the length of each window, by Window-1.
var windowMs = [numWindows]int64{3600000, 60000, 10000}

// RateDecision is the limiter's answer (kernel-ipc §4.9).
type RateDecision struct {
	Allowed bool
	// Window is the one that refused, WindowLimit its limit.
	Window      Window
	WindowLimit int32
	// CurrentCount is the number of stamps in the last 60 s, one just recorded included.
	CurrentCount int64
	// Limit is rate_limit_rpm; Remaining is what CurrentCount leaves of it, 0 if refused.
	Limit, Remaining int64
	// RetryAfter is in whole seconds, 0 if allowed.
	RetryAfter int64
}

// AppendReason appends the reason of a refusal, nothing if allowed.
func (d RateDecision) AppendReason(dst []byte) []byte {
	switch d.Window {
	case Hour:
		dst = append(dst, "Rate limit exceeded: "...)
		dst = strconv.AppendInt(dst, int64(d.WindowLimit), 10)
		return append(dst, " requests per hour"...)
	case Minute:
		dst = append(dst, "Rate limit exceeded: "...)
		dst = strconv.AppendInt(dst, int64(d.WindowLimit), 10)
		return append(dst, " requests per minute"...)
	case Burst:
		dst = append(dst, "Burst limit exceeded: "...)
		dst = strconv.AppendInt(dst, int64(d.WindowLimit), 10)
		return append(dst, " requests per 10 seconds"...)
	}
	return dst
}

// CheckRate decides whether user may make a request now and, if so and if record, records it
// (kernel-ipc §4.9). For a known user it takes one limiter shard's mutex and allocates only to grow
// the user's log up to its bound. Of a user longer than maxIDLen bytes the first maxIDLen count.
func (k *Kernel) CheckRate(now Instant, user []byte, record bool) RateDecision {
	return k.rates.take(now, user, record)
}

// rateShards is the number of limiter shards; a search for the least recently active log reads
// each.
const rateShards = 64

// limiter holds a log of accepted requests per user, at most max of them.
type limiter struct {
	seed     maphash.Seed
	max      int64
	live     atomic.Int64  // logs held
	activity atomic.Uint64 // sequence of activity, to compare recency across shards
	grow     sync.Mutex    // held while a log is added; guards that live stays within max
	defaults *atomic.Pointer[Quota]
	journal  func(*Change) uint64
	// overloaded is Config.Overloaded.
	overloaded func() bool
	shards     []rateShard
}

func (l *limiter) init(cfg *Config, defaults *atomic.Pointer[Quota]) {
	l.seed = maphash.MakeSeed()
	l.max = int64(cfg.MaxRateLimitUsers)
	l.defaults = defaults
	l.journal, l.overloaded = cfg.Journal, cfg.Overloaded
	l.shards = make([]rateShard, rateShards)
	for i := range l.shards {
		l.shards[i].init()
	}
}

// limits are the limits in force by Window-1 (D30).
type limits [numWindows]int32

func (l *limiter) limits() limits {
	q := l.defaults.Load()
	return limits{min(q[RateLimitRPH], maxStamps), q[RateLimitRPM], q[RateLimitBurst]}
}

func (l *limiter) home(user []byte) (s *rateShard, tag uint32) {
	return l.homeBy(maphash.Bytes(l.seed, user))
}

// homeBy is home of a user with a known hash.
func (l *limiter) homeBy(h uint64) (s *rateShard, tag uint32) {
	return &l.shards[h%rateShards], uint32(h >> 32)
}

// take is CheckRate.
func (l *limiter) take(now Instant, user []byte, record bool) RateDecision {
	user = user[:min(len(user), maxIDLen)]
	s, tag := l.home(user)
	if d, known := l.takeKnown(s, tag, now, user, record); known {
		return d
	}
	lim := l.limits()
	var empty rateLog
	d := empty.decide(&lim, 0)
	if !d.Allowed || !record {
		return d
	}
	return l.takeNew(s, tag, now, user)
}

// takeKnown decides for a user that has a log.
func (l *limiter) takeKnown(s *rateShard, tag uint32, now Instant, user []byte, record bool) (d RateDecision, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(tag, user)
	if i == none {
		return d, false
	}
	g := s.log(i)
	lim := l.limits()
	ms := max(now.Mono/nsPerMs, g.last)
	g.expire(ms)
	d = g.decide(&lim, ms)
	if !record {
		return d, true
	}
	if d.Allowed {
		l.stamp(s, tag, i, now, user, &lim)
		d.record()
	}
	s.touch(i, l.activity.Add(1))
	return d, true
}

// takeNew makes a log for a user that had none and records the request in it, first dropping the
// least recently active log if there are too many.
func (l *limiter) takeNew(s *rateShard, tag uint32, now Instant, user []byte) RateDecision {
	l.grow.Lock()
	defer l.grow.Unlock()
	// Another caller may have been faster, and its log may be full already.
	if d, known := l.takeKnown(s, tag, now, user, true); known {
		return d
	}
	for l.live.Load() >= l.max && l.dropOldest() {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lim := l.limits()
	var empty rateLog
	d := empty.decide(&lim, 0)
	if d.Allowed {
		i := l.stamp(s, tag, none, now, user, &lim)
		d.record()
		s.touch(i, l.activity.Add(1))
	}
	return d
}

// stamp journals and applies one accepted request of user, whose log is i or none. Caller holds s's
// mutex, and the growth lock if i is none.
func (l *limiter) stamp(s *rateShard, tag, i uint32, now Instant, user []byte, lim *limits) uint32 {
	c := Change{Kind: ChangeRateStamp, UserID: user, At: now.Mono}
	index := l.show(s, &c)
	i = l.applyStamp(s, tag, i, &c, lim[Hour-1])
	s.recorded.set(i, index)
	return i
}

// show journals c and returns the index of its record. Caller holds s's mutex.
func (l *limiter) show(s *rateShard, c *Change) (index uint64) {
	if l.journal != nil {
		s.change = *c
		index = l.journal(&s.change)
		s.change = Change{}
	}
	return index
}

// dropOldest drops the least recently active log, if there is one. Caller holds the growth lock.
func (l *limiter) dropOldest() bool {
	for {
		var oldest *rateShard
		first := noActivity
		for i := range l.shards {
			if a := l.shards[i].oldest.Load(); a < first {
				oldest, first = &l.shards[i], a
			}
		}
		if oldest == nil {
			return false
		}
		if l.dropIf(oldest, first) {
			return true
		}
		// That log was active or swept meanwhile: look again.
		if l.live.Load() < l.max {
			return true
		}
	}
}

// dropIf drops the least recently active log of s if its activity is still the given one.
func (l *limiter) dropIf(s *rateShard, activity uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oldest.Load() != activity {
		return false
	}
	l.drop(s, s.tail)
	return true
}

// drop journals and applies the loss of log i. Caller holds s's mutex.
func (l *limiter) drop(s *rateShard, i uint32) {
	c := Change{Kind: ChangeRateDrop, UserID: s.user(s.log(i))}
	l.show(s, &c)
	_, tag := l.home(c.UserID)
	l.applyDrop(s, tag, i)
}

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
