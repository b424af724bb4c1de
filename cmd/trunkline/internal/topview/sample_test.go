package topview

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"trunkline/engine/obs"
)

func TestBetween(t *testing.T) {
	before, after := busy(10), busy(12)
	s := Between(before, after)
	f := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Max(1, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("interval", s.IntervalSeconds, 2)
	f("requests", s.Requests, 10_002+4_210+64+7+3) // without the steps of the server
	f("errors", s.Errors, 13)
	f("bytes in", s.BytesIn, 3_100_000)
	f("bytes out", s.BytesOut, 8_240_000)
	f("published", s.Published, 120)
	f("dropped", s.Dropped, 4)
	f("a method", s.Methods[0].Rate, 10_002)
	f("its mean", s.Methods[0].Mean, 120e-6)
	f("one that was not called", s.Methods[5].Rate+s.Methods[5].Mean, 0)
	if s.Methods[0].Count != 120_024 || s.QueueDepth != 12 || s.Connections["ipc"] != 64 {
		t.Errorf("%+v", s)
	}
}

// TestBetweenStarts: the counters of a server that was started again begin at 0, and a method may
// be new.
func TestBetweenStarts(t *testing.T) {
	before, after := busy(100), busy(4)
	after.At, after.UptimeSeconds = before.At.Add(10e9), 4
	s := Between(before, after)
	if s.IntervalSeconds != 4 || s.Methods[0].Rate != 10_002 || s.BytesIn != 3_100_000 {
		t.Errorf("%+v", s)
	}
	before = busy(10)
	before.Latencies = before.Latencies[1:]
	if s = Between(before, busy(11)); s.Methods[0].Rate != 110_022 {
		t.Errorf("a new method has %v/s", s.Methods[0].Rate)
	}
	if s = Between(before, before); s.Requests != 0 || s.Methods[0].Rate != 0 {
		t.Errorf("no time: %+v", s)
	}
}

// TestQuantilesAreOfTheInterval: what was slow before it does not count, nor what came before the
// server was started again.
func TestQuantilesAreOfTheInterval(t *testing.T) {
	f := func(before, after []obs.Bucket, want float64) {
		t.Helper()
		o := [2]*obs.Overview{busy(1), busy(2)}
		for i, buckets := range [][]obs.Bucket{before, after} {
			o[i].Latencies[0].Buckets = buckets
		}
		if m := Between(o[0], o[1]).Methods[0]; m.P50 != want || m.P999 != want {
			t.Errorf("%v to %v: %v, want %v", before, after, m, want)
		}
	}
	slow := obs.Bucket{UpTo: 2, Count: 1000}
	f([]obs.Bucket{slow}, []obs.Bucket{{UpTo: 0.5, Count: 3}, slow}, 0.5)
	f([]obs.Bucket{{UpTo: 0.5, Count: 1000}}, []obs.Bucket{{UpTo: 0.5, Count: 1000}, {UpTo: 2, Count: 5}}, 2)
	f([]obs.Bucket{slow}, []obs.Bucket{slow}, 0)
	f([]obs.Bucket{slow}, []obs.Bucket{{UpTo: 2, Count: 1}}, 0)
	f(nil, []obs.Bucket{slow}, 2)
	before, after := busy(100), busy(4)
	after.At, after.UptimeSeconds = before.At.Add(10e9), 4
	before.Latencies[0].Buckets, after.Latencies[0].Buckets = []obs.Bucket{slow}, []obs.Bucket{{UpTo: 2, Count: 1}}
	if m := Between(before, after).Methods[0]; m.P99 != 2 {
		t.Errorf("after a start: %v", m)
	}
	if m := Between(busy(1), busy(2)).Methods[0]; m.P99 != 480e-6 {
		t.Errorf("without buckets: %v", m)
	}
}

func TestOrders(t *testing.T) {
	for _, o := range Orders() {
		if got, err := ParseOrder(string(o)); got != o || err != nil {
			t.Errorf("%s: %s, %v", o, got, err)
		}
	}
	if _, err := ParseOrder("size"); err == nil || !strings.Contains(err.Error(), "rate, errors, mean, p99, name") {
		t.Errorf("%v", err)
	}
	if len(sortKeys) != len(Orders()) {
		t.Error("not every order has its key")
	}
}

// TestSampleIsJSON: lists are lists, also empty ones.
func TestSampleIsJSON(t *testing.T) {
	o := &obs.Overview{Reasons: []string{}}
	text, err := json.Marshal(Between(o, o))
	if err != nil || !strings.Contains(string(text), `"methods":[]`) || !strings.Contains(string(text), `"reasons":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}
