package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

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
