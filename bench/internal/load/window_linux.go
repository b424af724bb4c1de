package load

import (
	"errors"
	"fmt"
	"time"

	"trunkline/bench/internal/goal"
)

// stallTimeout bounds how much longer than asked for a window lasts that no reply has come in yet:
// a sync that stalls is longer than a short window.
const stallTimeout = 10 * time.Second

// fillTimeout bounds how much longer than asked for a warm-up lasts that is to see the load in
// full.
const fillTimeout = 3 * time.Second

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

// Measure runs one load against one server: warm-up, window, and the replies that are still out. A
// nil server is one that another program else started, whose cpu time and memory cannot be read.
func Measure(cfg Config, server *Server, warmup, window time.Duration) (goal.Sample, error) {
	pid := 0
	if server != nil {
		if !server.Alive() {
			return goal.Sample{}, errors.New("the server ended; its output:\n" + server.Output())
		}
		pid = server.PID()
	}
	return MeasureProcess(cfg, pid, warmup, window)
}

// MeasureProcess is Measure for a server that another program started, whose process is pid, or 0
// where that is not known.
func MeasureProcess(cfg Config, pid int, warmup, window time.Duration) (goal.Sample, error) {
	session, err := Start(cfg)
	if err != nil {
		return goal.Sample{}, err
	}
	time.Sleep(warmup)
	if cfg.Full {
		session.fill(uint64(len(cfg.Tapes) * cfg.Depth))
	}
	s, windowErr := session.window(pid, window)
	latency, stopErr := session.Stop()
	if err := errors.Join(stopErr, windowErr); err != nil {
		return goal.Sample{}, err
	}
	s.P50, s.P99, s.P999 = goal.Micros(latency.Quantile(0.5)), goal.Micros(latency.Quantile(0.99)), goal.Micros(latency.Quantile(0.999))
	return s, nil
}

// fill waits until so many replies came, the load ended, or fillTimeout passed.
func (s *Session) fill(replies uint64) {
	timeout, look := time.After(fillTimeout), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for s.Replies() < replies {
		select {
		case <-s.done:
			return
		case <-timeout:
			return
		case <-look.C:
		}
	}
}

// ended reports that no reply comes any more.
func (s *Session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// window counts for a while, latencies included.
func (s *Session) window(pid int, lasting time.Duration) (goal.Sample, error) {
	w, err := OpenWindow(pid, s.Replies())
	if err != nil {
		return goal.Sample{}, err
	}
	s.Record(true)
	defer s.Record(false)
	for time.Sleep(lasting); s.Replies() == w.replies && time.Since(w.start) < lasting+stallTimeout && !s.ended(); {
		time.Sleep(lasting)
	}
	return w.Close(s.Replies())
}
