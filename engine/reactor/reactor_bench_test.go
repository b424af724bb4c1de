//go:build !race

package reactor

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"

	"trunkline/fuzz/kit/linktest"
)

// BenchmarkEcho answers: what does an echo through a Session cost beside gnet's own echo (bare),
// with the same clients in the same process? Compare cpu-µs/frame of the pairs; it includes the
// clients.
func BenchmarkEcho(b *testing.B) {
	for _, conns := range []int{1, 64} {
		for _, depth := range []int{1, 64} {
			b.Run(fmt.Sprintf("bare/conns=%d/depth=%d", conns, depth), func(b *testing.B) {
				hammer(b, bareEcho(b), conns, depth)
			})
			b.Run(fmt.Sprintf("session/conns=%d/depth=%d", conns, depth), func(b *testing.B) {
				s, _ := startMirror(b)
				hammer(b, s.ln.Addr().String(), conns, depth)
			})
		}
	}
}

type bare struct {
	gnet.BuiltinEventEngine
	booted chan gnet.Engine
}

func (h *bare) OnBoot(e gnet.Engine) gnet.Action { h.booted <- e; return gnet.None }

func (h *bare) OnTraffic(c gnet.Conn) gnet.Action {
	in, _ := c.Next(-1)
	_, _ = c.Write(in)
	return gnet.None
}

func bareEcho(b *testing.B) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	h := &bare{booted: make(chan gnet.Engine, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = gnet.Run(h, "tcp://"+addr, gnet.WithNumEventLoop(1), gnet.WithReusePort(true), gnet.WithLogger(gnetLogger{slog.New(slog.DiscardHandler)}))
	}()
	e := <-h.booted
	b.Cleanup(func() {
		_ = e.Stop(b.Context())
		<-ended
	})
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("gnet does not listen")
	return ""
}

// hammer keeps depth frames in flight on each connection until b.N were answered.
func hammer(b *testing.B, addr string, conns, depth int) {
	one := linktest.Frame('e', string(make([]byte, 95)))
	batch := bytes.Repeat(one, depth)
	rounds := max(1, b.N/(conns*depth))
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(conns)
	for range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		done.Go(func() {
			defer c.Close()
			buf := make([]byte, len(batch))
			ready.Done()
			<-begin
			for range rounds {
				if _, err := c.Write(batch); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	ready.Wait()
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	cpu := cpuTime()
	b.ResetTimer()
	close(begin)
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(rounds*conns*depth), "cpu-µs/frame")
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
