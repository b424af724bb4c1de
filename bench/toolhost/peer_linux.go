package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"trunkline/engine/link"
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

// constantReply is a line of n bytes, nil for none.
func constantReply(n int) []byte {
	if n == 0 {
		return nil
	}
	return append(bytes.Repeat([]byte{'x'}, n-1), '\n')
}

// Feed implements link.Session. An empty line ends the stream, as it does at the tool server.
func (s *echoSession) Feed(in, out []byte, _ link.Instant) (used int, outAfter []byte, v link.Verdict) {
	start := len(out)
	for {
		if len(out)-start > link.DefaultUnsentBytes {
			return used, out, link.Yield
		}
		rest := in[used:]
		end := bytes.IndexByte(rest[s.scanned:], '\n')
		if end < 0 {
			s.scanned = len(rest)
			return used, out, link.More
		}
		line := rest[:s.scanned+end+1]
		s.scanned = 0
		used += len(line)
		switch {
		case len(line) == 1:
			return used, out, link.Close
		case s.reply != nil:
			out = append(out, s.reply...)
		default:
			out = append(out, line...)
		}
	}
}

// Pump implements link.Session: there is never any news.
func (s *echoSession) Pump(out []byte, _ int, _ link.Instant) ([]byte, bool) { return out, false }

// EOF implements link.Session.
func (s *echoSession) EOF(link.Instant) { s.eof = true }

// Drain implements link.Session.
func (s *echoSession) Drain(link.Instant) { s.eof = true }

// Load implements link.Session.
func (s *echoSession) Load() link.Load { return link.Load{Done: s.eof} }

// Closed implements link.Session.
func (s *echoSession) Closed() {}

// stdio is stdin and stdout as one transport.
type stdio struct {
	io.Reader
	io.Writer
}

// Close implements io.Closer.
func (stdio) Close() error { return os.Stdin.Close() }

// servePeer serves until SIGTERM, or until stdin ends.
func servePeer(how string, reply int) error {
	open := func(*link.Port) link.Session { return &echoSession{reply: constantReply(reply)} }
	if how == partPipes {
		host := stream.NewHost(stream.Config{Limits: toolhost.StdinLimits(), Open: open})
		return host.Serve(stdio{os.Stdin, os.Stdout}, "stdin")
	}
	ln, err := reactor.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	loops, err := reactor.New(reactor.Config{Config: stream.Config{MaxConnections: toolhost.DefaultConnections, Limits: new(toolhost.Server).SocketLimits(), Open: open}})
	if err != nil {
		ln.Close()
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("listening", ln.Addr())
	served := make(chan error, 1)
	go func() { served <- loops.Serve(ln) }()
	select {
	case <-stop:
	case err := <-served:
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return loops.Shutdown(ctx)
}
