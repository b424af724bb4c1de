// Package mpack reads and writes the MessagePack of the kernel protocol: request views that point
// into the received bytes, and appenders for replies with pre-encoded keys.
//
// Reading is one pass over the payload. ParseRequest finds id, service, method and body in any key
// order and checks the whole payload against the profile of kernel-ipc §3.3 on the way (string keys
// only, valid UTF-8, no bin or ext, at most wire.MaxMsgpackDepth levels, nothing after the
// top-level value). The handler that knows a body's fields then collects them with ParseFields.
// Both are iterative: nesting costs no stack.
//
// What was checked once is read again without checking: Next steps over a value, OpenMap and
// OpenList iterate over the members of a container, ReadValue decodes one value.
//
// Writing uses the smallest size class for everything and the unsigned classes for non-negative
// integers. Keys go out in the order kernel-ipc lists them. A file per message group holds the
// layout of its replies.
//
// Everything returned by reading is lent: it points into the payload and dies with it.
package mpack

import (
	"encoding/binary"
)

// Request is the view of one request's payload (kernel-ipc §3.1). Its slices point into the payload
// and die with it; the value is reused by ParseRequest. A member that is absent, nil or of another
// type than wanted is nil; an empty string is non-nil and empty.
type Request struct {
	// ID, Service and Method are the strings of those names; the last one of a repeated key counts.
	ID, Service, Method []byte
	// IDIsOther, ServiceIsOther and MethodIsOther are true when something else than a string or nil
	// stood there.
	IDIsOther, ServiceIsOther, MethodIsOther bool
	// Body is the encoded map of the method's fields.
	Body []byte
	// BodyIsOther is true when a body stood there that is neither nil nor a map.
	BodyIsOther bool
}

// The encoded keys of a request as the words they are read in.
const (
	headID      = 0x6469a284          // map of four, "id"
	headService = 0x656369767265_73a7 // "service"
	headMethod  = 0x646f6874656d_a6   // "method", seven bytes
	headBody    = 0x646f62a4          // "bod", then a 'y'

	idAt = 5 // where the id's text begins
)

// ParseHead reads a request in its common form: exactly the four members, in the order id, service,
// method, body, with short strings and a map for a body. It fills ID, Service and Method of r, the
// latter two unchecked, and returns where the body begins, which is unchecked too: the caller goes
// on only if it knows Service and Method, and ParseFields ends the body where the payload ends. ok
// false only means that ParseRequest must read the payload. It does not allocate.
func ParseHead(payload []byte, r *Request) (body int, ok bool) {
	// Every load below is within the payload: "service", "method", "body" and a byte follow the id.
	const least = 8 + 1 + 7 + 1 + 5 + 1
	b := payload
	if len(b) < 5+least || binary.LittleEndian.Uint32(b) != headID {
		return 0, false
	}
	n := int(b[4] & 0x1f)
	if b[4]&0xe0 != 0xa0 || n == 0 || len(b) < 5+n+least {
		return 0, false
	}
	r.ID = b[5 : 5+n : 5+n]
	i := 5 + n
	if binary.LittleEndian.Uint64(b[i:]) != headService {
		return 0, false
	}
	n = int(b[i+8] & 0x1f)
	if b[i+8]&0xe0 != 0xa0 || len(b)-i < n+least {
		return 0, false
	}
	i += 9
	r.Service = b[i : i+n : i+n]
	i += n
	if binary.LittleEndian.Uint64(b[i:])<<8>>8 != headMethod {
		return 0, false
	}
	n = int(b[i+7] & 0x1f)
	if b[i+7]&0xe0 != 0xa0 || len(b)-i < 8+n+6 {
		return 0, false
	}
	i += 8
	r.Method = b[i : i+n : i+n]
	i += n
	if binary.LittleEndian.Uint32(b[i:]) != headBody || b[i+4] != 'y' {
		return 0, false
	}
	i += 5
	return i, leads[b[i]].class == mapping && validText(r.ID)
}

// Head remembers what stood between the id and the body of a request: most requests of a connection
// differ from the one before in their ids and bodies only. The zero Head remembers nothing.
type Head struct{ text []byte }

// Keep remembers the head of a payload that ParseHead read into r, with its body at body. It
// allocates only while the Head grows.
func (h *Head) Keep(payload []byte, r *Request, body int) {
	h.text = append(h.text[:0], payload[idAt+len(r.ID):body]...)
}

// Parse is ParseHead for a payload with the same head; of r it fills ID only. It does not allocate.
func (h *Head) Parse(payload []byte, r *Request) (body int, ok bool) {
	b := payload
	if len(b) < idAt || binary.LittleEndian.Uint32(b) != headID {
		return 0, false
	}
	n := int(b[idAt-1] & 0x1f)
	body = idAt + n + len(h.text)
	if b[idAt-1]&0xe0 != 0xa0 || n == 0 || len(h.text) == 0 || len(b) <= body || string(b[idAt+n:body]) != string(h.text) {
		return 0, false
	}
	r.ID = b[idAt : idAt+n : idAt+n]
	return body, leads[b[body]].class == mapping && validText(r.ID)
}

// ParseRequest fills r from payload in one pass, in any key order, and checks all of the payload.
// On a problem r holds what was decoded before, so that the id can be echoed (kernel-ipc D2). It
// does not allocate.
func (sc *Scanner) ParseRequest(payload []byte, r *Request) Problem {
	*r = Request{}
	if len(payload) == 0 {
		return Truncated
	}
	l := leads[payload[0]]
	if l.class != mapping {
		i, p := sc.skip(payload, 0, 0)
		return atEnd(payload, i, p)
	}
	n, i, ok := count(payload, 0, l)
	if !ok {
		return Truncated
	}
	var p Problem
	for ; n > 0; n-- {
		if i >= len(payload) {
			return Truncated
		}
		var key []byte
		if key, i, p = consumeStr(payload, i); p != NoProblem {
			if p == KeyNotString {
				p = keyProblem(leads[payload[i]])
			}
			return p
		}
		if i, p = sc.member(payload, i, key, r); p != NoProblem {
			return p
		}
	}
	return atEnd(payload, i, NoProblem)
}

// member takes the value of one top-level key.
func (sc *Scanner) member(b []byte, i int, key []byte, r *Request) (next int, p Problem) {
	var dst *[]byte
	var other *bool
	switch string(key) {
	case "id":
		dst, other = &r.ID, &r.IDIsOther
	case "service":
		dst, other = &r.Service, &r.ServiceIsOther
	case "method":
		dst, other = &r.Method, &r.MethodIsOther
	case "body":
		return sc.body(b, i, r)
	default:
		return sc.skip(b, i, 1)
	}
	if i < len(b) && leads[b[i]].class == str {
		s, next, p := consumeStr(b, i)
		if p == NoProblem {
			*dst, *other = s, false
		}
		return next, p
	}
	next, p = sc.skip(b, i, 1)
	if p == NoProblem {
		*dst, *other = nil, notNil(b[i:next])
	}
	return next, p
}

func (sc *Scanner) body(b []byte, i int, r *Request) (next int, p Problem) {
	next, p = sc.skip(b, i, 1)
	if p != NoProblem {
		return next, p
	}
	r.Body, r.BodyIsOther = nil, false
	if leads[b[i]].class == mapping {
		r.Body = b[i:next:next]
	} else {
		r.BodyIsOther = notNil(b[i:next])
	}
	return next, NoProblem
}

// notNil reports whether a value is not nil, as which floats that are no numbers read, too.
func notNil(b []byte) bool {
	if leads[b[0]].class != scalar {
		return true
	}
	var v Value
	v.scalar(b[0], b[1:])
	return v.Kind != Nil
}

func atEnd(b []byte, i int, p Problem) Problem {
	if p == NoProblem && i != len(b) {
		return TrailingBytes
	}
	return p
}
