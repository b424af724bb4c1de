// Package load is what the parts of ./bench share beside their reports: a closed loop, for
// comparing what servers cost per request, requests of the kernel and framings of its peers, and
// server processes with their cpu time and memory.
//
// A part stands on a Rig: a folder that goes with the run, the binary of the server under test, and
// the processes started in it. Measure runs one load against one server and returns the figures
// that bench/internal/goal evaluates; Tapes, Deal and RowEncoders make the requests about a table's
// rows.
//
// The package reads /proc: Linux only.
package load

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Config describes a closed loop: connections that keep their depth of requests in flight, for
// comparing what servers cost. One worker goroutine owns many connections through one epoll
// instance and allocates nothing per request; it answers each batch of replies with one write of as
// many requests, as a pipelining client does. With PerSec it is paced instead (see Pace).
type Config struct {
	Addr     string   // host:port
	In, Out  *os.File // instead of Addr: pipes of replies and of requests, with room for all in flight
	Protocol Protocol // of the replies; nil: Kernel
	Tapes    []*Tape  // one connection each
	Reply    int      // Lines: bytes of each reply, the line feed included; 0: any number
	Good     string   // Lines: how each reply begins
	Greeted  string   // Lines: how what answers a Tape's Hello begins, if anything does
	Event    string   // Lines: how a line begins that counts as a chunk, if any does
	Depth    int      // requests in flight per connection
	Workers  int      // goroutines; 0 means 1
	CPUs     []int    // pin the workers to these CPUs; empty: anywhere
	Once     bool     // send every tape once instead of until Stop
	// Spin has the workers poll instead of sleep when nothing has arrived, so that a server does
	// not pay, in its write calls, for waking this process: a constant-reply server that outruns
	// the generator never does.
	Spin bool
	// Full has Session.Warm wait, within reason, until as many replies came as requests are in
	// flight: with so many connections that their set-up takes longer than the warm-up, a window
	// would show that.
	Full bool
	// Refused evaluates an ERROR frame. An error ends the connection. Nil lets no ERROR frame pass,
	// and its error is a *Failure. Workers call it concurrently.
	Refused func(f *Failure) error

	// PerSec, if it is not 0, is how many requests per second are sent over all connections,
	// whatever the replies do, by one worker. Depth bounds what is in flight; what is due beyond it
	// waits, and its latency grows: latencies count from when a request was due, so that a server,
	// or a generator, that falls behind shows.
	PerSec float64
	For    time.Duration // how long to send, all latencies recorded; 0: until Stop
	Tick   time.Duration // the time between two bursts: requests are due at its multiples; 0 means a millisecond
	// Burst is how many requests that are due together one connection gets, with one write; 0 means
	// 1. Where it is all of a tick's, connections take turns: each sends its burst at a moment of
	// its own.
	Burst int
	// Each, if not nil, is called by the worker for each reply of a paced run, with the due time of
	// the request and its latency. The histogram is not used then.
	Each func(due time.Time, latency time.Duration)
}

// Session is a closed loop that runs.
type Session struct {
	cfg       Config
	wait      int // milliseconds a worker may sleep
	epoch     time.Time
	workers   []*worker
	done      chan struct{}
	stopping  atomic.Bool
	recording atomic.Bool
	deadConns atomic.Int64
	dropped   atomic.Uint64

	mu   sync.Mutex
	errs []error
}

const (
	// maxErrors bounds the distinct errors a Session keeps.
	maxErrors = 8
	// stallTimeout bounds how much longer than asked for a window lasts that no reply has come in
	// yet: a sync that stalls is longer than a short window.
	stallTimeout = 10 * time.Second
	// subscribeTimeout bounds the wait for streams to open.
	subscribeTimeout = 10 * time.Second
	// fillTimeout bounds how much longer than asked for a warm-up lasts that is to see the load in
	// full.
	fillTimeout = 3 * time.Second
)

// Start connects every tape's connection and begins to send. Stop must follow.
func Start(cfg Config) (*Session, error) {
	if cfg.Depth < 1 || len(cfg.Tapes) == 0 {
		return nil, fmt.Errorf("cannot run %d connections at depth %d", len(cfg.Tapes), cfg.Depth)
	}
	if cfg.PerSec < 0 || cfg.For < 0 || cfg.Tick < 0 || cfg.PerSec == 0 && cfg.For > 0 {
		return nil, fmt.Errorf("cannot run %.0f requests/s in ticks of %v for %v", cfg.PerSec, cfg.Tick, cfg.For)
	}
	s := &Session{cfg: cfg, wait: pollMillis, done: make(chan struct{})}
	if cfg.Spin {
		s.wait = 0
	}
	if cfg.Protocol == nil {
		s.cfg.Protocol = Kernel
	}
	if cfg.PerSec > 0 {
		s.cfg.Workers = 1
	}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	s.epoch = time.Now()
	s.recording.Store(cfg.For > 0)
	go s.run()
	return s, nil
}

// open makes the workers, and the connections of the tapes.
func (s *Session) open() error {
	for range min(max(s.cfg.Workers, 1), len(s.cfg.Tapes)) {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return fmt.Errorf("cannot open an epoll instance: %w", err)
		}
		s.workers = append(s.workers, &worker{s: s, epoll: epoll, buf: make([]byte, closedBuffer)})
	}
	for i, t := range s.cfg.Tapes {
		if err := s.workers[i%len(s.workers)].connect(t); err != nil {
			return err
		}
	}
	return s.setPace()
}

// connect opens the connection of a tape.
func (w *worker) connect(t *Tape) error {
	if t.Len() == 0 {
		return errors.New("cannot send an empty tape")
	}
	cfg := &w.s.cfg
	in, out, err := cfg.open()
	if err != nil {
		return err
	}
	t.seal(cfg.Depth)
	c := &pipeline{in: in, out: out, index: len(w.conns), tape: t, remaining: -1, batches: make([]batch, cfg.Depth+1)}
	if cfg.Once {
		c.remaining = t.Len()
	}
	w.conns = append(w.conns, c)
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, in, &e); err != nil {
		return fmt.Errorf("cannot watch a connection: %w", err)
	}
	if len(t.Hello) > 0 {
		return c.write(t.Hello)
	}
	return nil
}

// run waits for every worker and closes what they used.
func (s *Session) run() {
	var wg sync.WaitGroup
	for _, w := range s.workers {
		wg.Go(func() {
			if err := w.run(); err != nil {
				s.dropped.Add(uint64(w.inflight()))
				s.report(err)
			}
		})
	}
	wg.Wait()
	s.close()
	close(s.done)
}

func (s *Session) close() {
	for _, w := range s.workers {
		for _, c := range w.conns {
			if !c.dead {
				c.close()
			}
		}
		if w.pace != nil && w.pace.timer >= 0 {
			unix.Close(w.pace.timer)
		}
		unix.Close(w.epoll)
	}
}

func (s *Session) nanotime() int64 { return int64(time.Since(s.epoch)) }

func (s *Session) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.errs {
		if e.Error() == err.Error() {
			return
		}
	}
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, err)
	}
}

// Replies returns the number of replies so far, errors that were let pass included.
func (s *Session) Replies() (n uint64) {
	for _, w := range s.workers {
		n += w.replies.Load()
	}
	return n
}

// Chunks returns the number of stream frames, or of events, so far.
func (s *Session) Chunks() (n uint64) {
	for _, w := range s.workers {
		n += w.chunks.Load()
	}
	return n
}

// Dropped returns the number of requests that will never be answered because their connection
// failed.
func (s *Session) Dropped() uint64 { return s.dropped.Load() }

// Record switches the counting of latencies on or off.
func (s *Session) Record(on bool) { s.recording.Store(on) }

// Warm lets the load run for a while, and until it is Full.
func (s *Session) Warm(lasting time.Duration) {
	time.Sleep(lasting)
	if s.cfg.Full {
		s.until(func() bool { return s.Replies() >= uint64(len(s.cfg.Tapes)*s.cfg.Depth) }, fillTimeout)
	}
}

// Last lets the load run for a while, counts latencies, and goes on, within reason, until a reply
// has come.
func (s *Session) Last(lasting time.Duration) {
	before := s.Replies()
	s.Record(true)
	defer s.Record(false)
	time.Sleep(lasting)
	s.until(func() bool { return s.Replies() > before }, stallTimeout)
}

// until waits for something, at most for a while or until the load has ended.
func (s *Session) until(is func() bool, within time.Duration) {
	for end := time.Now().Add(within); !is() && time.Now().Before(end); {
		select {
		case <-s.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Done is closed when every connection has finished: after Stop, after a tape sent Once, or when
// all have failed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Stop sends no more requests, waits for the replies in flight, closes the connections and returns
// the latencies recorded. The error joins everything that went wrong, missing replies included.
func (s *Session) Stop() (*Histogram, error) {
	s.stopping.Store(true)
	return s.Wait()
}

// Wait is Stop for a run that ends by itself.
func (s *Session) Wait() (*Histogram, error) {
	<-s.done
	l := new(Histogram)
	for _, w := range s.workers {
		l.Merge(&w.latency)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l, errors.Join(s.errs...)
}

// RunToEnd runs a load that Once or For bounds, and returns its latencies. A lost connection is an
// error.
func RunToEnd(cfg Config) (*Histogram, error) {
	s, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	return s.Wait()
}

// SendOnce sends every tape once at the given depth and waits for all replies.
func SendOnce(addr string, p Protocol, tapes []*Tape, depth int) error {
	_, err := RunToEnd(Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Once: true})
	return err
}

// Publish is a request that publishes an event, a text of n bytes.
func Publish(eventType string, n int, source string) []byte {
	return NewRequest("commbus", "Publish", "event_type", eventType, "payload", strconv.Quote(strings.Repeat("x", n)), "source", source)
}

// Subscribe opens n streams of the events of one type, each on a connection of its own, and waits
// until all are acknowledged by a first chunk. They end with the server, and as the requests are
// never answered, Stop has errors.
func Subscribe(addr, eventType string, n int) (*Session, error) {
	cfg := Config{Addr: addr, Depth: 1}
	for range n {
		cfg.Tapes = append(cfg.Tapes, TapeOf(NewRequest("commbus", "Subscribe", "event_types", []string{eventType}, "ack", true)))
	}
	s, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	if s.until(func() bool { return s.Chunks() >= uint64(n) }, subscribeTimeout); s.Chunks() < uint64(n) {
		if s.deadConns.Load() > 0 {
			_, err = s.Stop()
		}
		return nil, fmt.Errorf("cannot subscribe: %d acknowledgements of %d: %w", s.Chunks(), n, err)
	}
	return s, nil
}
