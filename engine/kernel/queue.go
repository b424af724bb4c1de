package kernel

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// scheduler holds every process's node: the ready queue, the leases and the completed. Guarded by
// the scheduling lock.
type scheduler struct {
	nodes     nodeSlab
	ready     [NumPriorities]readyQueue
	leases    list // by end of lease
	completed list // by completion
	depth     int64
	// loose means that the lists and heaps are not kept: queueState, sequences and stamps of the
	// nodes are enough, and link builds the rest. Records that meet a snapshot taken later would
	// each have to search for their place.
	loose bool
}

// readyQueue is one priority's queue by entry into READY. New entries go to the tail of the FIFO;
// those that come back to their old place after a lease go to the heap. Removal from anywhere is
// O(1) from the FIFO, O(log n) from the heap, and leaves no dead entries.
type readyQueue struct {
	fifo list
	back []uint32 // binary heap of nodes by ready sequence
}

func (s *scheduler) init() {
	s.nodes.init()
	s.leases.init()
	s.completed.init()
	for i := range s.ready {
		s.ready[i].fifo.init()
	}
}

// best returns the READY process to run next, or none (kernel-ipc §4.4, D21).
func (s *scheduler) best() uint32 {
	if s.depth == 0 {
		return none
	}
	for p := range s.ready {
		q := &s.ready[p]
		i := q.fifo.head
		if len(q.back) > 0 && (i == none || s.nodes.at(q.back[0]).ready < s.nodes.at(i).ready) {
			i = q.back[0]
		}
		if i != none {
			return i
		}
	}
	return none
}

// enqueue puts node i, which is nowhere, at the tail of its priority with the READY sequence seq.
func (s *scheduler) enqueue(i uint32, seq uint64) {
	n := s.nodes.at(i)
	n.ready = seq
	n.where = queued
	s.depth++
	if !s.loose {
		s.ready[n.priority].fifo.pushBack(&s.nodes, i)
	}
}

// bringBack puts node i, which was handed out, to its old place.
func (s *scheduler) bringBack(i uint32) {
	n := s.nodes.at(i)
	if n.where == leased && !s.loose {
		s.leases.remove(&s.nodes, i)
	}
	n.where = returned
	s.depth++
	if s.loose {
		return
	}
	q := &s.ready[n.priority]
	q.back = append(q.back, i)
	s.up(q.back, len(q.back)-1)
}

// handOut moves node i from the queue to the leases, or leaves it to its holder if end is noExpiry.
func (s *scheduler) handOut(i uint32, end int64) {
	s.leave(i)
	n := s.nodes.at(i)
	if end == noExpiry {
		n.where = handedOut
		return
	}
	n.where, n.stamp = leased, end
	if !s.loose {
		s.leases.insertByStamp(&s.nodes, i)
	}
}

// leave takes node i, READY, out of the queue or the leases.
func (s *scheduler) leave(i uint32) {
	n := s.nodes.at(i)
	if n.where == queued || n.where == returned {
		s.depth--
	}
	if !s.loose {
		s.unlink(i, n)
	}
	n.where = nowhere
}

// unlink takes node i out of the list or heap that holds a READY one.
func (s *scheduler) unlink(i uint32, n *node) {
	switch n.where {
	case queued:
		s.ready[n.priority].fifo.remove(&s.nodes, i)
	case returned:
		s.removeBack(&s.ready[n.priority], int(n.prev))
		n.prev = none
	case leased:
		s.leases.remove(&s.nodes, i)
	}
}

// complete puts node i, which is nowhere, among the completed. index is that of its record.
func (s *scheduler) complete(i uint32, at int64, index uint64) {
	n := s.nodes.at(i)
	n.where, n.stamp, n.ready = completed, at, index
	if !s.loose {
		s.completed.insertByStamp(&s.nodes, i)
	}
}

// forget takes node i out of the completed and frees it.
func (s *scheduler) forget(i uint32) {
	if !s.loose {
		s.completed.remove(&s.nodes, i)
	}
	s.nodes.put(i)
}

// removeBack removes the heap entry at position pos of q.
func (s *scheduler) removeBack(q *readyQueue, pos int) {
	last := len(q.back) - 1
	moved := q.back[last]
	q.back = q.back[:last]
	if pos == last {
		return
	}
	q.back[pos] = moved
	s.down(q.back, pos)
	s.up(q.back, pos)
}

func (s *scheduler) up(h []uint32, pos int) {
	i := h[pos]
	n := s.nodes.at(i)
	for pos > 0 {
		parent := (pos - 1) / 2
		pn := s.nodes.at(h[parent])
		if pn.ready <= n.ready {
			break
		}
		h[pos] = h[parent]
		pn.prev = uint32(pos)
		pos = parent
	}
	h[pos] = i
	n.prev = uint32(pos)
}

func (s *scheduler) down(h []uint32, pos int) {
	i := h[pos]
	n := s.nodes.at(i)
	for child := 2*pos + 1; child < len(h); child = 2*pos + 1 {
		if child+1 < len(h) && s.nodes.at(h[child+1]).ready < s.nodes.at(h[child]).ready {
			child++
		}
		cn := s.nodes.at(h[child])
		if n.ready <= cn.ready {
			break
		}
		h[pos] = h[child]
		cn.prev = uint32(pos)
		pos = child
	}
	h[pos] = i
	n.prev = uint32(pos)
}

// noExpiry is the end of a lease that never ends: the process stays handed out until it is
// scheduled again or changes state (D20, dequeue_lease_secs = 0).
const noExpiry = math.MaxInt64

// leaseEnd returns when a lease given now ends.
func (k *Kernel) leaseEnd() int64 {
	if k.cfg.DequeueLease == 0 || k.now > noExpiry-int64(k.cfg.DequeueLease) {
		return noExpiry
	}
	return k.now + int64(k.cfg.DequeueLease)
}

// tick records now and takes back expired leases (kernel-ipc §5.2, D22). Loops read their clocks at
// slightly different moments: time never runs backwards here. Caller holds the scheduling lock.
func (k *Kernel) tick(now Instant) {
	k.now = max(k.now, now.Mono)
	for i := k.sched.leases.head; i != none && k.sched.nodes.at(i).stamp <= k.now; i = k.sched.leases.head {
		if k.cfg.Journal != nil {
			k.journalQueue(ChangeLeaseEnd, k.placeOf(i), 0)
		}
		k.applyReturn(i)
	}
}

// ranked is a node or a reference with its place in an order.
type ranked struct {
	key uint64
	i   uint32
}

// digitBits is how much of a key one pass sorts by: its counters stay in the first-level cache.
const digitBits = 11

// digitFrom is the length from which on passes over all of it are faster than comparing.
const digitFrom = 1 << 12

// rank sorts by key and leaves equal ones in their order. There is nothing to do for what comes in
// order. Many are placed by their keys, if those are different and close together, as sequences
// mostly are, else sorted digit by digit, which needs as much memory again.
func rank(r []ranked, h *hugeAdvisor) []ranked {
	byKey := func(a, b ranked) int { return cmp.Compare(a.key, b.key) }
	switch {
	case slices.IsSortedFunc(r, byKey):
		return r
	case len(r) < digitFrom:
		slices.SortStableFunc(r, byKey)
		return r
	}
	low, high := r[0].key, r[0].key
	for i := range r {
		low, high = min(low, r[i].key), max(high, r[i].key)
	}
	if high-low < closeKeys*uint64(len(r)) && rankClose(r, hugeSlice[uint32](h, int(high-low)+1), low) {
		return r
	}
	return rankDigits(r, hugeSlice[ranked](h, len(r)), low, high)
}

// closeKeys is how many numbers there may be to a key where keys are placed: more would take longer
// to walk than the keys to sort.
const closeKeys = 4

// rankClose sorts r by way of places, one for each number from low on, which are 0. It returns
// false, with r as it was, where two keys are equal.
func rankClose(r []ranked, places []uint32, low uint64) bool {
	clear(places) // as newPiece writes
	for j := range r {
		at := &places[r[j].key-low]
		if *at != 0 || r[j].i == none {
			return false
		}
		*at = r[j].i + 1
	}
	n := 0
	for key, i := range places {
		if i != 0 {
			r[n] = ranked{low + uint64(key), i - 1}
			n++
		}
	}
	return true
}

// rankDigits sorts r, whose keys are from low to high, with the help of spare, of the same length,
// and returns the sorted one of them.
func rankDigits(r, spare []ranked, low, high uint64) []ranked {
	for shift := 0; shift < bits.Len64(high-low); shift += digitBits {
		var starts [1 << digitBits]uint32
		for i := range r {
			starts[digit(r[i].key-low, shift)]++
		}
		sum := uint32(0)
		for d, n := range starts {
			starts[d], sum = sum, sum+n
		}
		for i := range r {
			at := &starts[digit(r[i].key-low, shift)]
			spare[*at] = r[i]
			*at++
		}
		r, spare = spare, r
	}
	return r
}

func digit(v uint64, shift int) uint64 { return v >> shift & (1<<digitBits - 1) }

// byStamp makes a key of a stamp, which may be negative.
func byStamp(stamp int64) uint64 { return uint64(stamp) ^ 1<<63 }
