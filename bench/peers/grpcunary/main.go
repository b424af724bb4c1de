// Command grpcunary serves one unary method on grpc-go with a constant reply. With -load it is the
// method's callers instead: it keeps a number of calls in flight on a number of connections, and
// prints what it measured as a sample in JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
