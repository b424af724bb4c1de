package load

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// PacedConfig describes requests of the kernel protocol that are sent at a rate of their own,
// whatever the replies do.
type PacedConfig struct {
	Addr   string  // IPv4 host:port
	Tapes  []*Tape // one connection each; requests go round them
	Depth  int     // most requests in flight per connection; what is due beyond it waits, and its latency grows
	PerSec float64 // requests per second over all connections
	For    time.Duration
	Slice  time.Duration // latencies are counted apart for each slice of the run
	Tick   time.Duration // the time between two bursts: requests are due at its multiples; 0 means a millisecond
	// Burst is how many requests that are due together one connection gets, with one write; 0 means
	// 1. Where it is all of a tick's, connections take turns: each sends its burst at a moment of
	// its own.
	Burst int
	// Spin has the generator poll instead of sleep until the next tick, for ticks shorter than a
	// sleep can be.
	Spin bool
	CPUs []int // pin the generator to these CPUs; empty: anywhere
}

// pacedTick is the usual time between two bursts.
const pacedTick = time.Millisecond

// tick is the time between two bursts.
func (c *PacedConfig) tick() time.Duration {
	if c.Tick == 0 {
		return pacedTick
	}
	return c.Tick
}

// maxSlices bounds the memory of a Paced run: a histogram takes some 20 KiB.
const maxSlices = 4096

// Paced is what a paced run showed: a histogram for each slice, of the requests that were due in
// it. A latency counts from the time a request was due to its reply, so that a server, or a
// generator, that falls behind shows.
type Paced struct {
	Start  time.Time
	Width  time.Duration
	Slices []Histogram
}

// Between adds up the slices that lie within from and to, which may be any times.
func (p *Paced) Between(from, to time.Time) *Histogram {
	h := new(Histogram)
	for i := range p.Slices {
		start := p.Start.Add(time.Duration(i) * p.Width)
		if !start.Before(from) && !start.Add(p.Width).After(to) {
			h.Merge(&p.Slices[i])
		}
	}
	return h
}

// pacer is a worker that sends when requests are due.
type pacer struct {
	worker
	cfg   PacedConfig
	total int64 // requests of the run
	sent  int64
	turn  int // connection that is asked first
	out   *Paced
}

// RunPaced sends for cfg.For, waits for all replies and returns their latencies. An ERROR frame or
// a lost connection is an error.
func RunPaced(cfg PacedConfig) (*Paced, error) {
	addr, err := netip.ParseAddrPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot use address %q: %w", cfg.Addr, err)
	}
	if cfg.Depth < 1 || len(cfg.Tapes) == 0 || cfg.PerSec <= 0 || cfg.Slice < cfg.tick() || cfg.tick() < 0 || cfg.For/cfg.Slice >= maxSlices {
		return nil, fmt.Errorf("cannot run %d connections at depth %d, %.0f requests/s, for %v in slices of %v",
			len(cfg.Tapes), cfg.Depth, cfg.PerSec, cfg.For, cfg.Slice)
	}
	p := &pacer{cfg: cfg, total: int64(cfg.PerSec * cfg.For.Seconds())}
	p.worker = worker{s: &Session{split: splitKernel, done: make(chan struct{})}, epoll: -1, buf: make([]byte, readBuffer)}
	p.s.workers = []*worker{&p.worker}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot open an epoll instance: %w", err)
	}
	defer p.s.close()
	for _, t := range cfg.Tapes {
		if err := p.connect(addr, t, Config{Depth: cfg.Depth}); err != nil {
			return nil, err
		}
	}
	return p.pinned()
}

// pinned is paced on the CPUs that are asked for. As a worker's, its thread is not unlocked.
func (p *pacer) pinned() (out *Paced, err error) {
	if len(p.cfg.CPUs) == 0 {
		return p.paced()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = pin(p.cfg.CPUs); err == nil {
			out, err = p.paced()
		}
	}()
	<-done
	return out, err
}

// clock makes the descriptor that is ready at every tick.
func (p *pacer) clock() (fd int, err error) {
	if fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return -1, fmt.Errorf("cannot make a timer: %w", err)
	}
	every := unix.NsecToTimespec(int64(p.cfg.tick()))
	err = unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil)
	if err == nil {
		err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot set a timer: %w", err)
	}
	return fd, nil
}

func (p *pacer) paced() (*Paced, error) {
	timer, wait := -1, 0
	if !p.cfg.Spin {
		var err error
		if timer, err = p.clock(); err != nil {
			return nil, err
		}
		defer unix.Close(timer)
		wait = pollMillis
	}
	p.s.epoch = time.Now()
	p.out = &Paced{Start: p.s.epoch, Width: p.cfg.Slice, Slices: make([]Histogram, p.cfg.For/p.cfg.Slice+1)}
	events := make([]unix.EpollEvent, 1024)
	var expired [8]byte
	for p.sent < p.total || p.inflight() > 0 {
		if time.Since(p.out.Start) > p.cfg.For+drainTimeout {
			return nil, fmt.Errorf("%d requests not answered %v after the last one was due", p.total-p.sent+int64(p.inflight()), drainTimeout)
		}
		n, err := unix.EpollWait(p.epoll, events, wait)
		if err != nil && err != unix.EINTR {
			return nil, fmt.Errorf("cannot wait for replies: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				_, _ = unix.Read(timer, expired[:]) // how many ticks were missed, the clock shows as well
				continue
			}
			if err := p.receive(p.conns[e.Fd], e.Events); err != nil {
				return nil, err
			}
		}
		if err := p.sendDue(p.s.nanotime()); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

// due returns when request n is due, in nanoseconds since the start.
func (p *pacer) due(n int64) int64 {
	at := int64(float64(n) / p.cfg.PerSec * 1e9)
	return at - at%int64(p.cfg.tick())
}

// sendDue sends what is due and has room on a connection.
func (p *pacer) sendDue(now int64) error {
	for p.sent < p.total && p.due(p.sent) <= now {
		c := p.roomy()
		if c == nil {
			return nil
		}
		n := p.together(c.depth - c.inflight)
		if err := c.issue(n, p.due(p.sent)); err != nil {
			return p.lost(c, err)
		}
		if err := p.watch(c); err != nil {
			return p.lost(c, err)
		}
		p.sent += int64(n)
	}
	return nil
}

// together returns how many requests, at most room, are one burst: those due at the same tick as
// the next one.
func (p *pacer) together(room int) int {
	n := 1
	for most := min(room, max(p.cfg.Burst, 1)); n < most && p.sent+int64(n) < p.total && p.due(p.sent+int64(n)) == p.due(p.sent); {
		n++
	}
	return n
}

// roomy returns the next connection that may send, nil if none may.
func (p *pacer) roomy() *conn {
	for range p.conns {
		c := p.conns[p.turn]
		p.turn = (p.turn + 1) % len(p.conns)
		if c.inflight < c.depth && len(c.unsent) == 0 {
			return c
		}
	}
	return nil
}

func (p *pacer) receive(c *conn, events uint32) error {
	replies, err := 0, error(nil)
	if events&^unix.EPOLLOUT != 0 {
		replies, err = p.read(c)
	}
	if err == nil && len(c.unsent) > 0 && events&unix.EPOLLOUT != 0 {
		err = c.write(c.unsent)
	}
	if err == nil {
		err = p.watch(c)
	}
	if err != nil {
		return p.lost(c, err)
	}
	for now := p.s.nanotime(); replies > 0; replies-- {
		at := c.batches[c.head].at
		c.settle(1, now, &p.out.Slices[min(at/int64(p.out.Width), int64(len(p.out.Slices)-1))])
	}
	return nil
}

// lost ends the run: a rate that some connections no longer carry is another rate.
func (p *pacer) lost(c *conn, err error) error {
	p.fail(c, err)
	return errors.Join(p.s.errs...)
}
