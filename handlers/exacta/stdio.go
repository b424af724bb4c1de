package exacta

import (
	"context"
	"io"
	"time"

	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// Limits of stdio (exacta §2.1, §2.5).
const (
	drainWithin = 600 * time.Second // stdio_drain_seconds
	unsentBytes = 4 << 20
	aheadLines  = 1024
)

// ServeStdio answers the lines of one peer until its input ends and what it asked for is done, or
// until ctx ends: executions pause at their next boundary then (exacta §2.1).
func (s *Server) ServeStdio(ctx context.Context, rwc io.ReadWriteCloser) {
	eof := make(chan struct{})
	limits := s.SocketLimits()
	limits.DrainWithin, limits.ChunkBytes, limits.EndOfInput, limits.Input = int64(drainWithin), unsentBytes, "\n", nil
	host := stream.NewHost(stream.Config{
		Logger: s.cfg.Logger,
		Open:   func(p *link.Port) link.Session { return s.Open(p, Stdio, func() { close(eof) }) },
		Limits: limits,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = host.Serve(rwc, "stdio") // a peer that is gone has ended
	}()
	select {
	case <-ended:
	case <-eof:
		s.drain(ctx, ended)
	case <-ctx.Done():
	}
	s.Stop()
	host.Drain()
	select { // the goroutine that reads stdin may stay until stdin has input
	case <-ended:
	case <-time.After(lingerWithin):
	}
	s.Close()
}

// lingerWithin is how long answers may take to be written when the server stops.
const lingerWithin = 5 * time.Second

// drain waits until what was asked for is done, for drainWithin at most.
func (s *Server) drain(ctx context.Context, ended <-chan struct{}) {
	limit := time.NewTimer(drainWithin)
	defer limit.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-limit.C:
	}
}
