package idem

// state is where an entry stands in its life, as drawn in the package comment.
type state uint8

const (
	running state = iota // in no list
	unknown              // in both lists, without a result
	done                 // in both lists
)

// entry is one key. Its shard's mutex covers all of it; what result points to is immutable.
type entry struct {
	key     Key
	input   [32]byte
	state   state
	attempt uint32
	// repeatable means that the execution may be run twice.
	repeatable bool
	use        int64 // rank of the last use
	at         int64 // reading of the start; of the end once it is not running
	index      uint64
	result     *Stored
	waiters    []Waiter
	links      [numOrders]links
}

type links struct{ prev, next *entry }

// order is what a list is ordered by.
type order uint8

const (
	byUse order = iota
	byEnd
	numOrders
)

// rank returns the place of e in the list of o.
func (e *entry) rank(o order) int64 {
	if o == byUse {
		return e.use
	}
	return e.at
}

// size returns the bytes that e is accounted with.
func (e *entry) size() int64 {
	if e.result == nil {
		return 0
	}
	return e.result.size()
}

// list is the entries of a shard that are not running, in one order.
type list struct{ head, tail *entry }

// link puts e behind its equals. It searches from the tail, where e belongs in most cases.
func (s *shard) link(o order, e *entry) {
	l := &s.lists[o]
	at := l.tail
	for at != nil && at.rank(o) > e.rank(o) {
		at = at.links[o].prev
	}
	n := &e.links[o]
	n.prev = at
	if at != nil {
		n.next, at.links[o].next = at.links[o].next, e
	} else {
		n.next, l.head = l.head, e
	}
	if n.next != nil {
		n.next.links[o].prev = e
	} else {
		l.tail = e
	}
	s.noteFirst()
}

// unlink takes e out of a list that it is in.
func (s *shard) unlink(o order, e *entry) {
	l, n := &s.lists[o], &e.links[o]
	if n.next != nil {
		n.next.links[o].prev = n.prev
	} else {
		l.tail = n.prev
	}
	if n.prev != nil {
		n.prev.links[o].next = n.next
	} else {
		l.head = n.next
	}
	*n = links{}
	s.noteFirst()
}

// noteFirst shows the rank of the least recently used entry to those who look without the mutex.
func (s *shard) noteFirst() {
	rank := int64(none)
	if head := s.lists[byUse].head; head != nil {
		rank = head.use
	}
	if s.first.Load() != rank {
		s.first.Store(rank)
	}
}
