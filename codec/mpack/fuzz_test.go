package mpack

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// FuzzRequest holds the request decoder against the reference library: what we take it takes too
// and sees the same value end, what it refuses as malformed we refuse, and nothing crashes.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x84\xa2id\xa2c1\xa7service\xa6kernel\xa6method\xadCreateProcess\xa4body\x81\xa3pid\xa2p1"))
	f.Add([]byte("\x81\xa2id\xc1"))
	f.Add([]byte("\xc4\x01\x00"))
	for _, levels := range []int{510, 511} { // with the request and the body: the limit and one more
		body := "\x81\xa1n" + strings.Repeat("\x91", levels) + "\xc0"
		f.Add(AppendRequest(nil, "x", "kernel", "GetProcess", body))
	}
	f.Add([]byte("\x82\xa2id\xa1x\xa1k\x91\x91\x91\xc0"))
	f.Add([]byte("\xdf\x00\x00\x00\x01\xa2id\xdb\x00\x00\x00\x01x"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var sc Scanner
		var r Request
		p := sc.ParseRequest(payload, &r)
		checkHead(t, &sc, payload, r, p)
		for _, s := range [][]byte{r.ID, r.Service, r.Method} {
			if !utf8.Valid(s) {
				t.Fatalf("view holds invalid UTF-8: %q", s)
			}
		}
		if p != NoProblem {
			return
		}
		rest, err := msgp.Skip(payload)
		if err != nil || len(rest) != 0 {
			t.Fatalf("reference: %v, %d bytes left of %x", err, len(rest), payload)
		}
		var v [2]Value
		if len(r.Body) > 0 {
			if next, p := sc.ParseFields(r.Body, 0, Fields("pid", "quota"), v[:]); p != NoProblem || next != len(r.Body) {
				t.Fatalf("the body of a sound request ends at %d of %d: %q", next, len(r.Body), p.Text())
			}
		}
	})
}

// checkHead holds the short way, ParseHead and ParseFields, to the verdict of ParseRequest.
func checkHead(t *testing.T, sc *Scanner, payload []byte, want Request, whole Problem) {
	var r Request
	body, ok := ParseHead(payload, &r)
	if !ok || !utf8.Valid(r.Service) || !utf8.Valid(r.Method) {
		return // names that are no text are no names a caller knows
	}
	var v [2]Value
	next, p := sc.ParseFields(payload, body, Fields("pid", "quota"), v[:])
	if p = atEnd(payload, next, p); p != whole {
		t.Fatalf("short way says %q, long way %q", p.Text(), whole.Text())
	}
	if string(r.ID) != string(want.ID) || string(r.Service) != string(want.Service) || string(r.Method) != string(want.Method) {
		t.Fatalf("short way %+v, long way %+v", r, want)
	}
}
