package idem

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

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

// Key names one request: the SHA-256 over scope, tool and the caller's idempotency key (D10).
type Key struct{ Hash [sha256.Size]byte }

// keyRoom is what KeyOf hashes without an allocation: scope, aid and key of 256 bytes each
// (toolhost §6).
const keyRoom = 1024

// KeyOf returns the Key of a principal's scope, a tool's aid and an idempotency key: that of their
// name. It keeps nothing and does not allocate for up to 1,012 bytes in all.
func KeyOf(scope, aid, key []byte) Key {
	var room [keyRoom]byte
	return Key{sha256.Sum256(AppendName(room[:0], scope, aid, key))}
}

// AppendName appends a scope, an aid and a key, each behind its length, so that no two triples have
// one name. It allocates only if dst has no room.
func AppendName(dst, scope, aid, key []byte) []byte {
	return appendSized(appendSized(appendSized(dst, scope), aid), key)
}

func appendSized(dst, part []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...)
}

// shard returns the number of the shard of k: its own first bytes are as good as any hash of them.
func (k *Key) shard() uint64 { return binary.LittleEndian.Uint64(k.Hash[:]) }

// Stored is the outcome of one execution (toolhost §4.3: every outcome of an execution that
// started, D17). It is shared and immutable, and stays valid after its entry is gone.
type Stored struct {
	// Status is the caller's code of how the tool ended.
	Status uint8
	// Output and Dispatch are JSON texts; empty ones come back as nil.
	Output   []byte
	Error    string
	Dispatch []byte
	// Token is the SHA-256 of the lease token that the execution consumed, if HasToken (D20).
	Token    [32]byte
	HasToken bool
	// Index is that of the change which ended the execution; 0 without a journal. Finish sets it.
	Index uint64
}

// size returns the bytes of r that count against Config.MaxBytes: its texts. It does not allocate.
func (r *Stored) size() int64 { return int64(len(r.Output) + len(r.Error) + len(r.Dispatch)) }

// clone returns a copy of r that shares no memory with it, so that what is kept is what is counted.
// Wrong bytes in texts become U+FFFD: other text could be neither answered nor journalled.
func (r *Stored) clone() *Stored {
	c := *r
	c.Output, c.Dispatch = text(r.Output), text(r.Dispatch)
	c.Error = strings.Clone(strings.ToValidUTF8(r.Error, "\uFFFD"))
	c.Index = 0
	return &c
}

func text(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}
