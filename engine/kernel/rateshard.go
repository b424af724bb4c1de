package kernel

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"
)

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
