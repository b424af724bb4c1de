package kernel

import (
	"fmt"
	"testing"
	"time"
)

// benchSizes are the tables whose snapshots are timed: with -short only one that is made at once.
func benchSizes() []int {
	if testing.Short() {
		return []int{10_000}
	}
	return []int{10_000, 1_000_000}
}

// photographed is a snapshot of n processes, of which one in eight waits, was handed out, or has
// completed.
func photographed(b *testing.B, n int) (k *Kernel, p photo, size int) {
	journal := &tape{}
	written := uint64(0)
	k = New(Config{MaxProcesses: n, Defaults: unlimited(), DequeueLease: 1 << 40, Journal: func(*Change) uint64 { written++; return written }})
	now := fillTable(k, n)
	var pid []byte
	for i := range n / 8 {
		pid = benchID(pid, 'p', 8*i)
		k.Next(now, false, nil)
		k.Transition(now, pid, nil, Running, nil, nil)
		k.RecordUsage(now, pid, nil, &Usage{LLMCalls: 3, TokensIn: 4000, TokensOut: 1000}, nil)
		k.Transition(now, pid, nil, []State{Waiting, Terminated, Ready}[i%3], nil, nil)
	}
	p = journal.photograph(b, k, func(rec []byte) { size += len(rec) })
	return k, p, size
}

// BenchmarkSnapshot: how long does a snapshot take, and how much is it, with no other goroutine
// around?
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range benchSizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k, _, size := photographed(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := k.WriteSnapshot(func([]byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)/float64(n), "B/process")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/process")
		})
	}
}

// BenchmarkLoadSnapshot: how long does a restart take until the table is complete and in order?
func BenchmarkLoadSnapshot(b *testing.B) {
	for _, n := range benchSizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, p, _ := photographed(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (&tape{}).recovered(p, Config{MaxProcesses: n}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/process")
		})
	}
}

const hexDigits = "0123456789abcdef"

// benchID writes the i-th 36-byte identifier of a kind to dst.
func benchID(dst []byte, kind byte, i int) []byte {
	dst = append(dst[:0], "00000000-0000-4000-8000-000000000000"...)
	dst[0] = kind
	for pos := 35; i > 0; pos-- {
		dst[pos] = hexDigits[i&15]
		i >>= 4
	}
	return dst
}

func benchArgs(a *CreateArgs, i int) {
	a.PID = benchID(a.PID, 'p', i)
	a.RequestID = benchID(a.RequestID, 'q', i)
	a.UserID = benchID(a.UserID, 'u', 0)
	a.SessionID = benchID(a.SessionID, 's', i)
	a.Priority = Normal
}

// fillTable creates n processes of one user, far enough apart that the rate limiter lets them pass.
func fillTable(k *Kernel, n int) Instant {
	var a CreateArgs
	now := Instant{}
	for i := range n {
		benchArgs(&a, i)
		now.Mono += int64(40 * time.Millisecond)
		if res, d := k.Create(now, &a, nil); res != OK {
			panic(fmt.Sprint(res, d))
		}
	}
	return now
}
