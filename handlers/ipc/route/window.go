package route

import "trunkline/codec/frame"

// keepBytes is how large an empty buffer may be that is kept for later.
const keepBytes = 64 << 10

// own is the leg of a slot that the session fills itself.
const own = -1

// slot is a request whose reply has not left.
type slot struct {
	next  uint32 // the next slot of its leg
	leg   int8
	named bool // its reply has an identifier
	done  bool // the reply is there: parked, or in text
	size  int  // of the parked reply
	text  []byte
}

// window is the requests of a session in their order. A slot is known by its number, which counts
// up; slots is a ring of 2^n. The zero window is empty.
type window struct {
	slots      []slot
	first, end uint32
}

func (w *window) len() int { return int(w.end - w.first) }

func (w *window) at(n uint32) *slot { return &w.slots[n&uint32(len(w.slots)-1)] }

// push adds a slot and returns its number. It allocates only while the window grows.
func (w *window) push(leg int, named bool) (n uint32) {
	if w.len() == len(w.slots) {
		grown := window{slots: make([]slot, max(2*len(w.slots), 16)), first: w.first, end: w.end}
		for i := w.first; i != w.end; i++ {
			*grown.at(i) = *w.at(i)
		}
		*w = grown
	}
	n = w.end
	w.end++
	*w.at(n) = slot{leg: int8(leg), named: named}
	return n
}

// answered takes the reply of a leg to its oldest request: to the client if it is next, else it is
// parked. wait: too much is parked for that. ok is false for a reply that cannot be one.
func (s *session) answered(l *leg, reply []byte) (wait, ok bool) {
	if l.unanswered == 0 {
		return false, false
	}
	n := l.oldest
	sl := s.window.at(n)
	if sl.named && isNameless(reply) {
		return false, false // the refusal of a connection, not of the request
	}
	if n != s.window.first && s.parked > 0 && s.parked+len(reply) > unsentBytes {
		return true, true
	}
	l.oldest = sl.next
	l.unanswered--
	l.finished()
	if n != s.window.first {
		sl.done, sl.size = true, len(reply)
		l.parked.put(reply)
		s.parked += len(reply)
		return false, true
	}
	s.out = append(s.out, reply...)
	s.window.first++
	s.settle()
	return false, true
}

// fill gives an own slot its reply.
func (s *session) fill(n uint32, text []byte) {
	sl := s.window.at(n)
	sl.done, sl.text = true, text
	s.settle()
}

// settle passes on the replies that are next.
func (s *session) settle() {
	for ; s.window.len() > 0; s.window.first++ {
		sl := s.window.at(s.window.first)
		if !sl.done {
			break
		}
		if sl.leg == own {
			s.out = append(s.out, sl.text...)
			sl.text = nil
			continue
		}
		s.out = append(s.out, s.legs[sl.leg].parked.take(sl.size)...)
		s.parked -= sl.size
	}
}

// queue is bytes that are taken from the front. The zero queue is empty.
type queue struct {
	b  []byte
	at int
}

func (q *queue) len() int     { return len(q.b) - q.at }
func (q *queue) rest() []byte { return q.b[q.at:] }

// put appends p. It allocates only while the queue grows.
func (q *queue) put(p []byte) {
	if q.at > keepBytes && q.at > len(q.b)/2 {
		q.b = q.b[:copy(q.b, q.b[q.at:])]
		q.at = 0
	}
	q.b = append(q.b, p...)
}

// take removes n bytes and returns them; they are valid until the next put.
func (q *queue) take(n int) []byte {
	p := q.b[q.at : q.at+n]
	if q.at += n; q.at == len(q.b) {
		if q.b, q.at = q.b[:0], 0; cap(q.b) > keepBytes {
			q.b = nil
		}
	}
	return p
}

// isNameless reports whether a reply has an empty identifier.
func isNameless(reply []byte) bool {
	const at = frame.HeaderSize + len("\x83\xa2id")
	return len(reply) > at && reply[at] == 0xa0
}
