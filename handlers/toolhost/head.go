package toolhost

import (
	"trunkline/codec/jsonx"
	"trunkline/engine/link"
)

// Callers tend to name one tool again and again, and to name it first. A line that begins with the
// head of the tool before is not scanned up to there, and a line that is nothing else not at all.

// headBegin and headEnd stand before and behind the AID in a head.
const (
	headBegin = `{"aid":"`
	headEnd   = `"`
)

// bareEnd is what follows a head in a line that has no other member. maxBare bounds how many such
// lines are answered before the limits of a turn are looked at.
const (
	bareEnd = "}\n"
	maxBare = 64
)

// headOf returns the head of lines that name aid, nil if its spelling there is another one, or if
// it may be an internal operation.
func headOf(aid string) []byte {
	head := jsonx.AppendString([]byte(headBegin[:len(headBegin)-1]), aid)
	if len(aid) == 0 || len(aid) > maxAID || aid[0] == '_' || len(head) != len(headBegin)+len(aid)+len(headEnd) {
		return nil
	}
	return head
}

// follows reports whether line begins with the head of e and another member.
func (e *Entry) follows(line []byte) bool {
	n := len(e.head)
	return n > 0 && len(line) > n && line[n] == ',' && string(line[:n]) == string(e.head)
}

// bare reports whether in begins with a whole line that is the head and the end of the object.
func (e *Entry) bare(in []byte) bool {
	n := len(e.head)
	return n > 0 && len(in) >= n+len(bareEnd) && string(in[n:n+len(bareEnd)]) == bareEnd && string(in[:n]) == string(e.head)
}

// answersBare reports whether nothing but running e stands between a bare line and its reply.
func (s *session) answersBare(e *Entry) bool {
	return e.Fast && e.Breaker == nil && (e.Tier == 0 || !s.enforced()) && s.authed && !s.draining && !s.skipping &&
		len(e.head) < s.srv.cfg.MaxLineBytes
}

// serveBare answers the bare lines that in begins with, at least one and at most most, and no more
// once the replies of the turn, which begin at out[start], are larger than it may hold.
func (s *session) serveBare(e *Entry, in, out []byte, start, most int) (used, lines int, outAfter []byte) {
	c := s.takeCall()
	c.entry, c.id = e, requestID{}
	c.req.input = append(c.req.input[:0], emptyObject...)
	bad := int64(0)
	for more := true; more; more = lines < most && len(out)-start <= link.DefaultUnsentBytes && e.bare(in[used:]) {
		c.fast, c.lean = true, !s.observed
		at := len(out)
		out = c.run(out)
		bad += failed(out[at:])
		c.next()
		used += len(e.head) + len(bareEnd)
		lines++
	}
	s.spare, s.scanned = c, 0
	s.answered.Add(e.index, s.came, int64(lines), bad)
	return used, lines, out
}
