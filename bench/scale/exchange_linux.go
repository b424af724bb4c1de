package main

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// burst is how many requests an exchange has in flight on each connection: it sends that many in
// one write, reads the replies, and sends the next.
const burst = 16

// exchange is a load whose replies may be as large as a frame, which is more than a load.Session
// takes.
type exchange struct {
	clients  []*load.Client
	replies  atomic.Uint64
	stopping atomic.Bool
	wg       sync.WaitGroup
	errs     chan error
}

// startExchange begins to send one request after the other over a connection each. Stop must
// follow.
func startExchange(addr string, requests [][]byte) (*exchange, error) {
	x := &exchange{errs: make(chan error, 2*len(requests))}
	for range requests {
		c, err := load.Dial(addr)
		if err != nil {
			x.close()
			return nil, err
		}
		x.clients = append(x.clients, c)
	}
	for i, c := range x.clients {
		kicks := make(chan struct{})
		x.wg.Go(func() { x.send(c, bytes.Repeat(requests[i], burst), kicks) })
		x.wg.Go(func() { x.receive(c, kicks) })
	}
	return x, nil
}

// send writes a burst for each kick. It is beside receive because neither side need take a burst
// whole before it is read from.
func (x *exchange) send(c *load.Client, requests []byte, kicks <-chan struct{}) {
	for range kicks {
		if _, err := c.Write(requests); err != nil {
			x.fail(c, fmt.Errorf("cannot write requests: %w", err))
		}
	}
}

// fail notes why a connection ended. Closing it ends its other half too.
func (x *exchange) fail(c *load.Client, err error) {
	c.Close()
	x.errs <- err
}

func (x *exchange) receive(c *load.Client, kicks chan<- struct{}) {
	defer close(kicks)
	for stop := false; !stop; stop = x.stopping.Load() {
		kicks <- struct{}{}
		for range burst {
			typ, payload, err := c.Next()
			if err == nil && typ != load.Response {
				err = fmt.Errorf("cannot take frame 0x%02X as a reply: %.200q", typ, payload)
			}
			if err != nil {
				x.fail(c, err)
				return
			}
			x.replies.Add(1)
		}
	}
}

// stop waits for the replies that are out, closes the connections and returns the first error.
func (x *exchange) stop() error {
	x.stopping.Store(true)
	x.wg.Wait()
	x.close()
	select {
	case err := <-x.errs:
		return err
	default:
		return nil
	}
}

func (x *exchange) close() {
	for _, c := range x.clients {
		c.Close()
	}
}

// measure runs the load against a server for a window.
func (x *exchange) measure(s *load.Server, warmup, window time.Duration) (goal.Sample, error) {
	time.Sleep(warmup)
	w, err := load.OpenWindow(s.PID(), x.replies.Load())
	if err != nil {
		return goal.Sample{}, err
	}
	time.Sleep(window)
	return w.Close(x.replies.Load())
}
