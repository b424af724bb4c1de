package exacta

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/projects/codec"
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
		Open:   func(p *connection.Port) connection.Session { return s.Open(p, Stdio, func() { close(eof) }) },
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

// Limits of connections over sockets.
const (
	socketDrain     = 10 * time.Second
	chunkBytes      = 256 << 10 // of events before a later answer
	unfinishedBytes = 96 << 20  // of all connections; the process takes twice as much, as buffers that grow leave garbage
)

var lineEnd = []byte("\n")

// OpenSocket makes the session of a connection over TCP or a unix socket; it is a
// connection.Opener.
func (s *Server) OpenSocket(p *connection.Port) connection.Session {
	if strings.HasPrefix(p.Remote(), stream.UnixPeer) {
		return s.Open(p, Unix, nil)
	}
	return s.Open(p, TCP, nil)
}

// SocketLimits returns what the owner of connections over TCP and unix sockets applies. There is no
// timer: a peer may be silent, and slow (exacta §2.5, §10).
func (s *Server) SocketLimits() connection.Limits {
	return connection.Limits{
		DrainWithin: int64(socketDrain),
		UnsentBytes: unsentBytes,
		AheadBytes:  s.cfg.MaxMessageBytes,
		AheadFrames: aheadLines,
		FramesIn:    func(b []byte) int { return bytes.Count(b, lineEnd) },
		ChunkBytes:  chunkBytes,
		FrameBytes:  s.cfg.MaxMessageBytes + len("\r\n"),
		Input:       s.input,
		NoRoom: func(dst []byte) []byte {
			return codec.AppendRefusal(dst, nil, codec.NewScope("", "").Next(codec.Correlation), s.cfg.Clock, &noRoom)
		},
	}
}

// noRoom refuses a connection whose unfinished line finds no room.
var noRoom = codec.Refusal{Code: "RES-002", Detail: "unfinished lines of all connections"}

// AppendRefused appends what a connection gets that is one too many.
func (s *Server) AppendRefused(dst []byte) []byte {
	many := codec.Refusal{Code: "RES-004", Detail: "open connections: " + strconv.Itoa(s.Live().MaxConnections)}
	return codec.AppendRefusal(dst, nil, s.scope.Next(codec.Correlation), s.cfg.Clock, &many)
}
