package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	// CPU is server CPU nanoseconds per request; 0 when the process is not ours to read.
	CPU  float64 `json:"cpu_ns_per_request"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	RSS  int64   `json:"rss_bytes"`
	Peak int64   `json:"peak_rss_bytes"`
}

// window is the measured part of a cell: what was counted before and after.
type window struct {
	server   *load.Server
	cpu      time.Duration
	start    time.Time
	requests uint64
}

func openWindow(s *load.Server, requests uint64) (window, error) {
	w := window{server: s, start: time.Now(), requests: requests}
	var err error
	if s != nil {
		w.cpu, err = s.CPU()
	}
	return w, err
}

// close fills everything but the latencies.
func (w window) close(requests uint64) (sample, error) {
	elapsed := time.Since(w.start)
	s := sample{Requests: requests - w.requests}
	if s.Requests == 0 {
		return s, fmt.Errorf("no reply in %v", elapsed)
	}
	s.PerSec = float64(s.Requests) / elapsed.Seconds()
	if w.server == nil {
		return s, nil
	}
	cpu, err := w.server.CPU()
	if err != nil {
		return s, err
	}
	s.CPU = float64(cpu-w.cpu) / float64(s.Requests)
	m, err := w.server.Memory()
	s.RSS, s.Peak = m.RSS, m.Peak
	return s, err
}

// measure runs one load against one server: warm-up, window, and the replies that are still out.
func measure(cfg load.Config, server *load.Server, o options) (sample, error) {
	session, err := load.Start(cfg)
	if err != nil {
		return sample{}, err
	}
	time.Sleep(o.warmup)
	w, err := openWindow(server, session.Replies())
	if err == nil {
		session.Record(true)
		time.Sleep(o.window)
	}
	s, closeErr := w.close(session.Replies())
	session.Record(false)
	latency, stopErr := session.Stop()
	for _, err := range []error{stopErr, err, closeErr} {
		if err != nil {
			return sample{}, err
		}
	}
	s.P50, s.P99, s.P999 = micros(latency.Quantile(0.5)), micros(latency.Quantile(0.99)), micros(latency.Quantile(0.999))
	return s, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// grpcCell lets grpcload make the calls; its two lines mark the window.
func (f *field) grpcCell() (sample, error) {
	o := f.o
	request := len(kernelRequest("GetProcess", 0, ""))
	cmd := exec.Command(filepath.Join(f.bin, "grpcload"), "-addr", f.grpc.Addr, "-conns", strconv.Itoa(o.conns), "-inflight", strconv.Itoa(o.depth),
		"-request", strconv.Itoa(request), "-reply", strconv.Itoa(f.replies["GetProcess"]), "-warmup", o.warmup.String(), "-duration", o.window.String())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, fmt.Errorf("cannot start grpcload: %w", err)
	}
	if err := load.StartPinned(cmd, f.loadCPUs); err != nil {
		return sample{}, fmt.Errorf("cannot start grpcload: %w", err)
	}
	s, readErr := readGRPC(bufio.NewScanner(out), f.grpc)
	if err := cmd.Wait(); err != nil {
		return sample{}, fmt.Errorf("grpcload failed: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return s, readErr
}

// readGRPC follows grpcload's output and reads the server's CPU time at its marks.
func readGRPC(in *bufio.Scanner, server *load.Server) (s sample, err error) {
	var before, after time.Duration
	for in.Scan() {
		switch line := in.Text(); line {
		case "measuring":
			before, err = server.CPU()
		case "measured":
			after, err = server.CPU()
		default:
			var r struct {
				Requests uint64  `json:"requests"`
				Elapsed  float64 `json:"elapsed_ns"`
				P50      float64 `json:"p50_ns"`
				P99      float64 `json:"p99_ns"`
				P999     float64 `json:"p999_ns"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Requests == 0 || r.Elapsed == 0 {
				return s, fmt.Errorf("cannot use grpcload's report %q", line)
			}
			s = sample{Requests: r.Requests, PerSec: float64(r.Requests) / r.Elapsed * 1e9, CPU: float64(after-before) / float64(r.Requests),
				P50: r.P50 / 1e3, P99: r.P99 / 1e3, P999: r.P999 / 1e3}
			m, err := server.Memory()
			s.RSS, s.Peak = m.RSS, m.Peak
			return s, err
		}
		if err != nil {
			return s, err
		}
	}
	return s, fmt.Errorf("grpcload ended without a report: %w", in.Err())
}
