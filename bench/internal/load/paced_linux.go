package load

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// pacedTick is the usual time between two bursts.
const pacedTick = time.Millisecond

// pace is when the requests of a worker are due.
type pace struct {
	cfg   *Config
	tick  int64
	timer int   // descriptor that is ready at every tick; -1: polled
	total int64 // requests of the run
	sent  int64
	turn  int // connection that is asked first
}

// setPace has the worker send when requests are due, where the session asks for that.
func (s *Session) setPace() error {
	if s.cfg.PerSec == 0 {
		return nil
	}
	p := &pace{cfg: &s.cfg, tick: int64(cmp.Or(s.cfg.Tick, pacedTick)), timer: -1, total: math.MaxInt64}
	if s.cfg.For > 0 {
		p.total = int64(s.cfg.PerSec * s.cfg.For.Seconds())
	}
	w := s.workers[0]
	w.pace = p
	if s.cfg.Spin {
		return nil
	}
	var err error
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("cannot make a timer: %w", err)
	}
	every := unix.NsecToTimespec(p.tick)
	err = unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil)
	if err == nil {
		err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, p.timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err != nil {
		return fmt.Errorf("cannot set a timer: %w", err)
	}
	return nil
}

// due returns when request n is due, in nanoseconds since the start.
func (p *pace) due(n int64) int64 {
	at := int64(float64(n) / p.cfg.PerSec * 1e9)
	return at - at%p.tick
}

// sendDue sends what is due and has room on a connection.
func (w *worker) sendDue(now int64) {
	p := w.pace
	for p.sent < p.total && p.due(p.sent) <= now {
		c := w.roomy()
		if c == nil {
			return
		}
		n := p.together(p.cfg.Depth - c.inflight)
		err := c.issue(n, p.due(p.sent))
		if err == nil {
			err = w.watch(c)
		}
		if err != nil {
			w.fail(c, err) // and the run ends: a rate that some connections no longer carry is another rate
			return
		}
		p.sent += int64(n)
	}
}

// together returns how many requests, at most room, are one burst: those due at the same tick as
// the next one.
func (p *pace) together(room int) int {
	n := 1
	for most := min(room, max(p.cfg.Burst, 1)); n < most && p.sent+int64(n) < p.total && p.due(p.sent+int64(n)) == p.due(p.sent); {
		n++
	}
	return n
}

// roomy returns the next connection that may send, nil if none may.
func (w *worker) roomy() *pipeline {
	for range w.conns {
		c := w.conns[w.pace.turn]
		w.pace.turn = (w.pace.turn + 1) % len(w.conns)
		if c.inflight < w.s.cfg.Depth && len(c.unsent) == 0 {
			return c
		}
	}
	return nil
}
