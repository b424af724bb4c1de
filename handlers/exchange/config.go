package exchange

import (
	"log/slog"
	"time"
)

// HTTPConfig bounds the HTTP side. A zero member takes the default named next to it (envelope §2.3,
// §6).
type HTTPConfig struct {
	// MaxBodyBytes is the largest request body (defaultMaxBodyBytes); a larger one is answered 413.
	MaxBodyBytes int
	// MaxInFlight is how many requests may read their body, run or write their reply at a time
	// (256). Further ones get 503. It bounds the memory for bodies.
	MaxInFlight int
	// MaxHeaderBytes bounds the header fields of a request with names, values and line ends (64
	// KiB): 431.
	MaxHeaderBytes int
	// MaxConnections may be open (1024); further ones wait in the system's backlog.
	MaxConnections int
	// ReadHeaderTimeout is the time for a request's headers (10 s): 408, or a close if nothing
	// came.
	ReadHeaderTimeout time.Duration
	// ReadBodyTimeout is the time for a request's body, counted from the end of its headers (30 s):
	// 408.
	ReadBodyTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request (120 s).
	IdleTimeout time.Duration
	// WriteTimeout is the time for one reply (30 s): the connection is closed.
	WriteTimeout time.Duration
	// Logger gets panics and the lines of net/http; nil for none.
	Logger *slog.Logger
}

// lingerTimeout and lingerBytes bound how long a closing connection reads on, so that a peer that
// still sends sees the last reply instead of a reset.
const (
	lingerTimeout = time.Second
	lingerBytes   = 32 << 20
)

// maxKeptBuffer is the largest buffer that a pool keeps: one large body must not stay for ever.
const maxKeptBuffer = 256 << 10

// withDefaults returns c with its zero members filled in.
func (c HTTPConfig) withDefaults() HTTPConfig {
	orInt := func(n *int, by int) {
		if *n <= 0 {
			*n = by
		}
	}
	orTime := func(d *time.Duration, by time.Duration) {
		if *d <= 0 {
			*d = by
		}
	}
	orInt(&c.MaxBodyBytes, defaultMaxBodyBytes)
	orInt(&c.MaxInFlight, 256)
	orInt(&c.MaxHeaderBytes, 64<<10)
	orInt(&c.MaxConnections, 1024)
	orTime(&c.ReadHeaderTimeout, 10*time.Second)
	orTime(&c.ReadBodyTimeout, 30*time.Second)
	orTime(&c.IdleTimeout, 120*time.Second)
	orTime(&c.WriteTimeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
