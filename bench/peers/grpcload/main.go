// Command grpcload keeps a number of unary calls in flight on a number of connections. It prints
// "measuring" when its window begins and one line of JSON when it ends, so that the starter can
// read the server's CPU time at both moments.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/peers/internal/echo"
	"trunkline/bench/peers/internal/peer"
)

// report is the line printed at the end. Times are in nanoseconds.
type report struct {
	Requests uint64 `json:"requests"`
	Elapsed  int64  `json:"elapsed_ns"`
	P50      int64  `json:"p50_ns"`
	P99      int64  `json:"p99_ns"`
	P999     int64  `json:"p999_ns"`
}

// maxSamples bounds the latencies one caller keeps.
const maxSamples = 1 << 16

// firstTimeout bounds the wait for every client's first reply: 64,000 calls at a time take seconds
// each.
const firstTimeout = 20 * time.Second

// maxWindow bounds the window where calls take long.
const maxWindow = 5 * time.Second

type load struct {
	request   *wrapperspb.BytesValue
	reply     int
	waiting   sync.WaitGroup // callers without a reply so far
	measuring atomic.Bool
	stopping  atomic.Bool
	failed    atomic.Pointer[error]
}

// call runs one caller until the load stops and returns the latencies of the window.
func (l *load) call(cc *grpc.ClientConn) (samples []int64, requests uint64) {
	arrived := sync.OnceFunc(l.waiting.Done)
	defer arrived()
	out := new(wrapperspb.BytesValue)
	for !l.stopping.Load() {
		start := time.Now()
		err := cc.Invoke(context.Background(), echo.Method, l.request, out)
		if err == nil && len(out.Value) != l.reply {
			err = fmt.Errorf("cannot take a reply of %d bytes, want %d", len(out.Value), l.reply)
		}
		if err != nil {
			l.failed.Store(&err)
			return samples, requests
		}
		arrived()
		if l.measuring.Load() {
			requests++
			if len(samples) < maxSamples {
				samples = append(samples, int64(time.Since(start)))
			}
		}
	}
	return samples, requests
}

// run makes the calls and returns all latencies of the window, its length, and how many calls ended
// in it.
func (l *load) run(addr string, conns, inflight int, warmup, window time.Duration) (all []int64, elapsed time.Duration, total uint64, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range conns {
		cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, 0, 0, fmt.Errorf("cannot make a connection: %w", err)
		}
		defer cc.Close()
		l.waiting.Add(inflight)
		for range inflight {
			wg.Go(func() {
				samples, requests := l.call(cc)
				mu.Lock()
				defer mu.Unlock()
				all, total = append(all, samples...), total+requests
			})
		}
	}
	elapsed = l.window(warmup, window)
	wg.Wait()
	if err := l.failed.Load(); err != nil {
		return nil, 0, 0, *err
	}
	return all, elapsed, total, nil
}

// window lets the load run until the warm-up is over and every caller has had a reply, so that
// connections are made and as many calls are in flight as there are callers; then it measures, and
// stops the load. A window lasts no shorter than it took until then, up to maxWindow: in one
// shorter than a call, what the server works on is not what ends in it.
func (l *load) window(warmup, lasting time.Duration) (elapsed time.Duration) {
	begun := time.Now()
	time.Sleep(warmup)
	everybody := make(chan struct{})
	go func() {
		l.waiting.Wait()
		close(everybody)
	}()
	select {
	case <-everybody:
	case <-time.After(firstTimeout):
	}
	lasting = max(lasting, min(time.Since(begun), maxWindow))
	os.Stdout.WriteString("measuring\n")
	l.measuring.Store(true)
	start := time.Now()
	time.Sleep(lasting)
	l.measuring.Store(false)
	elapsed = time.Since(start)
	os.Stdout.WriteString("measured\n")
	l.stopping.Store(true)
	return elapsed
}

// quantile returns the value of sorted latencies that a share q of them does not exceed, 0 without
// any.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

func main() {
	addr := flag.String("addr", "", "address of grpcunary")
	conns := flag.Int("conns", 64, "connections")
	inflight := flag.Int("inflight", 64, "calls in flight per connection")
	size := flag.Int("request", 64, "bytes per request")
	reply := flag.Int("reply", 174, "bytes expected per reply")
	warmup := flag.Duration("warmup", 300*time.Millisecond, "time before the window")
	duration := flag.Duration("duration", 2*time.Second, "the measured window, longer where calls take longer")
	flag.Parse()

	l := &load{request: wrapperspb.Bytes(make([]byte, *size)), reply: *reply}
	all, elapsed, total, err := l.run(*addr, *conns, *inflight, *warmup, *duration)
	if err != nil {
		peer.Fatal(err)
	}
	slices.Sort(all)
	r := report{Requests: total, Elapsed: int64(elapsed), P50: quantile(all, 0.5), P99: quantile(all, 0.99), P999: quantile(all, 0.999)}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		peer.Fatal(err)
	}
}
