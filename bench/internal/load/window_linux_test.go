package load

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit/fakekernel"
)

func TestMeasure(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	cfg := Config{Addr: srv.Addr, Tapes: tapes(4, request("A", "p")), Depth: 8}
	s, err := MeasureProcess(cfg, 0, 5*time.Millisecond, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests == 0 || s.PerSec <= 0 || s.CPU != 0 || s.RSS != 0 || s.P50 <= 0 || s.P99 < s.P50 || s.P999 < s.P99 {
		t.Errorf("%+v", s)
	}
	deaf := fakekernel.Start(t, 0, func(fakekernel.Request) []byte { return nil })
	cfg.Addr = deaf.Addr
	start := time.Now()
	if _, err := MeasureProcess(cfg, 0, 0, time.Millisecond); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("a server that hangs up was waited for: %v after %v", err, time.Since(start))
	}
	cfg.Addr = "127.0.0.1:1"
	if _, err := MeasureProcess(cfg, 0, 0, time.Millisecond); err == nil {
		t.Error("measured a server that is not there")
	}
}

// TestMeasureReadsTheProcess: the figures of the server's process stand beside those of the load.
func TestMeasureReadsTheProcess(t *testing.T) {
	s, err := StartServer(Command{Name: "busy", Path: "/bin/sh", Args: []string{"-c", "echo listening x; while :; do :; done"}, Listening: PeerListening})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	srv := fakekernel.Start(t, 0, nil)
	cfg := Config{Addr: srv.Addr, Tapes: tapes(1, request("A", "p")), Depth: 1}
	if got, err := Measure(cfg, s, 0, 50*time.Millisecond); err != nil || got.CPU <= 0 || got.RSS <= 0 || got.Peak < got.RSS {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := MeasureProcess(cfg, s.PID(), 0, 200*time.Millisecond); err != nil || got.CPU <= 0 || got.RSS <= 0 {
		t.Errorf("by its number: %+v, %v", got, err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(cfg, s, 0, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "listening x") {
		t.Errorf("a server that ended: %v, want its output", err)
	}
	if err := s.Kill(); err == nil {
		t.Error("a process was killed twice")
	}
}

// TestMeasureWaitsForAReply: a window that is shorter than the first reply takes lasts until there
// is one.
func TestMeasureWaitsForAReply(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		time.Sleep(60 * time.Millisecond)
		return fakekernel.OK(r.ID)
	})
	if s, err := MeasureProcess(Config{Addr: srv.Addr, Tapes: tapes(1, request("A", "p")), Depth: 1}, 0, 0, time.Millisecond); err != nil || s.Requests == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestFill: a load is in full when as many replies came as were in flight, and a load that ended is
// not waited for.
func TestFill(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		time.Sleep(time.Millisecond)
		return fakekernel.OK(r.ID)
	})
	cfg := Config{Addr: srv.Addr, Tapes: tapes(1, request("A", "p")), Depth: 30, Full: true}
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.Warm(0); s.Replies() < 30 {
		t.Errorf("in full after %d replies", s.Replies())
	}
	if _, err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if s.Last(0); time.Since(start) >= 3*time.Second {
		t.Error("a load that ended was waited for")
	}
	if got, err := MeasureProcess(cfg, 0, 0, time.Millisecond); err != nil || got.Requests == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWindow(t *testing.T) {
	w, err := OpenWindow(os.Getpid(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	if s, err := w.Close(110); err != nil || s.Requests != 100 || s.PerSec <= 0 || s.PerSec > 100/0.02 || s.CPU < 1000 || s.RSS <= 0 || s.Peak <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := w.Close(10); err == nil || !strings.Contains(err.Error(), "no reply") {
		t.Errorf("a window without a reply: %v", err)
	}
	if _, err := OpenWindow(1<<30, 0); err == nil {
		t.Error("a window on a process that is not there")
	}
}

func TestLatencies(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []int64
	for range 20000 {
		ns := r.Int64N(1 << (10 + r.IntN(24)))
		all = append(all, ns)
		h.Add(ns, 1)
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[int(q*float64(len(all)))-1]
		got := int64(h.Quantile(q))
		if got < exact || float64(got) > float64(exact)*1.001+1 {
			t.Errorf("quantile %v = %d, exactly %d", q, got, exact)
		}
	}
	var m Histogram
	m.Add(-5, 3)
	m.Merge(&h)
	if m.Total() != h.Total()+3 || m.Quantile(0) > 1 {
		t.Errorf("merged: %d latencies, smallest %v", m.Total(), m.Quantile(0))
	}
	m.Add(1<<62, 1)
	if top := m.Quantile(1); top < time.Hour {
		t.Errorf("a latency above the range reads as %v", top)
	}
}
