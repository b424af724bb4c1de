package jsonx

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Question: what does checking a Publish payload cost per event, and is it below the standard library at every size?

// sample returns JSON text of about n bytes with the mix of a typical event: keys, short strings, numbers, one longer text.
func sample(n int) []byte {
	if n < 32 {
		return []byte(`{"n":1,"ok":true}`)[:17]
	}
	out := []byte(`{"events":[`)
	for i := 0; len(out) < n-40; i++ {
		out = fmt.Appendf(out, `{"pid":"proc-%06d","old_state":"READY","new_state":"RUNNING","n":%d,"ratio":%d.5,`+
			`"reason":"the worker took it from the queue","ok":true,"none":null},`, i, i*17, i)
	}
	return append(out, "{}]}"...)
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{16, 300, 16 << 10} {
		text := sample(size)
		b.Run(fmt.Sprintf("jsonx/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if p := Check(text, 128); !p.OK() {
					b.Fatal(p)
				}
			}
		})
		b.Run(fmt.Sprintf("std/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	var w Walker
	for _, size := range []int{16, 300, 16 << 10} {
		text := sample(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(text)
				for w.Next().Kind != End {
				}
			}
		})
	}
}
