package questions

// Question: what does a frame cost on its way out, its payload copied, as that grows?

import (
	"bytes"
	"fmt"
	"testing"

	"trunkline/codec/frame"
)

func BenchmarkFrameWrite(b *testing.B) {
	var all []question
	for _, size := range frameSizes {
		all = append(all, question{name: fmt.Sprint(size), prepare: func(tb testing.TB) work {
			payload := bytes.Repeat([]byte{'x'}, size)
			dst := make([]byte, 0, size+16)
			write := func() {
				dst = append(frame.Begin(dst[:0], frame.Response), payload...)
				frame.Finish(dst, 0)
			}
			write()
			if typ, got, n := frame.Split(dst, 1<<20); typ != frame.Response || !bytes.Equal(got, payload) || n != len(dst) {
				tb.Fatalf("wrote a frame of type %#x with %d bytes of %d", byte(typ), len(got), size)
			}
			return work{run: write, bytes: len(dst)}
		}})
	}
	measure(b, all)
}
