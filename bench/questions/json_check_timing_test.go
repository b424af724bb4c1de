package questions

// Question: what does checking the JSON of an event cost, and is it below the standard library at
// every size?

import (
	"encoding/json"
	"fmt"
	"testing"

	"trunkline/codec/jsonx"
)

// textSizes are a tiny payload, one of a typical event, and a large one.
var textSizes = [...]int{16, 300, 16 << 10}

func BenchmarkJSONCheck(b *testing.B) {
	var all []question
	checks := func(codec string, size int, valid func([]byte) bool) {
		all = append(all, question{name: fmt.Sprintf("codec=%s/size=%d", codec, size), prepare: func(tb testing.TB) work {
			text := []byte(events(size))
			if !valid(text) || valid(text[:len(text)-1]) {
				tb.Fatalf("%d bytes are not evaluated right", len(text))
			}
			return work{run: func() { valid(text) }, bytes: len(text)}
		}})
	}
	for _, size := range textSizes {
		checks("trunkline", size, func(text []byte) bool { p := jsonx.Check(text, 128); return p.OK() })
		checks("encoding-json", size, json.Valid)
	}
	measure(b, all)
}

func marshal(tb testing.TB, v any) []byte {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
