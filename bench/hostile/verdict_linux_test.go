package main

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
	"trunkline/bench/internal/load"
)

func latencies(ns ...int64) *load.Histogram {
	h := new(load.Histogram)
	for _, v := range ns {
		h.Add(v, 1)
	}
	return h
}

func TestFaults(t *testing.T) {
	l := limits{p99: 10 * time.Millisecond, memory: 64 << 20}
	const ms = int64(time.Millisecond)
	f := func(want string, change func(r *result)) {
		t.Helper()
		r := result{scene: "s", note: "n", alone: latencies(ms), during: latencies(2 * ms), memory: memory{1 << 20, 2 << 20, 1 << 20}}
		change(&r)
		got := strings.Join(r.faults(l), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("faults %q, want %q", got, want)
		}
		verdict := "PASS s"
		if got != "" {
			verdict = "FAIL s: " + got
		}
		if !strings.Contains(r.text(l), verdict) {
			t.Errorf("report lacks %q:\n%s", verdict, r.text(l))
		}
	}
	f("", func(*result) {})
	f("", func(r *result) { r.during = latencies(9 * ms) })
	f("is above", func(r *result) { r.during = latencies(11 * ms) })
	f("", func(r *result) { r.alone, r.during = latencies(5*ms), latencies(48*ms) })
	f("is above", func(r *result) { r.alone, r.during = latencies(5*ms), latencies(53*ms) })
	f("", func(r *result) { r.memory.peak = r.memory.before + 64<<20 })
	f("memory grew by 65.0 MiB", func(r *result) { r.memory.peak = r.memory.before + 65<<20 })
	f("boom", func(r *result) { r.err = errors.New("boom") })
	f("no reference request", func(r *result) { r.during = nil })
}

func TestOnlyLatencyIsExcused(t *testing.T) {
	l := limits{p99: 10 * time.Millisecond, memory: 64 << 20}
	late := result{alone: latencies(1), during: latencies(int64(time.Second))}
	if late.late(l) == "" || len(late.firm(l)) > 0 {
		t.Errorf("a late scene: %q, firm faults %q", late.late(l), late.firm(l))
	}
	late.err = errors.New("boom")
	if len(late.firm(l)) != 1 || len(late.faults(l)) != 2 {
		t.Errorf("a late scene with an error: firm faults %q of %q", late.firm(l), late.faults(l))
	}
}

func TestReference(t *testing.T) {
	srv := fakekernel.Start(t, 0, polite)
	if err := createProcesses(srv.Addr, 4); err != nil || srv.Count("CreateProcess") != 4 {
		t.Fatalf("%v, %d processes", err, srv.Count("CreateProcess"))
	}
	ref := reference{addr: srv.Addr, conns: 4, rate: 400}
	h, err := ref.during(short, func() error { return nil })
	if err != nil || h.Total() != uint64(srv.Count("GetProcess")) || h.Total() == 0 {
		t.Errorf("%v, %d latencies for %d requests", err, h.Total(), srv.Count("GetProcess"))
	}
	if _, err := ref.during(0, func() error { return errors.New("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("error %v, want that of the attack", err)
	}
}

func TestReferenceNoticesAStall(t *testing.T) {
	// The server stops for longer than several requests are apart: each of those that were due
	// meanwhile counts its wait.
	var requests atomic.Int64
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if requests.Add(1) == 5 {
			time.Sleep(short)
		}
		return polite(r)
	})
	h, err := reference{addr: srv.Addr, conns: 1, rate: 200}.during(3*short, func() error { return nil })
	if err != nil || h.Quantile(1) < short || h.Quantile(0.9) < short/10 {
		t.Errorf("%v, p90 %v, worst %v, want the stall of %v in more than one latency", err, h.Quantile(0.9), h.Quantile(1), short)
	}
}

func TestReferenceFailsWithTheServer(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "NOT_FOUND", "m") })
	if _, err := (reference{addr: srv.Addr, conns: 2, rate: 1000}).during(short, func() error { return nil }); err == nil {
		t.Error("an error reply passes as a reply")
	}
	if _, err := (reference{addr: "127.0.0.1:1", conns: 1, rate: 1}).during(0, func() error { return nil }); err == nil {
		t.Error("no server passes as a server")
	}
}

func TestFlags(t *testing.T) {
	f := func(ok bool, args ...string) {
		t.Helper()
		if _, err := parseFlags(args); (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
	}
	f(true)
	f(true, "-scene", "bursts")
	f(false, "-scene", "none")
	f(false, "-rate", "0")
}
