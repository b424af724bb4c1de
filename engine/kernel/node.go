package kernel

import (
	"sync/atomic"
)

// queueState is which of the scheduler's structures a node is in. The numbers stand in snapshots.
type queueState uint8

const (
	nowhere   queueState = iota // NEW, RUNNING, WAITING, BLOCKED
	queued                      // READY, in its priority's FIFO
	returned                    // READY, back at its old place: in its priority's heap
	leased                      // READY, handed out until the lease ends
	handedOut                   // READY, handed out without a lease (D20)
	completed                   // TERMINATED or ZOMBIE
)

// node is the scheduler's side of a process: one list membership at a time. It holds no pointers.
// Guarded by the scheduling lock.
type node struct {
	ref        uint32 // table reference of the row
	prev, next uint32 // list neighbours; prev is the heap position while returned; next chains free nodes
	where      queueState
	priority   Priority
	// ready is the sequence of the entry into READY; while completed the index of the record of the
	// completion, which orders those of one instant.
	ready uint64
	stamp int64 // Mono: end of the lease while leased, completion while completed
}

// nodeChunk is the number of nodes allocated together: 256 nodes of 32 bytes are a size class of
// the Go allocator.
const nodeChunk = 256

// nodeSlab holds all nodes; indexes stay valid while the process lives.
type nodeSlab struct {
	chunks []*[nodeChunk]node
	used   uint32
	free   uint32
	warm   warmedNodes
	huge   *hugeAdvisor // nil: small pages
	// numbers gives out chunk numbers where several slabs are going to be one; nil otherwise. A
	// slab knows its own chunks only.
	numbers *atomic.Uint32
}

func (s *nodeSlab) init() { s.free = none }

func (s *nodeSlab) at(i uint32) *node { return &s.chunks[i/nodeChunk][i%nodeChunk] }

func (s *nodeSlab) take(ref uint32, p Priority) uint32 {
	i := s.free
	if i != none {
		s.free = s.at(i).next
	} else {
		if s.used%nodeChunk == 0 {
			s.grow()
		}
		i = s.used
		s.used++
	}
	*s.at(i) = node{ref: ref, prev: none, next: none, priority: p}
	return i
}

// grow adds a chunk, all of the ones before being used.
func (s *nodeSlab) grow() {
	if s.numbers != nil {
		s.used = (s.numbers.Add(1) - 1) * nodeChunk
	}
	for len(s.chunks) <= int(s.used/nodeChunk) {
		s.chunks = append(s.chunks, nil)
	}
	s.chunks[s.used/nodeChunk] = newPiece(s.huge, s.used >= hugeFrom*minShards, (*stocks).ofNodes)
	s.warm.publish(s.chunks)
}

// use gives away what was never used of the last chunk.
func (s *nodeSlab) use() {
	for ; s.used%nodeChunk > 0; s.used++ {
		s.put(s.used)
	}
}

// adopt takes over the nodes of from, which got its chunks beside those of s. Both are used up.
func (s *nodeSlab) adopt(from *nodeSlab) {
	from.use()
	for i, c := range from.chunks {
		if i == len(s.chunks) {
			s.chunks = append(s.chunks, nil)
		}
		if c != nil {
			s.chunks[i] = c
		}
	}
	s.used = uint32(len(s.chunks)) * nodeChunk
	s.warm.publish(s.chunks)
	for i := from.free; i != none; {
		next := s.at(i).next
		s.put(i)
		i = next
	}
}

func (s *nodeSlab) put(i uint32) {
	*s.at(i) = node{next: s.free}
	s.free = i
}

// list is a doubly linked list through the nodes of a slab.
type list struct{ head, tail uint32 }

func (l *list) init() { l.head, l.tail = none, none }

// insertAfter puts i behind node prev, at the front if prev is none.
func (l *list) insertAfter(s *nodeSlab, prev, i uint32) {
	n := s.at(i)
	n.prev = prev
	if prev == none {
		n.next, l.head = l.head, i
	} else {
		p := s.at(prev)
		n.next, p.next = p.next, i
	}
	if n.next == none {
		l.tail = i
	} else {
		s.at(n.next).prev = i
	}
}

func (l *list) pushBack(s *nodeSlab, i uint32) { l.insertAfter(s, l.tail, i) }

// insertByStamp keeps the list sorted by stamp, equal stamps in order of arrival. Stamps nearly
// always arrive in order, so the search from the tail ends at once; only a replay under another
// lease setting searches further.
func (l *list) insertByStamp(s *nodeSlab, i uint32) {
	prev := l.tail
	for stamp := s.at(i).stamp; prev != none && s.at(prev).stamp > stamp; {
		prev = s.at(prev).prev
	}
	l.insertAfter(s, prev, i)
}

func (l *list) remove(s *nodeSlab, i uint32) {
	n := s.at(i)
	if n.prev == none {
		l.head = n.next
	} else {
		s.at(n.prev).next = n.next
	}
	if n.next == none {
		l.tail = n.prev
	} else {
		s.at(n.next).prev = n.prev
	}
	n.prev, n.next = none, none
}
