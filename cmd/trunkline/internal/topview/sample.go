// Package topview shows what a running server does, over and over: on a terminal as a screen that
// is drawn again where it changed, elsewhere as one sample per interval.
//
//	obs.Overview ─┐
//	obs.Overview ─┴─► Between ──► Sample ──► a line of JSON
//	                                    └──► screen, by bubbletea
//
// Rates, means and quantiles are of the time between two answers of the server. Texts of the server
// are cleaned before a terminal gets them.
package topview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"trunkline/engine/obs"
)

// Sample is what happened between two answers of a server, and how it is at the second one. It is
// a line of top --json. Rates are per second.
type Sample struct {
	At              time.Time `json:"at"`
	Version         string    `json:"version"`
	UptimeSeconds   float64   `json:"uptime_seconds"`
	IntervalSeconds float64   `json:"interval_seconds"`
	Ready           bool      `json:"ready"`
	Reasons         []string  `json:"reasons"`

	// Requests and errors are of all protocols.
	Requests float64 `json:"requests_per_second"`
	Errors   float64 `json:"errors_per_second"`
	BytesIn  float64 `json:"bytes_in_per_second"`
	BytesOut float64 `json:"bytes_out_per_second"`

	Connections map[string]int64 `json:"connections"`
	Processes   map[string]int64 `json:"processes"`
	QueueDepth  int64            `json:"queue_depth"`
	Sessions    int64            `json:"sessions"`
	Subscribers int64            `json:"subscribers"`
	Published   float64          `json:"events_published_per_second"`
	Dropped     float64          `json:"events_dropped_per_second"`

	StoreMode  string `json:"store_mode"`
	LagRecords uint64 `json:"lag_records"`
	QueueBytes int64  `json:"queue_bytes"`
	Refusing   bool   `json:"refusing"`

	// Cluster is nil for a server without one. On a standby the numbers are of this node alone.
	Cluster *obs.Standing `json:"cluster,omitempty"`

	// Methods are those that were called since the start, steps of the server included, in the
	// order that was asked for.
	Methods []Method `json:"methods"`
}

// Method is one method of one protocol.
type Method struct {
	Protocol string  `json:"protocol"`
	Method   string  `json:"method"`
	Rate     float64 `json:"per_second"`
	Errors   float64 `json:"errors_per_second"`
	// Mean and the quantiles are of the interval, 0 without a request. The quantiles of a server
	// that does not show its buckets are since its start.
	Mean float64 `json:"mean_seconds"`
	P50  float64 `json:"p50_seconds"`
	P99  float64 `json:"p99_seconds"`
	P999 float64 `json:"p999_seconds"`
	// Count and Failed are since the start.
	Count  uint64 `json:"count"`
	Failed uint64 `json:"errors"`
}

// Between compares two answers. A counter that went back is one of a server that was started again.
func Between(before, after *obs.Overview) *Sample {
	secs := after.At.Sub(before.At).Seconds()
	if after.UptimeSeconds < before.UptimeSeconds {
		before, secs = &obs.Overview{}, after.UptimeSeconds
	}
	r, was := after.Since(before, secs)
	s := &Sample{
		At: after.At, Version: after.Version, UptimeSeconds: after.UptimeSeconds, IntervalSeconds: secs,
		Ready: after.Ready, Reasons: after.Reasons,
		Requests: r.Requests, Errors: r.Errors, BytesIn: r.BytesIn, BytesOut: r.BytesOut,
		Connections: after.Connections, Processes: after.Processes,
		QueueDepth: after.QueueDepth, Sessions: after.Sessions, Subscribers: after.Subscribers,
		Published: r.Events, Dropped: r.Dropped,
		StoreMode: after.StoreMode, LagRecords: after.LagRecords, QueueBytes: after.QueueBytes, Refusing: after.Refusing,
		Cluster: after.Cluster, Methods: []Method{},
	}
	for i := range was {
		s.Methods = append(s.Methods, newMethod(&was[i], &after.Latencies[i], secs))
	}
	return s
}

func newMethod(before, after *obs.Latency, secs float64) Method {
	m := Method{
		Protocol: after.Protocol, Method: after.Method, Rate: obs.PerSecond(before.Count, after.Count, secs), Errors: obs.PerSecond(before.Errors, after.Errors, secs),
		P50: after.P50, P99: after.P99, P999: after.P999, Count: after.Count, Failed: after.Errors,
	}
	if len(after.Buckets) > 0 {
		grown := grown(before.Buckets, after.Buckets)
		m.P50, m.P99, m.P999 = obs.Quantile(grown, 0.5), obs.Quantile(grown, 0.99), obs.Quantile(grown, 0.999)
	}
	if after.Count > before.Count {
		m.Mean = max(after.SumSeconds-before.SumSeconds, 0) / float64(after.Count-before.Count)
	}
	return m
}

// grown is what came into each bucket.
func grown(before, after []obs.Bucket) []obs.Bucket {
	out := slices.Clone(after)
	for i := range out {
		b := &out[i]
		at, found := slices.BinarySearchFunc(before, b.UpTo, func(was obs.Bucket, upTo float64) int { return cmp.Compare(was.UpTo, upTo) })
		if found {
			b.Count -= min(before[at].Count, b.Count)
		}
	}
	return out
}

// Order is what methods are sorted by.
type Order string

// The orders: the greatest first, names by the alphabet.
const (
	ByRate   Order = "rate"
	ByErrors Order = "errors"
	ByMean   Order = "mean"
	ByP99    Order = "p99"
	ByName   Order = "name"
)

// Orders lists all orders.
func Orders() []Order { return []Order{ByRate, ByErrors, ByMean, ByP99, ByName} }

// ParseOrder reads an order.
func ParseOrder(text string) (Order, error) {
	if o := Order(text); slices.Contains(Orders(), o) {
		return o, nil
	}
	var names []string
	for _, o := range Orders() {
		names = append(names, string(o))
	}
	return "", fmt.Errorf("cannot sort by %q: want one of %s", text, strings.Join(names, ", "))
}

// Sort sorts the methods. Equal ones are sorted by rate, then by name.
func (s *Sample) Sort(by Order) {
	value := func(m *Method) float64 {
		switch by {
		case ByRate:
			return m.Rate
		case ByErrors:
			return m.Errors
		case ByMean:
			return m.Mean
		case ByP99:
			return m.P99
		}
		return 0
	}
	slices.SortFunc(s.Methods, func(a, b Method) int {
		names := cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Protocol, b.Protocol))
		if by == ByName {
			return names
		}
		return cmp.Or(cmp.Compare(value(&b), value(&a)), cmp.Compare(b.Rate, a.Rate), names)
	})
}
