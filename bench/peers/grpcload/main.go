// Command grpcload keeps a number of unary calls in flight on a number of connections. It prints "measuring" when its window
// begins and one line of JSON when it ends, so that whoever started it can read the server's CPU time at both moments.
package main

import (
	"context"
	"encoding/json"
	"flag"
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

type load struct {
	request   *wrapperspb.BytesValue
	measuring atomic.Bool
	stopping  atomic.Bool
	failed    atomic.Pointer[error]
}

// call runs one caller until the load stops and returns the latencies of the window.
func (l *load) call(cc *grpc.ClientConn, reply int) (samples []int64, requests uint64) {
	out := new(wrapperspb.BytesValue)
	for !l.stopping.Load() {
		start := time.Now()
		if err := cc.Invoke(context.Background(), echo.Method, l.request, out); err != nil {
			l.failed.Store(&err)
			return samples, requests
		}
		if len(out.Value) != reply {
			panic("reply of another size than announced")
		}
		if l.measuring.Load() {
			requests++
			if len(samples) < maxSamples {
				samples = append(samples, int64(time.Since(start)))
			}
		}
	}
	return samples, requests
}

func main() {
	addr := flag.String("addr", "", "address of grpcunary")
	conns := flag.Int("conns", 64, "connections")
	inflight := flag.Int("inflight", 64, "calls in flight per connection")
	size := flag.Int("request", 64, "bytes per request")
	reply := flag.Int("reply", 174, "bytes expected per reply")
	warmup := flag.Duration("warmup", 300*time.Millisecond, "time before the window")
	duration := flag.Duration("duration", 2*time.Second, "the measured window")
	flag.Parse()

	l := &load{request: wrapperspb.Bytes(make([]byte, *size))}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []int64
	var total uint64
	for range *conns {
		cc, err := grpc.NewClient("passthrough:///"+*addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			peer.Fatal(err)
		}
		for range *inflight {
			wg.Go(func() {
				samples, requests := l.call(cc, *reply)
				mu.Lock()
				defer mu.Unlock()
				all, total = append(all, samples...), total+requests
			})
		}
	}
	time.Sleep(*warmup)
	os.Stdout.WriteString("measuring\n")
	l.measuring.Store(true)
	start := time.Now()
	time.Sleep(*duration)
	l.measuring.Store(false)
	elapsed := time.Since(start)
	os.Stdout.WriteString("measured\n")
	l.stopping.Store(true)
	wg.Wait()
	if err := l.failed.Load(); err != nil {
		peer.Fatal(*err)
	}
	slices.Sort(all)
	at := func(q float64) int64 {
		if len(all) == 0 {
			return 0
		}
		return all[int(q*float64(len(all)-1))]
	}
	r := report{Requests: total, Elapsed: int64(elapsed), P50: at(0.5), P99: at(0.99), P999: at(0.999)}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		peer.Fatal(err)
	}
}
