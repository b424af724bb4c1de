// Command grpcunary serves one unary method on grpc-go with a constant reply. With -load it is the
// method's callers instead: it keeps a number of calls in flight on a number of connections, and
// prints what it measured as a sample in JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/peers/internal/peer"
)

// method is the full name of the method. Its message is the well-known BytesValue, so no generated
// code is needed.
const method = "/bench.Echo/Call"

// newServer answers every call with the same reply.
func newServer(size int) *grpc.Server {
	s, reply := grpc.NewServer(), wrapperspb.Bytes(make([]byte, size))
	call := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		return reply, decode(new(wrapperspb.BytesValue))
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bench.Echo", Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: call}}}, nil)
	return s
}

func main() {
	l := &callers{}
	addr := flag.String("load", "", "address of another such program, to be its callers")
	flag.IntVar(&l.pid, "pid", 0, "process whose CPU time is measured")
	flag.IntVar(&l.conns, "conns", 64, "connections")
	flag.IntVar(&l.inflight, "inflight", 64, "calls in flight per connection")
	size := flag.Int("request", 64, "bytes per request")
	flag.DurationVar(&l.warmup, "warmup", 300*time.Millisecond, "time before the window")
	flag.DurationVar(&l.window, "window", 2*time.Second, "the measured window, longer where calls take longer")
	l.reply = peer.Reply()
	if *addr == "" {
		if err := newServer(l.reply).Serve(peer.Listen()); err != nil {
			peer.Fatal(err)
		}
	}
	l.request = wrapperspb.Bytes(make([]byte, *size))
	sample, err := l.run(*addr)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(sample)
	}
	if err != nil {
		peer.Fatal(err)
	}
}

// maxRun bounds a run, calls that wait for a connection included.
const maxRun = time.Minute

// callers are a load.
type callers struct {
	request         *wrapperspb.BytesValue
	reply           int
	pid             int
	conns, inflight int
	warmup, window  time.Duration
}

// run makes the calls and returns what the window showed. A connection that is slow to be made is
// waited for: there may be a thousand at a time.
func (l *callers) run(addr string) (s goal.Sample, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxRun)
	defer cancel()
	ccs := make([]*grpc.ClientConn, l.conns)
	for i := range ccs {
		if ccs[i], err = grpc.NewClient("passthrough:///"+addr,
			grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			return s, fmt.Errorf("cannot make a connection: %w", err)
		}
		defer ccs[i].Close()
	}
	replies := make([]wrapperspb.BytesValue, l.conns*l.inflight)
	calls := load.StartCalls(len(replies), func(caller, _ int) error {
		out := &replies[caller]
		err := ccs[caller%l.conns].Invoke(ctx, method, l.request, out, grpc.WaitForReady(true))
		if err == nil && len(out.Value) != l.reply {
			err = fmt.Errorf("cannot take a reply of %d bytes, want %d", len(out.Value), l.reply)
		}
		return err
	})
	return load.MeasureRunning(calls, []int{l.pid}, l.warmup, l.window)
}
