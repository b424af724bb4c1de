package route_test

import (
	"bufio"
	"net"
	"syscall"
	"testing"

	"trunkline/codec/frame"
	"trunkline/fuzz/kit/ipctest"
)

// BenchmarkRouted answers what a router costs: requests per second over one connection with 64 in
// the pipeline, and the processor's time for each, of one server and of three partitions behind a
// router in the same process. The client is in it in both.
func BenchmarkRouted(b *testing.B) {
	f := func(name string, partitions int) {
		b.Run(name, func(b *testing.B) {
			srv := ipctest.Start(b, ipctest.With(func(c *ipctest.Config) { c.Partitions = partitions }))
			nc, err := net.Dial("tcp", srv.Addr)
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			p := &peer{nc, bufio.NewReaderSize(nc, 64<<10)}
			const depth = 64
			var batch []byte
			for i := range depth {
				pid := string([]byte{'p', byte('a' + i%16)})
				if i < 16 {
					p.roundTrip(b, request("c", "kernel", "CreateProcess", `{"pid":"`+pid+`","user_id":"`+pid+`"}`), 1)
				}
				batch = append(batch, request("u", "kernel", "CheckQuota", `{"pid":"`+pid+`"}`)...)
			}
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				p.roundTrip(b, batch, depth)
			}
			b.ReportMetric(float64(depth*b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(processorTime(b)-before)/float64(depth*b.N), "cpu-ns/request")
		})
	}
	f("direct", 1)
	f("routed", 3)
}

// peer is a client that reads without a copy of each frame.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// roundTrip sends bytes and reads n frames.
func (p *peer) roundTrip(tb testing.TB, out []byte, n int) {
	if _, err := p.Write(out); err != nil {
		tb.Fatal(err)
	}
	for range n {
		prefix, err := p.in.Peek(frame.PrefixSize)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := p.in.Discard(frame.Len(prefix)); err != nil {
			tb.Fatal(err)
		}
	}
}

// processorTime is what the process has used, in nanoseconds.
func processorTime(tb testing.TB) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
