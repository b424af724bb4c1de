package exchange

import (
	"log/slog"
	"time"
)

// HTTPConfig bounds the HTTP side (envelope §2.3, §6). All members are set.
type HTTPConfig struct {
	// MaxBodyBytes is the largest request body; a larger one is answered 413.
	MaxBodyBytes int
	// MaxInFlight is how many requests may read their body, run or write their reply at a time.
	// Further ones get 503. It bounds the memory for bodies.
	MaxInFlight int
	// MaxHeaderBytes bounds the header fields with names, values and line ends: 431.
	MaxHeaderBytes int
	// MaxConnections may be open; further ones wait in the system's backlog.
	MaxConnections int
	// ReadHeaderTimeout is the time for a request's headers: 408, or a close if nothing came.
	ReadHeaderTimeout time.Duration
	// ReadBodyTimeout is the time for a request's body after its headers: 408.
	ReadBodyTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// WriteTimeout is the time for one reply: the connection is closed.
	WriteTimeout time.Duration
	// Logger gets panics and the lines of net/http.
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
