package envelope

import (
	"bytes"
	"encoding/json"
	"testing"
)

func BenchmarkProcess(b *testing.B) {
	for _, c := range []struct {
		name string
		src  []byte
	}{{"python", fullFlat()}, {"compact", compacted(fullFlat())}} {
		b.Run(c.name, func(b *testing.B) {
			x, dst := testEngine(), make([]byte, 0, 8192)
			b.SetBytes(int64(len(c.src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := x.Process(dst, c.src); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encoding-json/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.src)))
			b.ReportAllocs()
			var out bytes.Buffer
			for b.Loop() {
				var m map[string]any
				if err := json.Unmarshal(c.src, &m); err != nil {
					b.Fatal(err)
				}
				out.Reset()
				enc := json.NewEncoder(&out)
				enc.SetEscapeHTML(false)
				if err := enc.Encode(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSession(b *testing.B) {
	src, dst := sessionFlat(), make([]byte, 0, 4096)
	var e Env
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if p := e.Decode(MsgPack, src); p != nil {
			b.Fatal(p.Message())
		}
		e.Append(dst)
	}
}
