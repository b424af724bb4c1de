package questions

// Question: what does walking over the tokens of checked JSON cost, beside the standard library's?

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"trunkline/codec/jsonx"
)

func BenchmarkJSONWalk(b *testing.B) { measure(b, jsonWalks()) }

func jsonWalks() []question {
	var all []question
	for _, size := range textSizes {
		text := []byte(events(size))
		walks := func(codec string, free bool, walk func() (tokens int)) {
			all = append(all, question{name: fmt.Sprintf("codec=%s/size=%d", codec, size), free: free, prepare: func(tb testing.TB) work {
				if got, least := walk(), bytes.Count(text, []byte(":")); got < least {
					tb.Fatalf("%d tokens, at least %d members", got, least)
				}
				return work{run: func() { walk() }, bytes: len(text)}
			}})
		}
		var w jsonx.Walker
		walks("trunkline", true, func() (tokens int) {
			w.Start(text)
			for kind, _ := w.Step(); kind != jsonx.End; kind, _ = w.Step() {
				tokens++
			}
			return tokens
		})
		walks("encoding-json", false, func() (tokens int) {
			d := json.NewDecoder(bytes.NewReader(text))
			for ; ; tokens++ {
				if _, err := d.Token(); err != nil {
					return tokens
				}
			}
		})
	}
	return all
}
