package exacta

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/exacta/wire"
	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// Limits of connections over sockets.
const (
	socketDrain     = 10 * time.Second
	chunkBytes      = 256 << 10 // of events before a later answer
	unfinishedBytes = 96 << 20  // of all connections; the process takes twice as much, as buffers that grow leave garbage
)

var lineEnd = []byte("\n")

// OpenSocket makes the session of a connection over TCP or a unix socket; it is a link.Opener.
func (s *Server) OpenSocket(p *link.Port) link.Session {
	if strings.HasPrefix(p.Remote(), stream.UnixPeer) {
		return s.Open(p, Unix, nil)
	}
	return s.Open(p, TCP, nil)
}

// SocketLimits returns what the owner of connections over TCP and unix sockets applies. There is no
// timer: a peer may be silent, and slow (exacta §2.5, §10).
func (s *Server) SocketLimits() link.Limits {
	return link.Limits{
		DrainWithin: int64(socketDrain),
		UnsentBytes: unsentBytes,
		AheadBytes:  s.cfg.MaxMessageBytes,
		AheadFrames: aheadLines,
		FramesIn:    func(b []byte) int { return bytes.Count(b, lineEnd) },
		ChunkBytes:  chunkBytes,
		FrameBytes:  s.cfg.MaxMessageBytes + len("\r\n"),
		Input:       s.input,
		NoRoom: func(dst []byte) []byte {
			return wire.AppendRefusal(dst, nil, wire.NewScope("", "").Next(wire.Correlation), s.cfg.Clock, &noRoom)
		},
	}
}

// noRoom refuses a connection whose unfinished line finds no room.
var noRoom = wire.Refusal{Code: "RES-002", Detail: "unfinished lines of all connections"}

// AppendRefused appends what a connection gets that is one too many.
func (s *Server) AppendRefused(dst []byte) []byte {
	many := wire.Refusal{Code: "RES-004", Detail: "open connections: " + strconv.Itoa(s.Live().MaxConnections)}
	return wire.AppendRefusal(dst, nil, s.scope.Next(wire.Correlation), s.cfg.Clock, &many)
}
