package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"trunkline/engine/connection"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost"
)

// The peer is the bound: the owners of connections that the tool server has, under the same limits,
// and a session that looks for nothing but the ends of lines.

// echoSession sends each line back, or a constant reply.
type echoSession struct {
	reply   []byte // nil: the line
	scanned int
	eof     bool
}

// Feed implements connection.Session. An empty line ends the stream, as it does at the tool server.
func (s *echoSession) Feed(in, out []byte, _ connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	start := len(out)
	for {
		if len(out)-start > connection.DefaultUnsentBytes {
			return used, out, connection.Yield
		}
		rest := in[used:]
		end := bytes.IndexByte(rest[s.scanned:], '\n')
		if end < 0 {
			s.scanned = len(rest)
			return used, out, connection.More
		}
		line := rest[:s.scanned+end+1]
		s.scanned = 0
		used += len(line)
		switch {
		case len(line) == 1:
			return used, out, connection.Close
		case s.reply != nil:
			out = append(out, s.reply...)
		default:
			out = append(out, line...)
		}
	}
}

// Pump implements connection.Session: there is never any news.
func (s *echoSession) Pump(out []byte, _ int, _ connection.Instant) ([]byte, bool) { return out, false }

// EOF implements connection.Session.
func (s *echoSession) EOF(connection.Instant) { s.eof = true }

// Drain implements connection.Session.
func (s *echoSession) Drain(connection.Instant) { s.eof = true }

// Load implements connection.Session.
func (s *echoSession) Load() connection.Load { return connection.Load{Done: s.eof} }

// Closed implements connection.Session.
func (s *echoSession) Closed() {}

// echoChild is the peer, as a child of the run: over TCP, or, with the bytes of its reply, over
// stdin and stdout.
const echoChild = "tools-echo"

// beEcho serves until a signal ends it, or until stdin ends.
func beEcho(args []string) error {
	if len(args) > 0 {
		size, err := strconv.Atoi(args[0])
		if err != nil || size < 1 {
			return fmt.Errorf("cannot reply with %q bytes", args[0])
		}
		reply := append(bytes.Repeat([]byte{'x'}, size-1), '\n')
		open := func(*connection.Port) connection.Session { return &echoSession{reply: reply} }
		return stream.NewHost(stream.Config{Limits: toolhost.StdinLimits(), Open: open}).Serve(stdio{os.Stdin, os.Stdout}, "stdin")
	}
	ln, err := reactor.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	loops, err := reactor.New(reactor.Config{Config: stream.Config{MaxConnections: toolhost.DefaultConnections, Limits: new(toolhost.Server).SocketLimits(),
		Open: func(*connection.Port) connection.Session { return &echoSession{} }}})
	if err != nil {
		ln.Close()
		return err
	}
	fmt.Println("listening", ln.Addr())
	return loops.Serve(ln)
}

// stdio is two streams as one transport.
type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

// Close implements io.Closer.
func (s stdio) Close() error { return errors.Join(s.ReadCloser.Close(), s.WriteCloser.Close()) }
