package loadgen

import (
	"context"
	"net"
	"time"
)

// The limits of a plan.
const (
	// maxConns is the largest number of connections: each costs two goroutines and some 10 KiB.
	maxConns = 10_000
	// maxDepth is the largest number of requests in flight on one connection: three hexadecimal
	// digits of its id are the place.
	maxDepth = 1_024
	// maxInFlight bounds connections times depth: the places of all connections take some 50 MB
	// then.
	maxInFlight = 1 << 20
	// MaxRate is the greatest rate of a schedule, in requests/s: above it a nanosecond clock has
	// too few values for them.
	MaxRate = 10_000_000
	// MaxDuration bounds warming up and measuring together.
	MaxDuration = 24 * time.Hour
	// maxIntervals bounds how often a run is observed: a day of seconds.
	maxIntervals = 100_000
	// MaxShares bounds the mix: each method has its own histograms.
	MaxShares = 64
	// MaxErrorKinds bounds the codes that are counted apart; further ones count as OtherErrors.
	MaxErrorKinds = 32
	// maxBodyBytes bounds the body of one share, as most servers bound a request.
	maxBodyBytes = 4 << 20
	// keptIntervals bounds Result.Intervals: above it neighbours are joined two by two, so that a
	// run of a day keeps its shape in some 100 MB.
	keptIntervals = 512
)

// The protocols of a Target.
const (
	ProtocolKernel   = "kernel"
	ProtocolToolhost = "toolhost"
	ProtocolHTTP     = "http"
)

// Target is the server under load.
type Target struct {
	// Protocol is one of the Protocol constants.
	Protocol string
	// Addr is host:port, tcp://host:port, tls://host:port or unix:///path; for ProtocolHTTP a URL.
	Addr string
	// Dial connects; nil means a plain or, with tls:// or https://, a TLS connection to Addr.
	Dial func(ctx context.Context) (net.Conn, error)
	// Token is the _auth member of toolhost requests; "" is none.
	Token string
}

// ScheduleKind is the course of the rate.
type ScheduleKind uint8

// The kinds of schedules.
const (
	// Constant has the rate To all the time.
	Constant ScheduleKind = iota
	// Ramp goes evenly from From at the start of measuring to To at its end; warming up is at From.
	Ramp
	// Max keeps every connection at its depth: a closed loop, whose latencies show nothing about a
	// server at a given rate.
	Max
)

// Schedule is when requests are due.
type Schedule struct {
	Kind     ScheduleKind
	From, To float64 // requests/s; Constant uses To, Max none
}

// Share is one method of the mix.
type Share struct {
	// Name is SERVICE.METHOD for ProtocolKernel (kernel. may be left out), a tool id for
	// ProtocolToolhost, any name for ProtocolHTTP.
	Name string
	// Weight is its part of the requests, relative to the other weights; at least 1.
	Weight int
	// Body is JSON with placeholders: the method's body, the whole line, or the envelope; nil takes
	// the one built in for Name. The placeholders are {{seq}}, the request's number in the run,
	// {{conn}}, its connection's, {{uuid}}, {{run}}, eight digits of the run, and {{pid}}, a
	// process that the run has created for the connection and terminates at its end. All have a
	// fixed width; without quotes around them {{seq}} and {{conn}} are numbers.
	Body []byte
}

// Plan is one run.
type Plan struct {
	Target   Target
	Schedule Schedule
	// Mix is what is asked; none takes DefaultMix. Check completes it.
	Mix []Share
	// Conns is the number of connections, Depth the most requests in flight on one of them.
	Conns, Depth int
	// Warmup comes before Duration, which is measured; only the latter counts in Result.Total.
	Warmup, Duration time.Duration
	// Count ends the run once so many requests are measured, 0 never.
	Count int64
	// Timeout is how long one request may take from its intended start.
	Timeout time.Duration
	// Interval is how often observe is called.
	Interval time.Duration
	// Seed makes the order of the mix repeatable. Identifiers are fresh in every run, whatever it
	// is, for servers keep what they saw.
	Seed uint64
}
