package ndjson

import (
	"bytes"
	"fmt"
	"testing"
)

// Question: is finding a line's end so cheap that it need not be joined with the scan of its contents?
func BenchmarkSplit(b *testing.B) {
	for _, size := range []int{22, 300, 16 << 10} {
		in := append(bytes.Repeat([]byte{'x'}, size), "\nnext"...)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, st, _ := Split(in, 0, 10<<20); st != Line {
					b.Fatal("no line")
				}
			}
		})
	}
}
