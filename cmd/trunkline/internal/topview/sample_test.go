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

// TestBetweenStarts: the counters of a server that was started anew begin at 0, and a method may be
// new.
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
