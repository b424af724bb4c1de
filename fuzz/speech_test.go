package fuzz

import (
	"slices"
	"strings"
)

// speaker makes requests of a program's bytes.
type speaker struct {
	source
	set     settings
	topic   int
	cursors []int64  // next_cursor values that were reported, oldest first
	queries []string // query ids that were reported, oldest first
	stored  []string // identifiers of envelopes that were reported, oldest first
}

var (
	callIDs   = []string{"1", "2", "q1", "q1", "é", "0123456789012345678901234567890123456789"}
	streamIDs = []string{"s1", "s1", "s2", "s3", "s" + string(make([]byte, 99))}
)

// idempotencyKeys are few, so that requests meet each other under them.
var idempotencyKeys = []any{
	key32, key32, key32, "another" + key32, "another" + key32, "a third" + key32, strings.Repeat("k", 200),
	strings.Repeat("k", 201), key32[1:], nil, 5,
}

const key32 = "0123456789abcdef0123456789abcdef"

// frame makes one frame, now and then a damaged one.
func (s *speaker) frame() []byte {
	topic := topics[s.topic]
	sent := topic[s.n(len(topic))]
	how := s.byte()
	payload := s.payload(sent, how)
	typ := byte(request)
	switch {
	case how < 236:
	case how < 241:
		typ = pick(&s.source, byte(0x00), 0x02, 0x03, 0x04, 0xFF)
	case how < 246:
		payload = payload[:s.upTo(len(payload))]
	case how < 251:
		payload[s.upTo(len(payload)-1)] ^= 1 << s.n(8)
	default:
		payload = append(payload, s.byte())
	}
	if len(payload) >= s.set.maxFrame {
		payload = payload[:s.set.maxFrame-1]
	}
	return appendFrame(nil, typ, payload)
}

// payload encodes a request; how selects how it is written.
func (s *speaker) payload(sent *sentence, how byte) []byte {
	ids := callIDs
	if sent.stream {
		ids = streamIDs
	}
	id := ids[s.n(len(ids))]
	body := s.body(sent)
	if how >= 120 && how < 170 {
		body = append(body, member{"idempotency_key", idempotencyKeys[int(how)%len(idempotencyKeys)]})
	}
	req := object{{"id", id}, {"service", sent.service}, {"method", sent.method}, {"body", body}}
	switch {
	case how < 170:
	case how < 190: // another order, and unknown keys
		req = append(object{{"protocol_version", 1}, {"extra", object{{"id", "no"}, {"x", []any{nil, 1.5}}}}}, req...)
		slices.Reverse(req)
	case how < 205: // repeated keys: the last one counts
		req = append(object{{"id", "first"}, {"body", 5}, {"method", nil}}, req...)
	case how < 225: // size classes larger than needed
		return appendValue(nil, req, func(n int) int { return s.n(n) })
	case how < 236: // a member of the request itself is wrong
		at := s.n(len(req))
		req[at].val = s.wrongMember()
	}
	return appendValue(nil, req, nil)
}

func (s *speaker) wrongMember() any {
	return pick[any](&s.source, nil, "", 7, []any{}, object{}, encoded("\xc4\x01x"), encoded("\xd4\x01x"), encoded("\xc1"), encoded("\xa1\xff"),
		object{}, encoded("\x81\x01\x01"), nan32, true)
}

// theBody is the name of a field whose members are those of the body.
const theBody = ""

func (s *speaker) body(sent *sentence) object {
	body := object{}
	for _, f := range sent.fields {
		values := f.good
		choice := s.byte()
		if choice >= 240 && len(f.wrong) > 0 {
			values = f.wrong
		}
		switch v := values[int(choice)%len(values)].(type) {
		case absent:
		case lastCursor:
			body = append(body, member{f.name, last(s, s.cursors, 0)})
		case lastEnvelope:
			body = append(body, member{f.name, s.newest()})
		case lastQuery:
			body = append(body, member{f.name, last(s, s.queries, "q1")})
		case object:
			body = append(body, membersOf(f.name, s.named(v))...)
		default:
			body = append(body, member{f.name, v})
		}
	}
	if s.set.maxFrame < 4096 {
		body = slices.DeleteFunc(body, func(m member) bool { t, ok := m.val.(string); return ok && len(t) > 500 })
	}
	return body
}

// newest is the identifier of the envelope that was reported last.
func (s *speaker) newest() string {
	if len(s.stored) == 0 {
		return "e1"
	}
	return s.stored[len(s.stored)-1]
}

// named puts the name of an envelope that was reported where lastEnvelope stands.
func (s *speaker) named(o object) object {
	out := make(object, len(o))
	for i, m := range o {
		switch v := m.val.(type) {
		case lastEnvelope:
			m.val = s.newest()
		case object:
			m.val = s.named(v)
		}
		out[i] = m
	}
	return out
}

// last is one of the last few names reported, or other while there are none.
func last[T any](s *speaker, told []T, other T) any {
	if len(told) == 0 {
		return other
	}
	return told[max(0, len(told)-1-s.n(3))]
}
