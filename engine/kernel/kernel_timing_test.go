package kernel

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// The benchmarks answer one question: do look-up, usage, transition and creation stay flat from 10k to 1M processes, without
// allocation?

var benchSizes = [...]int{10000, 1000000}

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

func eachSize(b *testing.B, f func(b *testing.B, k *Kernel, n int, now Instant)) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := New(Config{MaxProcesses: n + 1, Defaults: unlimited()})
			now := fillTable(k, n)
			b.ReportAllocs()
			b.ResetTimer()
			f(b, k, n, now)
		})
	}
}

// scatter gives a pseudo-random sequence, so that no cache line is asked for twice in a row.
func scatter(i, n int) int {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(i)*0x9e3779b97f4a7c15)
	return int(binary.BigEndian.Uint64(buf[:]) % uint64(n))
}

func BenchmarkGet(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, _ Instant) {
		b.RunParallel(func(pb *testing.PB) {
			var out PCB
			var pid []byte
			for i := 0; pb.Next(); i++ {
				pid = benchID(pid, 'p', scatter(i, n))
				if k.Get(pid, &out) != OK {
					b.Error("lost")
				}
			}
		})
	})
}

func BenchmarkRecordUsage(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, now Instant) {
		b.RunParallel(func(pb *testing.PB) {
			var total Usage
			var pid []byte
			delta := Usage{LLMCalls: 1, TokensIn: 120, TokensOut: 300}
			for i := 0; pb.Next(); i++ {
				pid = benchID(pid, 'p', scatter(i, n))
				k.RecordUsage(now, pid, &delta, &total)
			}
		})
	})
}

func BenchmarkCheckQuota(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, now Instant) {
		var out QuotaCheck
		var pid []byte
		for i := range b.N {
			pid = benchID(pid, 'p', scatter(i, n))
			k.CheckQuota(now, pid, &out)
		}
	})
}

func BenchmarkTransition(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, now Instant) {
		var out PCB
		var pid []byte
		for i := range b.N {
			pid = benchID(pid, 'p', scatter(i, n))
			if k.Transition(now, pid, Running, nil, &out) == OK {
				k.Transition(now, pid, Ready, nil, &out)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, now Instant) {
		var out PCB
		for range b.N {
			k.Next(now, true, &out)
			k.Transition(now, out.PID, Ready, nil, &out)
		}
	})
}

// BenchmarkCreateTerminate runs at a full table: every create evicts.
func BenchmarkCreateTerminate(b *testing.B) {
	eachSize(b, func(b *testing.B, k *Kernel, n int, now Instant) {
		var a CreateArgs
		for i := range b.N {
			benchArgs(&a, n+i)
			now.Mono += int64(40 * time.Millisecond)
			if res, _ := k.Create(now, &a, nil); res != OK {
				b.Fatal(res)
			}
			k.Terminate(now, a.PID, nil, nil)
		}
	})
}

func BenchmarkCheckRate(b *testing.B) {
	for _, users := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			k := New(Config{Defaults: unlimited()})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var user []byte
				for i := 0; pb.Next(); i++ {
					user = benchID(user, 'u', scatter(i, users))
					k.CheckRate(Instant{Mono: int64(i) * int64(time.Second)}, user, true)
				}
			})
		})
	}
}
