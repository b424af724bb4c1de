package projects

// Question: what does an event cost to make, to each connection that watches its journal, and to a
// connection that comes later and has all of them sent again?

import (
	"fmt"
	"math"
	"testing"

	"trunkline/engine/projects/codec"
)

// sleeper is a connection that looks for itself.
type sleeper struct{ woken bool }

// Wake implements Waker.
func (s *sleeper) Wake() { s.woken = true }

func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{0, 1, 100, 1000} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) {
			p := newRig().p
			p.Clock, p.IDs = codec.Clock{}, codec.NewScope("", "")
			flow := p.newFlow()
			cursors := make([]Cursor, n)
			for i := range cursors {
				cursors[i] = Cursor{Next: 1, From: 1, All: true}
				p.Journal.Watch(new(sleeper))
			}
			out := make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				p.progress(nil, flow, "apply", 1, 1)
				for i := range cursors {
					out, _ = p.Journal.Copy(out[:0], math.MaxInt, &cursors[i], math.MaxUint64)
				}
			}
		})
	}
}

// BenchmarkReplay sends a whole journal again, as a socket takes it.
func BenchmarkReplay(b *testing.B) {
	p := newRig().p
	flow := p.newFlow()
	for range 10_000 {
		p.progress(nil, flow, "apply", 1, 1)
	}
	out := make([]byte, 0, 300<<10)
	sent := 0
	b.ReportAllocs()
	for b.Loop() {
		c := Cursor{Next: 1, From: 1, All: true}
		sent = 0
		for copied := CopiedFull; copied == CopiedFull; sent += len(out) {
			out, copied = p.Journal.Copy(out[:0], 256<<10, &c, math.MaxUint64)
		}
	}
	b.SetBytes(int64(sent))
}
