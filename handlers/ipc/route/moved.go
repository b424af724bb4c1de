package route

import (
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// noOwner is the refusal of a request whose partition no node serves: its owner hands it over, or
// cannot be reached within Config.Hold. The request has had no effect.
const noOwner = "No node serves the partition now; try again"

// noOwnerRest is the payload of that behind the identifier.
var noOwnerRest = mpack.AppendError(nil, nil, wire.Unavailable.String(), noOwner, mpack.Extras{Retryable: true})[len("\x83\xa2id\xa0"):]

// refuses reports whether a service that ends refuses a request so; rest is behind the identifier.
func (s *session) refuses(t frame.Type, rest []byte) bool {
	if t != frame.Error {
		return false
	}
	value, ok := s.content(rest, errorRest)
	return ok && string(member(value, "code").Data) == wire.Unavailable.String()
}

// leave ends the client's connection behind the refusal of a request that l has not brought to its
// owner: what follows is refused as well or not read, so that it has no effect before that.
func (s *session) leave(l *leg) {
	if !l.refuse() {
		s.fail(l.partition, errLeg)
		return
	}
	if !s.closing {
		s.closing = true
		s.r.broken.Add(1)
	}
	s.port.Wake()
}

// refuse answers the requests that the leg has not sent. false: parts of calls are among them.
func (l *leg) refuse() (all bool) {
	s := l.s
	var ids [][]byte
	for at := 0; at < len(l.unsent); {
		_, payload, n := frame.Split(l.unsent[at:], s.r.cfg.MaxFrameBytes)
		var q mpack.Request
		if _, _, ours := s.cutID(payload); ours || n <= 0 || s.scan.ParseRequest(payload, &q) != mpack.NoProblem {
			return false
		}
		ids, at = append(ids, q.ID), at+n
	}
	n, before := l.oldest, l.unanswered-len(ids) // the last ones of the leg
	for i := range l.unanswered {
		sl := s.window.at(n)
		if i == before-1 {
			l.newest = n
		}
		n = sl.next
		if i >= before {
			sl.leg, sl.done, sl.text = own, true, s.appendFrame(nil, frame.Error, ids[i-before], noOwnerRest)
		}
	}
	s.waiting -= len(l.unsent)
	l.unsent, l.queued, l.unanswered = nil, 0, before
	s.settle()
	return true
}
