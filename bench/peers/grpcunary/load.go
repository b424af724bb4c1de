package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	// firstTimeout bounds the wait for every client's first reply: 64,000 calls at a time take
	// seconds each.
	firstTimeout = 20 * time.Second
	// maxWindow bounds the window where calls take long.
	maxWindow = 5 * time.Second
)

// callers are a load.
type callers struct {
	request         *wrapperspb.BytesValue
	reply           int
	pid             int
	conns, inflight int
	warmup, window  time.Duration

	waiting   sync.WaitGroup // callers without a reply so far
	measuring atomic.Bool
	stopping  atomic.Bool
	replies   atomic.Uint64 // of the window

	mu      sync.Mutex
	latency load.Histogram
	failed  error
}

// run makes the calls and returns what the window showed.
func (l *callers) run(addr string) (s goal.Sample, err error) {
	var wg sync.WaitGroup
	for range l.conns {
		cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return s, fmt.Errorf("cannot make a connection: %w", err)
		}
		defer cc.Close()
		l.waiting.Add(l.inflight)
		for range l.inflight {
			wg.Go(func() {
				if err := l.call(cc); err != nil {
					l.mu.Lock()
					l.failed = err
					l.mu.Unlock()
				}
			})
		}
	}
	s, err = l.measure()
	l.stopping.Store(true)
	wg.Wait()
	s.Quantiles(l.latency.Quantile)
	return s, errors.Join(l.failed, err)
}

// call runs one caller until the load stops.
func (l *callers) call(cc *grpc.ClientConn) error {
	arrived := sync.OnceFunc(l.waiting.Done)
	defer arrived()
	out := new(wrapperspb.BytesValue)
	for !l.stopping.Load() {
		start := time.Now()
		err := cc.Invoke(context.Background(), method, l.request, out)
		if err == nil && len(out.Value) != l.reply {
			err = fmt.Errorf("cannot take a reply of %d bytes, want %d", len(out.Value), l.reply)
		}
		if err != nil {
			return err
		}
		arrived()
		if l.measuring.Load() {
			l.replies.Add(1)
			took := time.Since(start)
			l.mu.Lock()
			l.latency.Add(int64(took), 1)
			l.mu.Unlock()
		}
	}
	return nil
}

// measure lets the load run until the warm-up is over and every caller has had a reply, so that
// connections are made and as many calls are in flight as there are callers; then it measures. A
// window lasts no shorter than it took until then, up to maxWindow: in one shorter than a call,
// what the server works on is not what ends in it.
func (l *callers) measure() (goal.Sample, error) {
	begun := time.Now()
	time.Sleep(l.warmup)
	everybody := make(chan struct{})
	go func() {
		l.waiting.Wait()
		close(everybody)
	}()
	select {
	case <-everybody:
	case <-time.After(firstTimeout):
	}
	lasting := max(l.window, min(time.Since(begun), maxWindow))
	w, err := load.OpenWindow(l.pid, 0)
	if err != nil {
		return goal.Sample{}, err
	}
	l.measuring.Store(true)
	time.Sleep(lasting)
	l.measuring.Store(false)
	return w.Close(l.replies.Load())
}
