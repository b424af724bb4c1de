package jsonx

import (
	"bytes"
	"fmt"
	"testing"
)

// Question: what do the rules of Strict add to a scan of a line, and does a document of many keys
// cost more per byte than one of few?

const postLine = `{"id":7,"method":"post_message","params":{"thread_id":"th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2",` +
	`"schema_version":1,"kind":"chat","body":"hello","idempotency_key":"k-7"}}`

// manyKeys returns an object of n members.
func manyKeys(n int) []byte {
	text := []byte{'{'}
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `"%x":%d`, i, i)
	}
	return append(text, '}')
}

func BenchmarkStrict(b *testing.B) {
	run := func(name string, text []byte, f func([]byte)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f(text)
			}
		})
	}
	names := NewNames("id", "method", "params", "request_id")
	out := make([]Member, names.Len())
	var s Strict
	scan := func(text []byte) { names.Scan(text, 64, out) }
	strict := func(text []byte) {
		if p := s.Scan(names, text, 64, out); !p.OK() {
			b.Fatal(p)
		}
	}
	texts := []struct {
		name string
		text []byte
	}{
		{"line", []byte(postLine)},
		{"envelope", envelope()},
		{"text1M", bytes.Replace([]byte(postLine), []byte("hello"), bytes.Repeat([]byte(`lines of text\n`), 1<<16), 1)},
		{"keys16", manyKeys(16)},
		{"keys17", manyKeys(17)},
		{"keys1000", manyKeys(1000)},
		{"keys100000", manyKeys(100_000)},
	}
	for _, t := range texts {
		run("scan/"+t.name, t.text, scan)
		run("strict/"+t.name, t.text, strict)
	}
}
