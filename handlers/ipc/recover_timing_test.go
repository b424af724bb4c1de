//go:build !race

// Timings are not representative under the race detector, which would also compile the database
// for it.

package ipc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/kernel"
	state "trunkline/engine/runtime"
	"trunkline/engine/store"
)

// The benchmarks answer one question: how long does a restart take, and how much memory does it
// need, with a million processes on disk, from a snapshot and from the log alone? Fewer processes
// than that are tried unless a million are asked for.

// recoverSize is how many processes there are: TRUNKLINE_RECOVER_PROCESSES.
func recoverSize(b *testing.B) int {
	n := 20_000
	if text := os.Getenv("TRUNKLINE_RECOVER_PROCESSES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			b.Fatalf("cannot use TRUNKLINE_RECOVER_PROCESSES = %q", text)
		}
	}
	return n
}

// recoverUsers is how many users share the processes.
const recoverUsers = 1000

// openRecovered opens a service on what is in dir.
func openRecovered(b *testing.B, dir string, n int) (s *Service, log *journal.Log, open, load time.Duration) {
	s = newService(func(c *Config, r *state.Config) { r.Journaled = true; r.MaxProcesses = n })
	began := time.Now()
	st, err := embedded.Open(embedded.Config{Dir: dir, Mode: journal.Interval})
	if err != nil {
		b.Fatal(err)
	}
	log, err = journal.Open(st, journal.Config{Mode: journal.Interval, OnDurable: s.rt.Durable})
	if err != nil {
		b.Fatal(err)
	}
	open = time.Since(began)
	began = time.Now()
	if err := s.rt.Store.Recover(log, store.RecoverOptions{}); err != nil {
		b.Fatal(err)
	}
	return s, log, open, time.Since(began)
}

// benchUUID writes a text of the length of a UUID that has no order.
func benchUUID(dst []byte, kind byte, i int) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], uint64(i)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(raw[8:], uint64(i)<<8|uint64(kind))
	dst = hex.AppendEncode(dst[:0], raw[:])
	return append(dst, "-..-"...)
}

// fillJournal has n processes made, and with mixed also used, run and handed out, in all 3n records
// and some.
func fillJournal(b *testing.B, s *Service, log *journal.Log, n int, mixed bool) {
	var a kernel.CreateArgs
	now := kernel.Instant{}
	c := kernel.Change{Kind: kernel.ChangeCreate, State: kernel.Ready, Priority: kernel.Normal, Quota: kernel.BuiltinQuota()}
	for i := range n {
		a.PID, a.RequestID = benchUUID(a.PID, 'p', i), benchUUID(a.RequestID, 'q', i)
		a.UserID, a.SessionID = benchUUID(a.UserID, 'u', i%recoverUsers), benchUUID(a.SessionID, 's', i)
		a.Priority = kernel.Normal
		if !mixed {
			c.PID, c.RequestID, c.UserID, c.SessionID, c.Seq, c.ReadySeq = a.PID, a.RequestID, a.UserID, a.SessionID, uint64(i+1), uint64(i+1)
			s.rt.Store.Append(kernel.Tag, func(dst []byte) []byte { return kernel.AppendChange(dst, &c) })
		} else {
			now.Mono += int64(100 * time.Millisecond)
			if res, d := s.kernel.Create(now, &a, nil); res != kernel.OK {
				b.Fatal(res, d)
			}
			switch i % 4 {
			case 0:
				s.kernel.RecordUsage(now, a.PID, nil, &kernel.Usage{kernel.LLMCalls: 1, kernel.TokensIn: 1000}, nil)
			case 1:
				s.kernel.Next(now, true, nil)
			case 2:
				s.kernel.Next(now, false, nil)
			case 3:
				s.kernel.Transition(now, benchUUID(a.PID, 'p', scattered(i)), nil, kernel.Terminated, nil, nil)
			}
		}
		if i%50000 == 49999 {
			if err := log.Barrier(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := log.Barrier(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// scattered returns a number below i.
func scattered(i int) int { return int(uint64(i) * 0x9e3779b97f4a7c15 >> 1 % uint64(i)) }

// peakMemory watches how much memory the process holds until done is called, which returns the most
// in bytes.
func peakMemory() (done func() uint64) {
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapInuse+m.StackInuse))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); <-stopped; return most.Load() }
}

func BenchmarkRecover(b *testing.B) {
	n := recoverSize(b)
	f := func(name string, mixed, snapshot bool) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			dir := b.TempDir()
			s, log, _, _ := openRecovered(b, dir, n)
			fillJournal(b, s, log, n, mixed)
			records := log.Appended()
			if snapshot {
				if err := s.rt.Store.Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
			s, log = nil, nil
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			opened, loaded := time.Hour, time.Hour
			for b.Loop() {
				s, log, open, load := openRecovered(b, dir, n)
				opened, loaded = min(opened, open), min(loaded, load)
				b.StopTimer()
				if s.kernel.Len() == 0 {
					b.Fatal("nothing came back")
				}
				if err := log.Close(); err != nil {
					b.Fatal(err)
				}
				s = nil
				runtime.GC()
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(opened.Seconds(), "s-open")
			b.ReportMetric(loaded.Seconds(), "s-recover")
			b.ReportMetric(float64(records), "records")
			peak := peakMemory()
			s, log, _, _ = openRecovered(b, dir, n)
			most := peak()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(most)/(1<<20), "MB-peak")
			b.ReportMetric(float64(m.HeapInuse)/(1<<20), "MB-after")
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
			runtime.KeepAlive(s)
		})
	}
	f("log", false, false)
	f("mixed", true, false)
	f("snapshot", true, true)
}
