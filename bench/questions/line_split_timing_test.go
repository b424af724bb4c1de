package questions

// Question: is finding a line's end so cheap that it need not be joined with the scan of its
// contents?

import (
	"bytes"
	"fmt"
	"testing"

	"trunkline/codec/ndjson"
)

func BenchmarkLineSplit(b *testing.B) {
	var all []question
	for _, size := range []int{22, 300, 16 << 10} {
		all = append(all, question{name: fmt.Sprint(size), prepare: func(tb testing.TB) work {
			one := append(bytes.Repeat([]byte{'x'}, size), '\n')
			count := max(1, readSize/len(one))
			read := bytes.Repeat(one, count)
			split := func() (found int) {
				for rest := read; ; found++ {
					_, used, st, _ := ndjson.Split(rest, 0, 10<<20)
					if st != ndjson.Line {
						return found
					}
					rest = rest[used:]
				}
			}
			if found := split(); found != count {
				tb.Fatalf("%d lines in a read of %d", found, count)
			}
			return work{run: func() { split() }, ops: count, bytes: len(one)}
		}})
	}
	measure(b, all)
}
