package mpack

// Request is the view of one request's payload (kernel-ipc §3.1). Its slices point into the payload and die with it; the
// value is reused by ParseRequest. A member that is absent, nil or of another type than wanted is nil; an empty string is
// non-nil and empty.
type Request struct {
	// ID, Service and Method are the strings of those names; the last one counts where a key is repeated.
	ID, Service, Method []byte
	// Body is the encoded map of the method's fields.
	Body []byte
	// BodyIsOther is true when a body stood there that is neither nil nor a map.
	BodyIsOther bool
	// IsMap is false when the payload is a value of another kind: there is no id then.
	IsMap bool
}

// ParseHead reads a request written the way clients mostly write it: exactly the four members, in the order id, service,
// method, body, with short strings and a map for a body. It fills r but for Body and returns where the body begins; the body is
// unchecked, ParseFields must go over it and must end where the payload ends. ok false says nothing about the payload but that
// ParseRequest has to judge it. It does not allocate.
func ParseHead(payload []byte, r *Request) (body int, ok bool) {
	if len(payload) == 0 || payload[0] != 0x84 {
		return 0, false
	}
	i := 1
	if r.ID, i, ok = shortMember(payload, i, "\xa2id"); !ok {
		return 0, false
	}
	if r.Service, i, ok = shortMember(payload, i, "\xa7service"); !ok {
		return 0, false
	}
	if r.Method, i, ok = shortMember(payload, i, "\xa6method"); !ok {
		return 0, false
	}
	const key = "\xa4body"
	if i+len(key) >= len(payload) || string(payload[i:i+len(key)]) != key {
		return 0, false
	}
	i += len(key)
	return i, leads[payload[i]].class == mapping
}

// shortMember returns the value of the encoded key at b[i], which must be a non-empty string of at most 31 bytes.
func shortMember(b []byte, i int, key string) (s []byte, next int, ok bool) {
	if i+len(key) >= len(b) || string(b[i:i+len(key)]) != key {
		return nil, i, false
	}
	i += len(key)
	n := int(b[i] & 0x1f)
	if i++; b[i-1]&0xe0 != 0xa0 || n == 0 || n > len(b)-i {
		return nil, i, false
	}
	s = b[i : i+n : i+n]
	return s, i + n, validText(s)
}

// ParseRequest fills r from payload in one pass, in any key order, and checks all of the payload on the way. On a problem r
// holds what was decoded before the fault, so that the id can be echoed (kernel-ipc D2). It does not allocate.
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
	r.IsMap = true
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
	switch string(key) {
	case "id":
		dst = &r.ID
	case "service":
		dst = &r.Service
	case "method":
		dst = &r.Method
	case "body":
		return sc.body(b, i, r)
	default:
		return sc.skip(b, i, 1)
	}
	if i < len(b) && leads[b[i]].class == str {
		s, next, p := consumeStr(b, i)
		if p == NoProblem {
			*dst = s
		}
		return next, p
	}
	next, p = sc.skip(b, i, 1)
	if p == NoProblem {
		*dst = nil
	}
	return next, p
}

func (sc *Scanner) body(b []byte, i int, r *Request) (next int, p Problem) {
	next, p = sc.skip(b, i, 1)
	if p != NoProblem {
		return next, p
	}
	r.Body, r.BodyIsOther = nil, false
	switch {
	case leads[b[i]].class == mapping:
		r.Body = b[i:next:next]
	case b[i] != 0xc0:
		r.BodyIsOther = true
	}
	return next, NoProblem
}

func atEnd(b []byte, i int, p Problem) Problem {
	if p == NoProblem && i != len(b) {
		return TrailingBytes
	}
	return p
}
