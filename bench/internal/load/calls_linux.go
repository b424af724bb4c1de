package load

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstTimeout bounds the wait for the first reply of every caller: tens of thousands of calls
	// at a time take seconds each.
	firstTimeout = 20 * time.Second
	// maxLast bounds the window where calls take long.
	maxLast = 5 * time.Second
)

// Calls is a load of callers that each make one call after the other, for clients that block.
type Calls struct {
	begun     time.Time
	warm      time.Duration // how long it took until every caller had a reply
	callers   int
	first     atomic.Int64 // callers whose first call has ended
	running   sync.WaitGroup
	stopping  atomic.Bool
	recording atomic.Bool
	replies   atomic.Uint64

	mu      sync.Mutex
	latency Histogram
	err     error
}

// StartCalls starts n callers. call makes the one that is numbered nth of a caller's, both from 0
// on; an error ends the caller.
func StartCalls(n int, call func(caller, nth int) error) *Calls {
	c := &Calls{begun: time.Now(), callers: n}
	for i := range n {
		c.running.Go(func() { c.run(func(nth int) error { return call(i, nth) }) })
	}
	return c
}

func (c *Calls) run(call func(nth int) error) {
	var own Histogram
	var err error
	for nth := 0; err == nil && !c.stopping.Load(); nth++ {
		start := time.Now()
		err = call(nth)
		if nth == 0 {
			c.first.Add(1)
		}
		if err != nil {
			break
		}
		c.replies.Add(1)
		if c.recording.Load() {
			own.Add(int64(time.Since(start)), 1)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency.Merge(&own)
	c.err = errors.Join(c.err, err)
}

// Warm implements Running. It waits until every caller has had a reply, so that connections are
// made and as many calls are in flight as there are callers.
func (c *Calls) Warm(lasting time.Duration) {
	time.Sleep(lasting)
	for end := time.Now().Add(firstTimeout); c.first.Load() < int64(c.callers) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	c.warm = time.Since(c.begun)
}

// Last implements Running. It takes no less time than warming up did, up to a limit: in a window
// shorter than a call, what the server works on is not what ends in it.
func (c *Calls) Last(lasting time.Duration) {
	c.recording.Store(true)
	time.Sleep(max(lasting, min(c.warm, maxLast)))
	c.recording.Store(false)
}

// Replies implements Running.
func (c *Calls) Replies() uint64 { return c.replies.Load() }

// Stop implements Running. What is in flight is waited for.
func (c *Calls) Stop() (*Histogram, error) {
	c.stopping.Store(true)
	c.running.Wait()
	return &c.latency, c.err
}
