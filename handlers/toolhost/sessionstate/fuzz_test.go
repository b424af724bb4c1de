package sessionstate

import (
	"testing"

	"trunkline/codec/jsonx"
)

func FuzzApply(f *testing.F) {
	for _, text := range []string{
		`null`, `{}`, `[]`, EmptyDelta, `{"slots":{}}`, `{"slots":{"0":{},"7":{"type":"a","type":"b"}}}`,
		`{"delta":true,"slots":{"1":{"type":"t","content_json":"{}","size_bytes":2},"6":{"type":"x"}},"removed_slots":[6]}`,
		`{"delta":true,"removed_slots":[0,1,-0,8,6.0,9223372036854775808,"6"]}`, `{"slots":{"07":{},"-1":{}," 1":{},"":{}}}`,
		`{"slots":{"3":{"size_bytes":9007199254740991.5}}}`, `{"slots":{"3":{"size_bytes":-1e-400}}}`, `{"slots":{"3":{"size_bytes":1e400}}}`,
		`{"slots":{"\u0033":{"\u0074ype":"\ud800\u0000\ud83d\ude00"}}}`, `{"slots":{"3":{"provenance":null,"content_json":{}}}}`,
		`{"slots":{"1":`, `{"slots":{"1`, `{"slots":{"1":{"type":"`, `{"delta":t`, "{\"slots\":{\"\xff\":{}}}",
	} {
		f.Add([]byte(text), []byte(`{"slots":{"1":{"type":"t"},"6":{"content_json":"x","size_bytes":3}}}`))
	}
	f.Fuzz(func(t *testing.T, raw, first []byte) {
		s, m := State{}, model{}
		for _, text := range [][]byte{first, raw} {
			if jsonx.Check(text, 32).OK() {
				s, m = checkApply(t, s, m, text)
				continue
			}
			// Text that was not checked: nothing may panic, and a refusal still changes nothing.
			if next, why := s.Apply(text); why != "" && next != s {
				t.Fatalf("%q is refused (%s) but changes the state", text, why)
			}
		}
	})
}
