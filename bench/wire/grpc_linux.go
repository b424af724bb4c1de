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

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// grpcCell lets grpcload make the calls; its two lines mark the window.
func (f *field) grpcCell(s *load.Server, conns, depth int) (goal.Sample, error) {
	o := f.o
	request := len(load.RowRequest(evaluated, 0))
	cmd := exec.Command(filepath.Join(f.bin, "grpcload"), "-addr", s.Addr, "-conns", strconv.Itoa(conns), "-inflight", strconv.Itoa(depth),
		"-request", strconv.Itoa(request), "-reply", f.replySize(), "-warmup", o.warmup.String(), "-duration", o.window.String())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return goal.Sample{}, fmt.Errorf("cannot start grpcload: %w", err)
	}
	if err := load.StartPinned(cmd, f.loadCPUs); err != nil {
		return goal.Sample{}, fmt.Errorf("cannot start grpcload: %w", err)
	}
	sample, readErr := readGRPC(bufio.NewScanner(out), s)
	if err := cmd.Wait(); err != nil {
		return goal.Sample{}, fmt.Errorf("grpcload failed: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return sample, readErr
}

// readGRPC follows grpcload's output and reads the server's CPU time at its marks.
func readGRPC(in *bufio.Scanner, server *load.Server) (s goal.Sample, err error) {
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
			s = goal.Sample{Requests: r.Requests, PerSec: float64(r.Requests) / r.Elapsed * 1e9, CPU: float64(after-before) / float64(r.Requests),
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
