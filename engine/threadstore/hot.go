package threadstore

import (
	"sort"
	"sync"
	"sync/atomic"

	"trunkline/engine/journal"
)

// segmentBytes is the size of a segment. A row that is longer has its own.
const segmentBytes = 256 << 10

// segment is a piece of memory with the rows of the latest changes of all threads, in the order of
// their records. Bytes that an entry names are never written again.
type segment struct {
	buf     []byte
	used    int
	entries []entry
}

// overhead is about how many bytes a full segment takes beside its rows: an entry and a ref each.
func (s *segment) overhead() int { return 64 * len(s.entries) }

// entry is a row in a segment.
type entry struct {
	thread *thread // of a message; nil for a row that is only written
	seq    uint64
	index  journal.Index
	off    uint32
	end    uint32
	key    uint32 // length of the key in front of a row that is only written
}

// ref is a message in memory.
type ref struct {
	seg      *segment
	index    journal.Index
	off, end uint32
}

func (r *ref) row() []byte { return r.seg.buf[r.off:r.end] }

// hot is the memory of the latest rows: a queue of segments. Entries are appended at its end,
// stored by a storer, and dropped at its front.
type hot struct {
	size     int // of a segment
	mu       sync.Mutex
	segments []*segment // the last one is open
	bytes    int        // of all segments, with the overhead of all but the last one
	stored   int        // segments in front all of whose entries are stored
	next     int        // of the segment after those: the entry that is stored next
	unstored atomic.Int64
}

// add copies a row and notes it. Caller holds mu.
func (h *hot) add(row []byte, e entry) ref {
	s := h.room(len(row))
	e.off, e.end = uint32(s.used), uint32(s.used+len(row))
	s.used += copy(s.buf[s.used:], row)
	s.entries = append(s.entries, e)
	h.unstored.Add(int64(len(row)))
	return ref{seg: s, index: e.index, off: e.off, end: e.end}
}

// room returns a segment with room for n bytes. Caller holds mu.
func (h *hot) room(n int) *segment {
	if k := len(h.segments); k > 0 {
		if s := h.segments[k-1]; s.used+n <= len(s.buf) {
			return s
		}
	}
	s := &segment{buf: make([]byte, max(n, h.size))}
	if k := len(h.segments); k > 0 {
		full := h.segments[k-1]
		h.bytes += full.overhead()
		s.entries = make([]entry, 0, len(full.entries)+len(full.entries)/8)
	}
	h.segments = append(h.segments, s)
	h.bytes += len(s.buf)
	return s
}

// span is entries of a segment.
type span struct {
	seg     *segment
	entries []entry
}

// take appends the entries that come next and have an index up to durable: about storeBytes of
// them.
func (h *hot) take(spans []span, durable journal.Index) []span {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.next
	for at, bytes := h.stored, 0; at < len(h.segments) && bytes < storeBytes; at, next = at+1, 0 {
		s := h.segments[at]
		entries := s.entries[next:]
		n := sort.Search(len(entries), func(i int) bool { return entries[i].index > durable })
		if n > 0 {
			spans = append(spans, span{s, entries[:n:n]})
			bytes += int(entries[n-1].end - entries[0].off)
		}
		if n < len(entries) {
			break
		}
	}
	return spans
}

// took notes that what take returned is stored, and returns the index of the last entry.
func (h *hot) took(spans []span) (index journal.Index) {
	var bytes int64
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range spans {
		entries := spans[i].entries
		for k := range entries {
			bytes += int64(entries[k].end - entries[k].off)
		}
		index = entries[len(entries)-1].index
		if h.segments[h.stored] != spans[i].seg {
			h.stored, h.next = h.stored+1, 0
		}
		h.next += len(entries)
	}
	h.unstored.Add(-bytes)
	return index
}

// seal has what is added next go into another segment.
func (h *hot) seal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := len(h.segments); k > 0 {
		h.segments[k-1].used = len(h.segments[k-1].buf)
	}
}

// drop takes the oldest segment out if there is more memory than limit and all of the segment is
// stored.
func (h *hot) drop(limit int) *segment {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes <= limit || h.stored == 0 || len(h.segments) == 1 {
		return nil
	}
	s := h.segments[0]
	h.segments[0] = nil
	h.segments = h.segments[1:]
	h.stored--
	h.bytes -= len(s.buf) + s.overhead()
	return s
}
