package questions

// Question: how long does it take to split a frame of N bytes off a read?

import (
	"bytes"
	"fmt"
	"testing"

	"trunkline/codec/frame"
)

// frameSizes are payload sizes: those of requests, of envelopes, and one that fills a read.
var frameSizes = [...]int{0, 64, 1 << 10, 4 << 10, 64 << 10}

// readSize is how much the event loops take from a socket at a time.
const readSize = 64 << 10

func BenchmarkFrameSplit(b *testing.B) {
	var all []question
	for _, size := range frameSizes {
		all = append(all, question{name: fmt.Sprint(size), prepare: func(tb testing.TB) work {
			one := frame.Append(nil, frame.Request, nil, make([]byte, size))
			count := max(1, readSize/len(one))
			read := bytes.Repeat(one, count)
			split := func() (found int) {
				for rest := read; len(rest) > 0; found++ {
					_, _, n := frame.Split(rest, 1<<20)
					if n <= 0 {
						break
					}
					rest = rest[n:]
				}
				return found
			}
			if found := split(); found != count {
				tb.Fatalf("%d frames in a read of %d", found, count)
			}
			return work{run: func() { split() }, ops: count}
		}})
	}
	measure(b, all)
}
