package kernel

import (
	"sync"
)

// rowChunk is the number of rows allocated together: 64 rows of 128 bytes are exactly a size class
// of the Go allocator, and one whose objects begin on cache lines.
const rowChunk = 64

// row is one process. It holds no pointers. See the package comment for which lock guards what. It
// is two cache lines, of which the first, up to the fifth counter, is all that most requests need.
type row struct {
	text      uint32    // arena block: pid, request id, user id, session id, one after the other
	reason    uint32    // arena block of the BLOCKED reason; valid if reasonLen > 0
	node      uint32    // scheduler node; in a free slot the next free slot
	lens      [4]uint16 // of the identifiers
	reasonLen uint16
	state     State
	priority  Priority
	usage     Usage
	created   uint64 // creation sequence; 0 in a free slot
	// clock is in milliseconds: the elapsed RUNNING time, or while RUNNING the instant at which
	// that time would have been 0. Starting and stopping are both clock = now - clock.
	clock int64
	// recorded is the index of the last record about the process, 0 if there is none. It is guarded
	// by the shard's mutex, also where a change itself is covered by the scheduling lock.
	recorded uint64
	quota    uint32 // of the shard's quotas
	_        [12]byte
}

// record sets index as that of the last record about r; 0 is none. Caller holds the shard's mutex.
func (r *row) record(index uint64) {
	if index != 0 {
		r.recorded = index
	}
}

// elapsed returns the total RUNNING time in milliseconds at nowMs, with the present run (kernel-ipc
// §4.7).
func (r *row) elapsed(nowMs int64) int64 {
	if r.state == Running {
		return max(nowMs-r.clock, 0)
	}
	return r.clock
}

func (r *row) textLen() int {
	return int(r.lens[0]) + int(r.lens[1]) + int(r.lens[2]) + int(r.lens[3])
}

// hugeFrom is from how many rows on a shard asks for huge pages: some 65,000 rows over 64 shards,
// 25 MiB. Smaller tables would gain little and could waste most of one.
const hugeFrom = 1024

// shard is a part of the table under one mutex.
type shard struct {
	// The first cache line, up to the entries of the index, is what every look-up needs.
	mu     sync.Mutex
	warm   warmed
	rows   []*[rowChunk]row
	index  index
	texts  arena
	quotas quotas
	used   uint32       // slots ever used
	free   uint32       // first free slot among them, or none
	huge   *hugeAdvisor // of the kernel; nil: small pages
	change Change       // what the journal is shown; guarded by mu
	_      [88]byte     // keeps the next shard's mutex off this one's last cache line, and on the start of its own
}

func (s *shard) init(h *hugeAdvisor) {
	s.huge, s.texts.huge = h, h
	s.free = none
	s.texts.init()
	s.quotas.init()
}

func (s *shard) row(slot uint32) *row { return &s.rows[slot/rowChunk][slot%rowChunk] }

// enter makes slot, whose pid is kept at text, one that find finds.
func (s *shard) enter(tag, slot, text uint32) {
	if s.index.full() {
		s.index.grow(s.huge)
	}
	s.index.insert(tag, slot, text)
}

// find returns the slot of pid, or none. Caller holds the scheduling lock or mu.
func (s *shard) find(tag uint32, pid []byte) uint32 {
	for e, pos := s.index.probe(tag, tag); e != nil; e, pos = s.index.probe(tag, pos) {
		if slot := e.slot - 1; s.texts.holds(e.text, pid) && int(s.row(slot).lens[0]) == len(pid) {
			return slot
		}
	}
	return none
}

// isRow reports whether r, a row of the shard, is that of pid. Caller holds the scheduling lock or
// mu.
func (s *shard) isRow(r *row, pid []byte) bool {
	return r.created != 0 && int(r.lens[0]) == len(pid) && s.texts.holds(r.text, pid)
}

// pid returns r's pid in place. Caller holds the scheduling lock or mu; so for the others.
func (s *shard) pid(r *row) []byte { return s.texts.bytes(r.text, int(r.lens[0])) }

func (s *shard) userID(r *row) []byte {
	start := int(r.lens[0]) + int(r.lens[1])
	return s.texts.bytes(r.text, start+int(r.lens[2]))[start:]
}

func (s *shard) sessionID(r *row) []byte {
	n := r.textLen()
	return s.texts.bytes(r.text, n)[n-int(r.lens[3]):]
}

func (s *shard) reasonOf(r *row) []byte {
	if r.reasonLen == 0 {
		return nil
	}
	return s.texts.bytes(r.reason, int(r.reasonLen))
}

// takeSlot returns a free slot. Caller holds the scheduling lock and mu; so for the writers below.
func (s *shard) takeSlot() uint32 {
	if slot := s.free; slot != none {
		s.free = s.row(slot).node
		return slot
	}
	slot := s.used
	s.used++
	if int(slot/rowChunk) == len(s.rows) {
		s.rows = append(s.rows, newPiece(s.huge, slot >= hugeFrom, (*stocks).ofRows))
	}
	return slot
}

func (s *shard) putSlot(slot uint32) {
	*s.row(slot) = row{node: s.free}
	s.free = slot
}

// keepText stores the four identifiers of c in one block.
func (s *shard) keepText(r *row, c *Change) {
	ids := [4][]byte{c.PID, c.RequestID, c.UserID, c.SessionID}
	for i, id := range ids {
		r.lens[i] = uint16(len(id))
	}
	n := r.textLen()
	r.text = s.texts.alloc(n)
	block := s.texts.bytes(r.text, n)
	for _, id := range ids {
		block = block[copy(block, id):]
	}
}

func (s *shard) keepReason(r *row, reason []byte) {
	s.dropReason(r)
	if len(reason) == 0 {
		return
	}
	r.reason = s.texts.alloc(len(reason))
	r.reasonLen = uint16(copy(s.texts.bytes(r.reason, len(reason)), reason))
}

func (s *shard) dropReason(r *row) {
	if r.reasonLen > 0 {
		s.texts.release(r.reason)
		r.reasonLen = 0
	}
}

// fill copies r to out, if out is wanted. Caller holds mu.
func (s *shard) fill(out *PCB, r *row) {
	if out == nil {
		return
	}
	n := r.textLen()
	b := append(out.buf[:0], s.texts.bytes(r.text, n)...)
	out.buf = b
	p1 := int(r.lens[0])
	p2 := p1 + int(r.lens[1])
	p3 := p2 + int(r.lens[2])
	out.PID, out.RequestID, out.UserID, out.SessionID = b[:p1:p1], b[p1:p2:p2], b[p2:p3:p3], b[p3:n:n]
	out.State, out.Priority, out.Created = r.state, r.priority, r.created
	out.Usage.set(&r.usage)
}

// index finds slots by hash: open addressing with linear probing. An entry's tag is 32 bits of the
// key's hash and gives the home position, so that growth and deletion need no row. Deletion shifts
// the following entries back: there are no tombstones, and look-ups stay short.
type index struct {
	entries []entry
	n       int
}

// entry is one place of an index.
type entry struct {
	tag  uint32
	slot uint32 // plus one; 0 in an empty entry
	// text is where the key is kept. It stands here, and not only in the row, so that a look-up can
	// fetch the key and the row at the same time: at a million rows each is a wait for memory.
	text uint32
}

// minIndex is the first size: a cache line of entries or so.
const minIndex = 8

// probe returns the first entry at or after pos in tag's run whose tag matches, and the position
// behind it; nil when the run ends. Start with pos = tag. The entry is valid until the index
// changes.
func (x *index) probe(tag, pos uint32) (e *entry, next uint32) {
	if len(x.entries) == 0 {
		return nil, 0
	}
	mask := uint32(len(x.entries) - 1)
	for {
		e := &x.entries[pos&mask]
		if e.slot == 0 {
			return nil, 0
		}
		pos++
		if e.tag == tag {
			return e, pos
		}
	}
}

// insert adds slot, whose key is kept at text, under tag. It grows at a load of 3/4, where an
// unsuccessful search still ends within about a cache line.
func (x *index) insert(tag, slot, text uint32) {
	if x.full() {
		x.grow(nil)
	}
	x.place(entry{tag, slot + 1, text})
	x.n++
}

func (x *index) place(e entry) {
	mask := uint32(len(x.entries) - 1)
	pos := e.tag & mask
	for x.entries[pos].slot != 0 {
		pos = (pos + 1) & mask
	}
	x.entries[pos] = e
}

// full reports whether the next insert grows it.
func (x *index) full() bool { return (x.n+1)*4 > len(x.entries)*3 }

// grow doubles it. h may be nil: see hugeSlice.
func (x *index) grow(h *hugeAdvisor) {
	old := x.entries
	x.entries = hugeSlice[entry](h, max(minIndex, 2*len(old)))
	clear(x.entries) // as newPiece writes
	for _, e := range old {
		if e.slot != 0 {
			x.place(e)
		}
	}
}

// remove deletes the entry of slot under tag, which must be there.
func (x *index) remove(tag, slot uint32) {
	mask := uint32(len(x.entries) - 1)
	hole := tag & mask
	for x.entries[hole].slot != slot+1 {
		hole = (hole + 1) & mask
	}
	for pos := (hole + 1) & mask; x.entries[pos].slot != 0; pos = (pos + 1) & mask {
		home := x.entries[pos].tag & mask
		// The entry may move back only if the hole is not before its home.
		if (pos-home)&mask >= (pos-hole)&mask {
			x.entries[hole] = x.entries[pos]
			hole = pos
		}
	}
	x.entries[hole] = entry{}
	x.n--
}
