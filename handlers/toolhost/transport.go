package toolhost

import (
	"bytes"
	"strings"
	"time"

	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// Limits of sockets (toolhost §2.2, §2.3).
const (
	DefaultConnections = 4096
	lineWithin         = 30 * time.Second
	sendWithin         = 30 * time.Second
	idleAfter          = 900 * time.Second
	drainWithin        = 10 * time.Second
	unsentBytes        = 8 << 20
	heldBytes          = 16 << 20
	heldLines          = 1024
)

// defaultUnfinished is how many bytes of unfinished lines, and of lines read ahead, all connections
// of a server may hold together, beside link.OwnInput bytes each.
const defaultUnfinished = 256 << 20

var lineEnd = []byte{'\n'}

// SocketLimits are the bounds of this server's connections over TCP and unix sockets. Peers of unix
// sockets may be idle: their sessions are written to be.
func (s *Server) SocketLimits() link.Limits {
	l := StdinLimits()
	l.IdleAfter, l.FrameWithin, l.SendWithin = int64(idleAfter), int64(lineWithin), int64(sendWithin)
	l.LateFrame = string(appendFault(nil, "read timeout", requestID{}))
	l.Input, l.NoRoom = s.unfinished, string(appendFault(nil, errOverloaded, requestID{}))
	return l
}

// StdinLimits are those of a session over stdin and stdout: it waits for as long as it takes.
func StdinLimits() link.Limits {
	return link.Limits{
		DrainWithin: int64(drainWithin),
		UnsentBytes: unsentBytes,
		AheadBytes:  heldBytes,
		AheadFrames: heldLines,
		FramesIn:    func(b []byte) int { return bytes.Count(b, lineEnd) },
		ChunkBytes:  link.DefaultChunkBytes,
		FrameBytes:  maxLine + len("\r\n"),
		EndOfInput:  "\n",
	}
}

// AppendRefusal appends what a connection gets that is one too many.
func AppendRefusal(dst []byte) []byte { return appendFault(dst, "too many connections", requestID{}) }

// OpenSocket makes the session of a connection; it is a link.Opener. The principal is what idempotency keys belong to (toolhost §2.3).
func (s *Server) OpenSocket(p *link.Port) link.Session {
	switch {
	case strings.HasPrefix(p.Remote(), stream.UnixPeer):
		return s.open(p, Unix, p.Remote())
	case s.cfg.APIToken != "":
		return s.open(p, TCP, "token")
	}
	return s.open(p, TCP, "anon")
}

// OpenStdin makes the session over stdin and stdout; it is a link.Opener.
func (s *Server) OpenStdin(p *link.Port) link.Session { return s.open(p, Stdin, "stdin") }

func (s *Server) open(p *link.Port, via Transport, principal string) *session {
	s.sessions.Add(1)
	o := &session{srv: s, port: p, via: via, principal: []byte(principal), authed: via != TCP || s.cfg.APIToken == ""}
	if !o.authed {
		o.until = s.mono() + int64(guestWithin)
	}
	return o
}
