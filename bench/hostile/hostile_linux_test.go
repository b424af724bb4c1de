package hostile

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/fuzz/kit/fakekernel"
)

func latencies(ns ...int64) *load.Histogram {
	h := new(load.Histogram)
	for _, v := range ns {
		h.Add(v, 1)
	}
	return h
}

func TestFaults(t *testing.T) {
	const ms, mib = int64(time.Millisecond), int64(1 << 20)
	f := func(want string, late bool, change func(o *outcome)) {
		t.Helper()
		o := outcome{alone: latencies(ms), during: latencies(2 * ms), before: mib, peak: 2 * mib, after: mib}
		change(&o)
		if got := strings.Join(o.faults(), "; "); want == "" && got != "" || !strings.Contains(got, want) || o.late() != late {
			t.Errorf("fault %q, late %v, want %q", got, o.late(), want)
		}
	}
	f("", false, func(*outcome) {})
	f("", false, func(o *outcome) { o.during = latencies(24 * ms) })
	f("is above 25ms", true, func(o *outcome) { o.during = latencies(27 * ms) })
	f("", false, func(o *outcome) { o.alone, o.during = latencies(5*ms), latencies(48*ms) })
	f("is above", true, func(o *outcome) { o.alone, o.during = latencies(5*ms), latencies(53*ms) })
	f("", false, func(o *outcome) { o.peak = o.before + 64*mib })
	f("memory grew by 65.0 MiB", false, func(o *outcome) { o.peak = o.before + 65*mib })
	f("boom; bang; reference p99", false, func(o *outcome) { o.err, o.during = errors.New("boom\nbang"), latencies(1000*ms) })
	f("no reference request", false, func(o *outcome) { o.during = nil })
}

func TestReference(t *testing.T) {
	srv := fakekernel.Start(t, 0, polite)
	if err := load.CreateRows(srv.Addr, 0, 4); err != nil || srv.Count("CreateProcess") != 4 {
		t.Fatalf("%v, %d processes", err, srv.Count("CreateProcess"))
	}
	h, err := reference(srv.Addr, 4, short)
	if err != nil || h.Total() != uint64(srv.Count("GetProcess")) || h.Total() == 0 {
		t.Errorf("%v, %d latencies for %d requests", err, h.Total(), srv.Count("GetProcess"))
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
	h, err := reference(srv.Addr, 1, 3*short)
	if err != nil || h.Quantile(1) < short || h.Quantile(0.9) < short/10 {
		t.Errorf("%v, p90 %v, worst %v, want the stall of %v in more than one latency", err, h.Quantile(0.9), h.Quantile(1), short)
	}
}

func TestReferenceFailsWithTheServer(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "NOT_FOUND", "m") })
	if _, err := reference(srv.Addr, 2, short); err == nil {
		t.Error("an error reply passes as a reply")
	}
	if _, err := reference("127.0.0.1:1", 1, short); err == nil {
		t.Error("no server passes as a server")
	}
}
