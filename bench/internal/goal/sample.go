package goal

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Cell names one row of a table. It is compared by value: two cells are the same if all of it is.
type Cell struct {
	Server string `json:"server"`
	Method string `json:"method"`        // what is asked of it
	Via    string `json:"via,omitempty"` // how the requests get there, in the tables that separate them
	Conns  int    `json:"connections"`
	Depth  int    `json:"in_flight"` // on each connection
}

// String is the cell in a message.
func (c Cell) String() string {
	via := ""
	if c.Via != "" {
		via = " over " + c.Via
	}
	return fmt.Sprintf("%s %s%s, %d×%d", c.Server, c.Method, via, c.Conns, c.Depth)
}

// Sample is what one cell showed in one round. A figure of 0 was not measured.
type Sample struct {
	Cell     Cell    `json:"-"`
	Round    int     `json:"round"`
	Requests uint64  `json:"requests"`
	PerSec   float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu_ns_per_request"` // user and system time of the server's process, without its children
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	RSS      int64   `json:"rss_bytes"`
	Peak     int64   `json:"peak_rss_bytes"`
}

// Quantiles sets the latencies of a sample, given what a share of all requests did not exceed.
func (s *Sample) Quantiles(of func(share float64) time.Duration) {
	s.P50, s.P99, s.P999 = Micros(of(0.5)), Micros(of(0.99)), Micros(of(0.999))
}

// Rate picks the requests per second of a sample, for a ratio.
func Rate(s Sample) float64 { return s.PerSec }

// CPU picks the server's CPU nanoseconds per request of a sample, for a ratio.
func CPU(s Sample) float64 { return s.CPU }

// Summary is one cell of a report: the medians over its rounds, and the rounds.
type Summary struct {
	Cell
	Median Sample   `json:"median"`
	Rounds []Sample `json:"rounds"`
}

// Summarize groups samples by cell, in the order in which the cells first came.
func Summarize(all []Sample) []Summary {
	var out []Summary
	for _, s := range all {
		i := slices.IndexFunc(out, func(o Summary) bool { return o.Cell == s.Cell })
		if i < 0 {
			i, out = len(out), append(out, Summary{Cell: s.Cell})
		}
		out[i].Rounds = append(out[i].Rounds, s)
	}
	for i := range out {
		out[i].Median = medianOf(out[i].Rounds)
	}
	return out
}

// medianOf takes the median of every figure by itself, except the peak memory, which is the
// highest.
func medianOf(rounds []Sample) Sample {
	of := func(pick func(Sample) float64) float64 {
		var v []float64
		for _, s := range rounds {
			v = append(v, pick(s))
		}
		return Median(v)
	}
	m := Sample{
		Cell:     rounds[0].Cell,
		Requests: uint64(of(func(s Sample) float64 { return float64(s.Requests) })),
		PerSec:   of(Rate),
		CPU:      of(CPU),
		P50:      of(func(s Sample) float64 { return s.P50 }),
		P99:      of(func(s Sample) float64 { return s.P99 }),
		P999:     of(func(s Sample) float64 { return s.P999 }),
		RSS:      int64(of(func(s Sample) float64 { return float64(s.RSS) })),
	}
	for _, s := range rounds {
		m.Peak = max(m.Peak, s.Peak)
	}
	return m
}

// Micros is d in microseconds, the unit of latencies in samples.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// MiB is n bytes in mebibytes, the unit of memory in tables.
func MiB(n int64) float64 { return float64(n) / (1 << 20) }

// Median returns the middle of v, between the two middle ones if their number is even, and 0 for
// none. v stays as it is.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Quantile returns the smallest value of v that a share q of all does not exceed, and 0 for none. v
// stays as it is.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, max(0, int(math.Ceil(q*float64(len(v))))-1))]
}

// Ratios returns pick(a)/pick(b) of every round that has both, in the order of the rounds.
func Ratios(all []Sample, a, b Cell, pick func(Sample) float64) (ratios []float64) {
	below := map[int]float64{}
	for _, s := range all {
		if s.Cell == b {
			below[s.Round] = pick(s)
		}
	}
	for _, s := range all {
		if s.Cell == a && below[s.Round] > 0 {
			ratios = append(ratios, pick(s)/below[s.Round])
		}
	}
	return ratios
}
