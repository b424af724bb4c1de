package main

import (
	"errors"
	"fmt"
	"time"

	"trunkline/bench/internal/load"
)

// cell names one row of the table.
type cell struct {
	Server string `json:"server"`
	Method string `json:"method"`
	Conns  int    `json:"connections"`
	Depth  int    `json:"in_flight"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s %d×%d", c.Server, c.Method, c.Conns, c.Depth)
}

// step measures one cell once.
type step struct {
	cell    cell
	measure func() (sample, error)
}

// sample is what one cell showed in one round.
type sample struct {
	Cell     cell    `json:"-"`
	Round    int     `json:"round"`
	Requests uint64  `json:"requests"`
	PerSec   float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu_ns_per_request"` // of the server
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	RSS      int64   `json:"rss_bytes"`
}

// measure runs one load against one server: warm-up, window, and the replies that are still out.
func measure(cfg load.Config, server *load.Server, warmup, window time.Duration) (sample, error) {
	if !server.Alive() {
		return sample{}, errors.New("the server ended; its output:\n" + server.Output())
	}
	session, err := load.Start(cfg)
	if err != nil {
		return sample{}, err
	}
	time.Sleep(warmup)
	s, windowErr := measureWindow(session, server, window)
	latency, err := session.Stop()
	if err = errors.Join(err, windowErr); err != nil {
		return sample{}, err
	}
	s.P50, s.P99, s.P999 = micros(latency.Quantile(0.5)), micros(latency.Quantile(0.99)), micros(latency.Quantile(0.999))
	return s, nil
}

// stallTimeout bounds how much longer than asked for a window lasts that no reply has come in yet.
const stallTimeout = 10 * time.Second

// measureWindow counts for a while, everything but the latencies.
func measureWindow(session *load.Session, server *load.Server, window time.Duration) (sample, error) {
	start, before := time.Now(), session.Replies()
	cpuBefore, err := server.CPU()
	if err != nil {
		return sample{}, err
	}
	session.Record(true)
	for time.Sleep(window); session.Replies() == before && time.Since(start) < window+stallTimeout; {
		time.Sleep(window) // a sync that stalls is longer than a short window
	}
	elapsed, s := time.Since(start), sample{Requests: session.Replies() - before}
	session.Record(false)
	if s.Requests == 0 {
		return s, fmt.Errorf("no reply in %v", elapsed)
	}
	cpu, err := server.CPU()
	if err != nil {
		return s, err
	}
	s.PerSec = float64(s.Requests) / elapsed.Seconds()
	s.CPU = float64(cpu-cpuBefore) / float64(s.Requests)
	m, err := server.Memory()
	s.RSS = m.RSS
	return s, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
