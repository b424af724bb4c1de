package kernel

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"
)

// maxStamps bounds a log; larger hour limits act as this one (kernel-ipc §6).
const maxStamps = 100000

// minStamps is the first size of a log's ring.
const minStamps = 8

// rateLog is one user's log of accepted requests: a ring of the low 32 bits of millisecond stamps,
// oldest first, none more than an hour older than the last. It grows to its bound and stays. counts
// are the stamps within each window at the last look; they lose stamps only at the old end, so that
// counting is amortised O(1).
type rateLog struct {
	ring       []uint32
	head, n    uint32
	counts     [numWindows]uint32
	user       uint32 // arena block
	userLen    uint16
	live       bool
	prev, next uint32 // by activity, most recent first; next also chains free logs
	last       int64  // ms, the newest stamp
	activity   uint64
}

// at returns stamp i, 0 being the oldest, in milliseconds.
func (g *rateLog) at(i uint32) int64 {
	pos := g.head + i
	if pos >= uint32(len(g.ring)) {
		pos -= uint32(len(g.ring))
	}
	return g.last - int64(uint32(g.last)-g.ring[pos])
}

// expire takes stamps that are too old at now (ms) out of the counts; age = window still counts.
func (g *rateLog) expire(now int64) {
	for w := range g.counts {
		c, start := g.counts[w], now-windowMs[w]
		for c > 0 && g.at(g.n-c) < start {
			c--
		}
		g.counts[w] = c
	}
}

// decide answers by the counts, which expire has brought up to now (ms). It changes nothing.
func (g *rateLog) decide(lim *limits, now int64) RateDecision {
	d := RateDecision{Allowed: true, CurrentCount: int64(g.counts[Minute-1]), Limit: int64(lim[Minute-1])}
	for w := range g.counts {
		if int64(g.counts[w]) >= int64(lim[w]) {
			d.Allowed, d.Window, d.WindowLimit = false, Window(w+1), lim[w]
			d.RetryAfter = g.retryAfter(w, lim[w], now)
			return d
		}
	}
	d.Remaining = max(d.Limit-d.CurrentCount, 0)
	return d
}

// record counts the request that d allowed.
func (d *RateDecision) record() {
	d.CurrentCount++
	d.Remaining = max(d.Limit-d.CurrentCount, 0)
}

// retryAfter returns the seconds until a slot frees in window w, rounded up, at least 1: when the
// oldest of the newest limit stamps is as old as the window. A limit of 0 never frees one and gives
// the window.
func (g *rateLog) retryAfter(w int, limit int32, now int64) int64 {
	wait := windowMs[w]
	if limit > 0 {
		wait += g.at(g.n-uint32(limit)) - now
	}
	return max((wait+999)/1000, 1)
}

// push records a stamp at now (ms), dropping what is out of every window.
func (g *rateLog) push(now int64, hourLimit int) {
	now = max(now, g.last)
	g.expire(now)
	g.dropFront(g.n - g.counts[Hour-1])
	if g.n == maxStamps {
		g.dropFront(1) // only a journal written under other rules gets here
	}
	if int(g.n) == len(g.ring) {
		g.growRing(hourLimit)
	}
	g.last = now
	pos := g.head + g.n
	if pos >= uint32(len(g.ring)) {
		pos -= uint32(len(g.ring))
	}
	g.ring[pos] = uint32(now)
	g.n++
	for w := range g.counts {
		g.counts[w]++
	}
}

func (g *rateLog) dropFront(n uint32) {
	if n == 0 {
		return
	}
	g.head += n
	if g.head >= uint32(len(g.ring)) {
		g.head -= uint32(len(g.ring))
	}
	g.n -= n
	for w := range g.counts {
		g.counts[w] = min(g.counts[w], g.n)
	}
}

// growRing doubles the ring, at least by one, at most to the hour limit.
func (g *rateLog) growRing(hourLimit int) {
	size := min(max(2*len(g.ring), minStamps), max(hourLimit, int(g.n)+1), maxStamps)
	ring := make([]uint32, size)
	n := copy(ring, g.ring[g.head:])
	copy(ring[n:], g.ring[:g.head])
	g.ring, g.head = ring, 0
}

// logChunk is the number of logs allocated together.
const logChunk = 32

// noActivity is later than all activity.
const noActivity = uint64(math.MaxUint64)

// rateShard is a part of the logs under one mutex, in order of activity.
type rateShard struct {
	mu         sync.Mutex
	oldest     atomic.Uint64 // activity of tail, or noActivity; written under mu, read without
	index      index
	logs       []*[logChunk]rateLog
	used       uint32 // slots ever used
	free       uint32 // first free slot among them, or none
	head, tail uint32 // most and least recently active
	users      arena
	recorded   indexes
	change     Change   // what the journal is shown
	_          [64]byte // keeps the next shard's mutex off this one's last cache line
}

func (s *rateShard) init() {
	s.free, s.head, s.tail = none, none, none
	s.oldest.Store(noActivity)
	s.users.init()
}

// log returns the log in slot i. Caller holds mu; so for all below.
func (s *rateShard) log(i uint32) *rateLog { return &s.logs[i/logChunk][i%logChunk] }

func (s *rateShard) user(g *rateLog) []byte {
	if g.userLen == 0 {
		return nil
	}
	return s.users.bytes(g.user, int(g.userLen))
}

// find returns the slot of user's log, or none.
func (s *rateShard) find(tag uint32, user []byte) uint32 {
	for e, pos := s.index.probe(tag, tag); e != nil; e, pos = s.index.probe(tag, pos) {
		i := e.slot - 1
		if bytes.Equal(s.user(s.log(i)), user) {
			return i
		}
	}
	return none
}

// add makes an empty log for user as the most recent one; the caller adds its first stamp.
func (s *rateShard) add(tag uint32, user []byte, nowMs int64) uint32 {
	i := s.free
	if i != none {
		s.free = s.log(i).next
	} else {
		i = s.used
		s.used++
		if int(i/logChunk) == len(s.logs) {
			s.logs = append(s.logs, new([logChunk]rateLog))
		}
	}
	g := s.log(i)
	*g = rateLog{live: true, userLen: uint16(len(user)), last: nowMs}
	if len(user) > 0 {
		g.user = s.users.alloc(len(user))
		copy(s.user(g), user)
	}
	s.index.insert(tag, i, none)
	s.linkFront(i)
	return i
}

// drop removes log i, whose user has the given tag.
func (s *rateShard) drop(tag, i uint32) {
	g := s.log(i)
	s.unlink(i)
	s.publishOldest()
	s.index.remove(tag, i)
	if g.userLen > 0 {
		s.users.release(g.user)
	}
	*g = rateLog{next: s.free}
	s.free = i
	s.recorded.clear(i)
}

// touch makes log i the most recently active one.
func (s *rateShard) touch(i uint32, activity uint64) {
	s.log(i).activity = activity
	if s.head != i {
		s.unlink(i)
		s.linkFront(i)
	}
	s.publishOldest()
}

func (s *rateShard) publishOldest() {
	a := noActivity
	if s.tail != none {
		a = s.log(s.tail).activity
	}
	if a != s.oldest.Load() {
		s.oldest.Store(a)
	}
}

func (s *rateShard) linkFront(i uint32) {
	g := s.log(i)
	g.prev, g.next = none, s.head
	if s.head != none {
		s.log(s.head).prev = i
	} else {
		s.tail = i
	}
	s.head = i
}

func (s *rateShard) unlink(i uint32) {
	g := s.log(i)
	if g.prev != none {
		s.log(g.prev).next = g.next
	} else {
		s.head = g.next
	}
	if g.next != none {
		s.log(g.next).prev = g.prev
	} else {
		s.tail = g.prev
	}
}
