package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/bench/internal/load"
)

// reference is the well-behaved load: connections that each ask at a fixed rate, one request at a
// time.
type reference struct {
	addr  string
	conns int
	rate  int // requests per second, all connections together
}

// answer is what one connection saw.
type answer struct {
	latency load.Histogram
	err     error
}

// during runs the reference load while attack runs, at least for atLeast, and returns its
// latencies.
func (r reference) during(atLeast time.Duration, attack func() error) (*load.Histogram, error) {
	stop := make(chan struct{})
	answers := make([]answer, r.conns)
	var wg sync.WaitGroup
	for i := range r.conns {
		c, err := load.Dial(r.addr)
		if err != nil {
			close(stop)
			wg.Wait()
			return nil, fmt.Errorf("cannot connect the reference load: %w", err)
		}
		wg.Go(func() {
			defer c.Close()
			answers[i].err = r.work(c, i, &answers[i].latency, stop)
		})
	}
	least := time.After(atLeast)
	attackErr := attack()
	<-least
	close(stop)
	wg.Wait()
	total := new(load.Histogram)
	err := attackErr
	for i := range answers {
		total.Merge(&answers[i].latency)
		if e := answers[i].err; e != nil && err == attackErr {
			err = errors.Join(attackErr, fmt.Errorf("reference connection %d: %w", i, e))
		}
	}
	return total, err
}

// work asks until stop. A request that could not be sent in time because the one before was still
// out counts from the moment it was due, so that a stall of the server is not hidden by the
// requests that it kept from being sent.
func (r reference) work(c *load.Client, conn int, latency *load.Histogram, stop <-chan struct{}) error {
	every := time.Second * time.Duration(r.conns) / time.Duration(r.rate)
	request := load.AppendRequest(nil, "reference", "kernel", "GetProcess", load.Field{Key: "pid", Value: processID(conn)})
	due := time.Now().Add(every * time.Duration(conn) / time.Duration(r.conns))
	for {
		late := time.Now().After(due)
		if !late {
			select {
			case <-stop:
				return nil
			case <-time.After(time.Until(due)):
			}
		}
		start := time.Now()
		if late {
			start = due
		}
		typ, payload, err := c.Exchange(request)
		if err != nil {
			return err
		}
		if typ != load.Response {
			return fmt.Errorf("cannot take frame 0x%02X %q as a reply to GetProcess", typ, payload)
		}
		latency.Add(int64(time.Since(start)), 1)
		due = due.Add(every)
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

func processID(i int) string { return fmt.Sprintf("feed0000-0000-4000-8000-%012x", i) }

// createProcesses makes the processes that the reference load asks for.
func createProcesses(addr string, n int) error {
	tape := new(load.Tape)
	for i := range n {
		pid := load.Field{Key: "pid", Value: processID(i)}
		tape.Add(0, load.AppendRequest(nil, "create", "kernel", "CreateProcess", pid, load.Field{Key: "user_id", Value: processID(i)}))
	}
	if err := load.SendOnce(addr, load.Kernel, []*load.Tape{tape}, 64); err != nil {
		return fmt.Errorf("cannot create %d processes: %w", n, err)
	}
	return nil
}
