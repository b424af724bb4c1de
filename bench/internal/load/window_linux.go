package load

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/bench/internal/goal"
	"trunkline/cmd/trunkline/loadgen"
)

// Window is the measured part of a load: what had been used and answered when it began.
type Window struct {
	pid     int
	cpu     time.Duration
	start   time.Time
	replies uint64
}

// OpenWindow begins the measured part of a load of the process, after so many replies. With pid 0
// there is no process of ours, and its cpu time and memory are left out.
func OpenWindow(pid int, replies uint64) (w Window, err error) {
	w = Window{pid: pid, replies: replies}
	if pid != 0 {
		w.cpu, err = cpu(pid)
	}
	w.start = time.Now()
	return w, err
}

// Close ends the window after so many replies and returns all figures but the latencies. Without a
// reply it is an error.
func (w Window) Close(replies uint64) (goal.Sample, error) {
	elapsed := time.Since(w.start)
	s := goal.Sample{Requests: replies - w.replies}
	if s.Requests == 0 {
		return s, fmt.Errorf("no reply in %v", elapsed)
	}
	s.PerSec = float64(s.Requests) / elapsed.Seconds()
	if w.pid == 0 {
		return s, nil
	}
	cpu, err := cpu(w.pid)
	if err != nil {
		return s, err
	}
	s.CPU = float64(cpu-w.cpu) / float64(s.Requests)
	m, err := memoryOf(w.pid)
	s.RSS, s.Peak = m.RSS, m.Peak
	return s, err
}

// Measure runs one load against one server: warm-up, window, and the replies that are still out.
func Measure(cfg Config, server *Server, warmup, window time.Duration) (goal.Sample, error) {
	if !server.Alive() {
		return goal.Sample{}, errors.New("the server ended; its output:\n" + server.Output())
	}
	return MeasureProcess(cfg, server.PID(), warmup, window)
}

// MeasureProcess is Measure for a server that another program started, whose process is pid, or 0
// where that is not known.
func MeasureProcess(cfg Config, pid int, warmup, window time.Duration) (s goal.Sample, err error) {
	session, err := Start(cfg)
	if err != nil {
		return s, err
	}
	return MeasureRunning(session, []int{pid}, warmup, window)
}

// Running is a load that runs, as a Session does.
type Running interface {
	Warm(lasting time.Duration)
	Last(lasting time.Duration)
	Replies() uint64
	Stop() (*Histogram, error)
}

// MeasureRunning measures a load that has been started, of servers that answer it together: the
// sample has the cpu time and the memory of all of their processes.
func MeasureRunning(l Running, pids []int, warmup, window time.Duration) (sum goal.Sample, err error) {
	l.Warm(warmup)
	windows := make([]Window, len(pids))
	for i, pid := range pids {
		var openErr error
		windows[i], openErr = OpenWindow(pid, l.Replies())
		err = errors.Join(err, openErr)
	}
	if err == nil {
		l.Last(window)
		for _, w := range windows {
			s, closeErr := w.Close(l.Replies())
			err = errors.Join(err, closeErr)
			sum.Requests, sum.PerSec = s.Requests, s.PerSec
			sum.CPU += s.CPU
			sum.RSS += s.RSS
			sum.Peak += s.Peak
		}
	}
	latency, stopErr := l.Stop()
	sum.Quantiles(latency.Quantile)
	return sum, errors.Join(stopErr, err)
}

// Histogram counts latencies. The zero value is empty and takes its memory with the first latency.
// It is not safe for concurrent use.
type Histogram struct{ h *hdrhistogram.Histogram }

// Add counts n requests that took ns nanoseconds each. What is outside of the range of
// loadgen.NewHistogram counts as its end. It allocates for the first one only.
func (l *Histogram) Add(ns int64, n uint64) {
	if l.h == nil {
		l.h = loadgen.NewHistogram()
	}
	_ = l.h.RecordValues(min(max(ns, loadgen.LowestLatency), loadgen.HighestLatency), int64(n)) // the range is limited here
}

// Merge adds the latencies of o.
func (l *Histogram) Merge(o *Histogram) {
	if o.h == nil {
		return
	}
	if l.h == nil {
		l.h = loadgen.NewHistogram()
	}
	l.h.Merge(o.h)
}

// Total returns the number of requests counted.
func (l *Histogram) Total() uint64 {
	if l.h == nil {
		return 0
	}
	return uint64(l.h.TotalCount())
}

// Quantile returns the latency that the share q of the requests did not exceed, 0 without any.
func (l *Histogram) Quantile(q float64) time.Duration {
	if l.h == nil {
		return 0
	}
	return time.Duration(l.h.ValueAtQuantile(100 * q))
}

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
