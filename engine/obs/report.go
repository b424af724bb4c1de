package obs

import (
	"cmp"
	"math"
	"time"
)

// Latency is how long the requests of one method took: from the moment at which the bytes of a
// request were read to the one at which its answer was given to the connection, a wait for the disk
// included. Quantiles are upper bounds of their buckets. It is a row of /latency.
type Latency struct {
	// Protocol is "ipc", "http", "toolhost", "threads", "exacta" or "server" for a step of the
	// server itself.
	Protocol string `json:"protocol"`
	// Method is the full name of a method, such as "kernel.GetProcess", or of a step, such as
	// "store_commit".
	Method     string  `json:"method"`
	Count      uint64  `json:"count"`
	Errors     uint64  `json:"errors"`
	SumSeconds float64 `json:"sum_seconds"`
	P50        float64 `json:"p50_seconds"`
	P90        float64 `json:"p90_seconds"`
	P99        float64 `json:"p99_seconds"`
	P999       float64 `json:"p999_seconds"`
	// Buckets are where Count is, those with nothing left out, so that the difference of two rows
	// has the quantiles of the time in between.
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Bucket counts what took longer than the bound of the bucket before, and up to its own.
type Bucket struct {
	UpTo  float64 `json:"up_to_seconds"`
	Count uint64  `json:"count"`
}

// Quantile returns the upper bound of the bucket in which the share q of all ends, 0 of none.
// Buckets are in the order of their bounds.
func Quantile(buckets []Bucket, q float64) float64 {
	var all, seen uint64
	for i := range buckets {
		all += buckets[i].Count
	}
	rank := max(uint64(math.Ceil(q*float64(all))), 1)
	for i := range buckets {
		if seen += buckets[i].Count; seen >= rank {
			return buckets[i].UpTo
		}
	}
	return 0
}

// Slow is a request that took longer than the threshold of the slow log. It is a row of /slowlog.
type Slow struct {
	ID       uint64    `json:"id"`
	At       time.Time `json:"at"`
	Protocol string    `json:"protocol"`
	Method   string    `json:"method"`
	Conn     string    `json:"conn"`
	Peer     string    `json:"peer"`
	Seconds  float64   `json:"seconds"`
}

// SlowLog is the body of /slowlog: newest first.
type SlowLog struct {
	ThresholdSeconds float64 `json:"threshold_seconds"`
	Total            uint64  `json:"total"`
	Entries          []Slow  `json:"entries"`
}

// Connection is an open connection. It is a row of /connections.
type Connection struct {
	// ID names the connection among all of the server, such as "ipc-12".
	ID          string    `json:"id"`
	Protocol    string    `json:"protocol"`
	Listener    string    `json:"listener"`
	Peer        string    `json:"peer"`
	Opened      time.Time `json:"opened"`
	AgeSeconds  float64   `json:"age_seconds"`
	IdleSeconds float64   `json:"idle_seconds"`
	BytesIn     int64     `json:"bytes_in"`
	BytesOut    int64     `json:"bytes_out"`
	// UnsentBytes wait for the peer to read.
	UnsentBytes int64 `json:"unsent_bytes"`
	// InFlight is how many requests have no answer yet, Streams how many streams are live.
	InFlight int64 `json:"in_flight"`
	Streams  int64 `json:"streams"`
	// State is "open", "draining" or "lingering".
	State string `json:"state"`
}

// Overview is the body of /overview: what a look at the whole server shows.
type Overview struct {
	At              time.Time        `json:"at"`
	Version         string           `json:"version"`
	UptimeSeconds   float64          `json:"uptime_seconds"`
	Ready           bool             `json:"ready"`
	Reasons         []string         `json:"reasons"`
	Processes       map[string]int64 `json:"processes"` // by state
	QueueDepth      int64            `json:"queue_depth"`
	Sessions        int64            `json:"sessions"`
	Connections     map[string]int64 `json:"connections"` // open ones, by protocol
	BytesIn         int64            `json:"bytes_in"`
	BytesOut        int64            `json:"bytes_out"`
	EventsPublished int64            `json:"events_published"`
	EventsDropped   int64            `json:"events_dropped"`
	Subscribers     int64            `json:"subscribers"`
	// Durable lag: records decided that are not as safe as the mode of the store.
	StoreMode  string    `json:"store_mode"`
	LagRecords uint64    `json:"lag_records"`
	QueueBytes int64     `json:"queue_bytes"`
	Refusing   bool      `json:"refusing"` // changes are refused: full, overloaded or stopped
	Latencies  []Latency `json:"latencies"`
	// Cluster is nil for a server without one. On a standby the numbers are of this node alone.
	Cluster *Standing `json:"cluster,omitempty"`
}

// Rates are what a server did per second between two overviews. Requests and errors are of all
// protocols, steps of the server itself left out.
type Rates struct {
	OverSeconds float64 `json:"over_seconds"`
	Requests    float64 `json:"requests"`
	Errors      float64 `json:"errors"`
	Events      float64 `json:"events"`
	Dropped     float64 `json:"events_dropped"`
	BytesIn     float64 `json:"bytes_in"`
	BytesOut    float64 `json:"bytes_out"`
}

// Since returns the rates over the secs seconds after an earlier overview, and the earlier row of
// each row of o.Latencies: an empty one for a method that was not called before.
func (o *Overview) Since(before *Overview, secs float64) (r Rates, was []Latency) {
	r = Rates{
		OverSeconds: secs,
		Events:      PerSecond(before.EventsPublished, o.EventsPublished, secs),
		Dropped:     PerSecond(before.EventsDropped, o.EventsDropped, secs),
		BytesIn:     PerSecond(before.BytesIn, o.BytesIn, secs),
		BytesOut:    PerSecond(before.BytesOut, o.BytesOut, secs),
	}
	rows := make(map[[2]string]*Latency, len(before.Latencies))
	for i := range before.Latencies {
		l := &before.Latencies[i]
		rows[[2]string{l.Protocol, l.Method}] = l
	}
	was = make([]Latency, len(o.Latencies))
	for i := range o.Latencies {
		l := &o.Latencies[i]
		if row := rows[[2]string{l.Protocol, l.Method}]; row != nil {
			was[i] = *row
		}
		if l.Protocol != StepProtocol {
			r.Requests += PerSecond(was[i].Count, l.Count, secs)
			r.Errors += PerSecond(was[i].Errors, l.Errors, secs)
		}
	}
	return r, was
}

// PerSecond returns how much a counter grew in each of secs seconds, 0 for one that did not grow.
func PerSecond[N int64 | uint64](before, after N, secs float64) float64 {
	if after <= before || secs <= 0 {
		return 0
	}
	return float64(after-before) / secs
}

// ConnectionOrders are what lists of connections are sorted by. Sizes and times come with the
// largest first.
var ConnectionOrders = map[string]func(a, b *Connection) int{
	"id": func(a, b *Connection) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	},
	"age":       func(a, b *Connection) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) },
	"idle":      func(a, b *Connection) int { return cmp.Compare(b.IdleSeconds, a.IdleSeconds) },
	"bytes_in":  func(a, b *Connection) int { return cmp.Compare(b.BytesIn, a.BytesIn) },
	"bytes_out": func(a, b *Connection) int { return cmp.Compare(b.BytesOut, a.BytesOut) },
	"unsent":    func(a, b *Connection) int { return cmp.Compare(b.UnsentBytes, a.UnsentBytes) },
	"in_flight": func(a, b *Connection) int { return cmp.Compare(b.InFlight, a.InFlight) },
	"streams":   func(a, b *Connection) int { return cmp.Compare(b.Streams, a.Streams) },
}
