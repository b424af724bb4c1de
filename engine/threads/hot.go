package threads

import (
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

// entry is a row in a segment.
type entry struct {
	thread *thread // of a message; nil for a row that is only written
	seq    uint64
	index  journal.Index
	off    int
	key    int // length of the key in front of a row that is only written
	end    int
}

// ref is a message in memory.
type ref struct {
	seg      *segment
	index    journal.Index
	off, end int
}

func (r *ref) row() []byte { return r.seg.buf[r.off:r.end] }

// hot is the memory of the latest rows: a queue of segments. Entries are appended at its end,
// stored by a storer, and dropped at its front.
type hot struct {
	size     int // of a segment
	mu       sync.Mutex
	segments []*segment // the last one is open
	bytes    int        // of all segments
	stored   int        // segments in front all of whose entries are stored
	next     int        // of the segment after those: the entry that is stored next
	unstored atomic.Int64
}

// add copies a row and notes it. Caller holds mu.
func (h *hot) add(row []byte, e entry) ref {
	s := h.room(len(row))
	e.off, e.end = s.used, s.used+len(row)
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
	h.segments = append(h.segments, s)
	h.bytes += len(s.buf)
	return s
}

// take returns the entries that come next and have an index up to durable, of one segment.
func (h *hot) take(durable journal.Index) (s *segment, entries []entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.stored < len(h.segments)-1 && h.next == len(h.segments[h.stored].entries) {
		h.stored++
		h.next = 0
	}
	if h.stored == len(h.segments) {
		return nil, nil
	}
	s = h.segments[h.stored]
	entries = s.entries[h.next:]
	for i := range entries {
		if entries[i].index > durable {
			return s, entries[:i]
		}
	}
	return s, entries
}

// took notes that the n entries which take returned are stored.
func (h *hot) took(entries []entry) {
	var bytes int64
	for i := range entries {
		bytes += int64(entries[i].end - entries[i].off)
	}
	h.unstored.Add(-bytes)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next += len(entries)
}

// drop takes the oldest segment out if there is more memory than limit and all of the segment is
// stored.
func (h *hot) drop(limit int) *segment {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes <= limit || h.stored == 0 {
		return nil
	}
	s := h.segments[0]
	h.segments[0] = nil
	h.segments = h.segments[1:]
	h.stored--
	h.bytes -= len(s.buf)
	return s
}
