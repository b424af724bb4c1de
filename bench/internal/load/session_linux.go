package load

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Protocol is the framing of the replies.
type Protocol uint8

// The protocols a Session can speak.
const (
	Kernel  Protocol = iota // kernel-ipc §2.1
	RESP                    // redis
	HTTP                    // HTTP/1.1, kept connections, one 200 with Content-Length to each request
	Lines                   // one line to each line, all replies of the length Config.Reply
	Answers                 // one line to each line, all replies beginning with Config.Good
	NATS                    // the lines of NATS, each message on the connection's inbox a reply; see NATSTape
)

// Config describes a run.
type Config struct {
	Addr     string // IPv4 host:port
	Protocol Protocol
	Tapes    []*Tape // one connection each
	Reply    int     // Lines: bytes of each reply, the line feed included
	Good     string  // Answers: how each reply begins
	Greeted  string  // Answers: how what answers a Tape's Hello begins, if anything does
	Event    string  // Answers: how a line begins that counts as a chunk, if any does
	Depth    int     // requests in flight per connection
	Workers  int     // goroutines; 0 means 1
	CPUs     []int   // pin the workers to these CPUs; empty: anywhere
	Once     bool    // send every tape once instead of until Stop
	// Spin has the workers poll instead of sleep when nothing has arrived, so that a server does
	// not pay, in its write calls, for waking this process: a constant-reply server that outruns
	// the generator never does.
	Spin bool
	// Full has Measure prolong the warm-up, within reason, until as many replies came as requests
	// are in flight: with so many connections that their set-up takes longer than the warm-up, a
	// window would show that.
	Full bool
	// Refused evaluates an ERROR frame: tag is the request's, payload is valid during the call. An
	// error ends the connection. Nil lets no ERROR frame pass. Workers call it concurrently.
	Refused func(tag uint8, payload []byte) error
}

// Session is a running load.
type Session struct {
	split     func(w *worker, c *conn, b []byte) (used, replies int, err error)
	refused   func(tag uint8, payload []byte) error
	finite    bool
	wait      atomic.Int64 // milliseconds a worker may sleep
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

// maxErrors bounds the distinct errors a Session keeps.
const maxErrors = 8

// Start connects every tape's connection and begins to send. Stop must follow.
func Start(cfg Config) (*Session, error) {
	addr, err := netip.ParseAddrPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot use address %q: %w", cfg.Addr, err)
	}
	if cfg.Protocol == Answers && cfg.Good == "" {
		return nil, errors.New("cannot take replies that begin with nothing")
	}
	if cfg.Protocol == Lines && cfg.Reply < 1 {
		return nil, fmt.Errorf("cannot take replies of %d bytes", cfg.Reply)
	}
	if cfg.Depth < 1 || len(cfg.Tapes) == 0 {
		return nil, fmt.Errorf("cannot run %d connections at depth %d", len(cfg.Tapes), cfg.Depth)
	}
	s := &Session{split: splitterOf(cfg), refused: cfg.Refused, finite: cfg.Once, epoch: time.Now(), done: make(chan struct{})}
	s.Spin(cfg.Spin)
	for range min(max(cfg.Workers, 1), len(cfg.Tapes)) {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("cannot open an epoll instance: %w", err)
		}
		s.workers = append(s.workers, &worker{s: s, epoll: epoll, buf: make([]byte, readBuffer)})
	}
	for i, t := range cfg.Tapes {
		if err := s.workers[i%len(s.workers)].connect(addr, t, cfg); err != nil {
			s.close()
			return nil, err
		}
	}
	go s.run(cfg.CPUs)
	return s, nil
}

func (w *worker) connect(addr netip.AddrPort, t *Tape, cfg Config) error {
	if t.Len() == 0 {
		return errors.New("cannot send an empty tape")
	}
	fd, err := dial(addr)
	if err != nil {
		return err
	}
	t.seal(cfg.Depth)
	t.reply = t.next
	c := &conn{fd: fd, index: len(w.conns), tape: t, depth: cfg.Depth, remaining: -1, batches: make([]batch, cfg.Depth+1)}
	if cfg.Once {
		c.remaining = t.Len()
	}
	w.conns = append(w.conns, c)
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.index)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("cannot watch a connection: %w", err)
	}
	if len(t.Hello) > 0 {
		return c.write(t.Hello)
	}
	return nil
}

// run waits for every worker and closes what they used.
func (s *Session) run(cpus []int) {
	var wg sync.WaitGroup
	for _, w := range s.workers {
		wg.Go(func() {
			if err := w.pinned(cpus); err != nil {
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
				unix.Close(c.fd)
			}
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

// evaluate decides about an ERROR frame.
func (s *Session) evaluate(tag uint8, payload []byte) error {
	if s.refused != nil {
		return s.refused(tag, payload)
	}
	f, err := ParseFailure(payload)
	if err != nil {
		return err
	}
	return f
}

// Replies returns the number of unary replies so far, errors that were let pass included.
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

// Spin has the workers poll instead of sleep from now on, or not: see Config.
func (s *Session) Spin(on bool) {
	if s.wait.Store(pollMillis); on {
		s.wait.Store(0)
	}
}

// Record switches the counting of latencies on or off.
func (s *Session) Record(on bool) { s.recording.Store(on) }

// Done is closed when every connection has finished: after Stop, after a tape sent Once, or when
// all have failed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Stop sends no more requests, waits for the replies in flight, closes the connections and returns
// the latencies recorded. The error joins everything that went wrong, missing replies included.
func (s *Session) Stop() (*Histogram, error) {
	s.stopping.Store(true)
	return s.Wait()
}

// Wait is Stop for a run that ends by itself (Once).
func (s *Session) Wait() (*Histogram, error) {
	<-s.done
	h := new(Histogram)
	for _, w := range s.workers {
		h.Merge(&w.hist)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return h, errors.Join(s.errs...)
}

// SendOnce sends every tape once at the given depth and waits for all replies.
func SendOnce(addr string, p Protocol, tapes []*Tape, depth int) error {
	s, err := Start(Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Once: true})
	if err != nil {
		return err
	}
	_, err = s.Wait()
	return err
}
