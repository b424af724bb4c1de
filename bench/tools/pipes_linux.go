package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/engine/connection"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost"
)

// stuckAfter is how much longer than it should a cell may take before its server is killed.
const stuckAfter = 10 * time.Second

// pipeServer is a process behind two pipes.
type pipeServer struct {
	stdio
	cmd *exec.Cmd
}

func startPipes(cmd *exec.Cmd) (*pipeServer, error) {
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	err := errors.Join(inErr, outErr)
	if err == nil {
		err = load.StartPinned(cmd, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	return &pipeServer{stdio{out, in}, cmd}, nil
}

// end closes the pipe to the server, at which it leaves.
func (s *pipeServer) end() error {
	s.stdio.Close()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("cannot end %s: %w", s.cmd.Path, err)
	}
	return nil
}

// pipes measures the hot kinds over pipes.
func (b *bench) pipes() error {
	var pairs []pair
	for _, k := range hot() {
		side := func(server string) measured {
			c := goal.Cell{Server: server, Method: k.name, Via: "pipes", Conns: 1, Depth: b.Depth}
			return measured{c, func() (goal.Sample, error) { return b.overPipes(server, k) }}
		}
		g := goal.Goal{What: "tool lines over pipes, requests/s over constant replies, " + k.name, Must: k.pipes}
		pairs = append(pairs, pair{goal: g, member: k.name, ours: side(trunkline), peer: side(constant)})
	}
	return b.compare(pairs)
}

// overPipes measures a server in a process of its own. The peer's replies are as long as those of
// the tool server, which is asked for that. No more is in flight than fits into the pipes, so that
// neither side waits for the other to read.
func (b *bench) overPipes(server string, k kind) (got goal.Sample, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.Warmup+b.Window+stuckAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.Binary, b.serveArgs()...)
	cmd.Env = append(os.Environ(), b.env()...)
	s, err := startPipes(cmd)
	if err != nil {
		return got, err
	}
	size, err := k.prime(s)
	if err == nil && server != trunkline {
		if err = s.end(); err != nil {
			return got, err
		}
		if s, err = startPipes(exec.CommandContext(ctx, load.Self, part.ChildArgs(echoChild, strconv.Itoa(size))...)); err != nil {
			return got, err
		}
	}
	if err == nil {
		cfg := load.Config{Protocol: load.Lines, Reply: size, Tapes: k.tapes(1), Depth: b.Depth}
		cfg.In, cfg.Out = s.ReadCloser.(*os.File), s.WriteCloser.(*os.File)
		got, err = load.MeasureProcess(cfg, s.cmd.Process.Pid, b.Warmup, b.Window)
	}
	return got, errors.Join(err, s.end())
}

// starting is a cell of a program that is started often, with a request as its input.
func (b *bench) starting(server, path string, args ...string) measured {
	c := goal.Cell{Server: server, Method: "start and answer", Via: "processes", Conns: 1, Depth: 1}
	return measured{c, func() (goal.Sample, error) {
		return load.Starts(func() *exec.Cmd {
			cmd := exec.Command(path, args...)
			cmd.Stdin = strings.NewReader(`{"input_json":"{}","ds_state":{"slots":{}}}` + "\n")
			cmd.Env = append(os.Environ(), b.env()...)
			return cmd
		}, good, func(n int, _ time.Duration) bool { return n*b.Options.Rounds >= b.starts })
	}}
}

// good takes a good reply.
func good(out []byte) error {
	if !bytes.HasPrefix(out, []byte(began)) {
		return errors.New("it is no good one")
	}
	return nil
}

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
