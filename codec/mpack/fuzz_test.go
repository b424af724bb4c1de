package mpack

import (
	"testing"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// FuzzRequest holds the request decoder against the reference library: what we take it takes too and sees the same value end,
// what it refuses as malformed we refuse, and nothing crashes.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x84\xa2id\xa2c1\xa7service\xa6kernel\xa6method\xadCreateProcess\xa4body\x81\xa3pid\xa2p1"))
	f.Add([]byte("\x81\xa2id\xc1"))
	f.Add([]byte("\xc4\x01\x00"))
	f.Add([]byte("\x82\xa2id\xa1x\xa1k\x91\x91\x91\xc0"))
	f.Add([]byte("\xdf\x00\x00\x00\x01\xa2id\xdb\x00\x00\x00\x01x"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var sc Scanner
		var r Request
		p := sc.ParseRequest(payload, &r)
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
		sc.ParseFields(r.Body, []string{"pid", "quota"}, v[:])
	})
}
