package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// stuckAfter is how much longer than it should a cell may take before its server is killed.
const stuckAfter = 10 * time.Second

// pipeServer is a process behind two pipes.
type pipeServer struct {
	stdio
	cmd   *exec.Cmd
	guard *time.Timer
}

func startPipes(cmd *exec.Cmd, within time.Duration) (*pipeServer, error) {
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("cannot make the pipes: %w", err)
	}
	for _, end := range []any{in, out} {
		if f, ok := end.(*os.File); ok {
			f.Fd() // lets it block: a read that waits costs no more than it has to
		}
	}
	if err := load.StartPinned(cmd, nil); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	return &pipeServer{stdio{out, in}, cmd, time.AfterFunc(within+stuckAfter, func() { _ = cmd.Process.Kill() })}, nil
}

// end closes the pipe to the server, at which it leaves.
func (s *pipeServer) end() error {
	s.stdio.Close()
	err := s.cmd.Wait()
	s.guard.Stop()
	if err != nil {
		return fmt.Errorf("cannot end %s: %w", s.cmd.Path, err)
	}
	return nil
}

// pipeLoad keeps depth requests in flight: it answers each batch of replies with one write of as
// many requests. All requests have one length, and all replies. What is in flight fits into the
// pipes, so that neither side waits for the other to read.
type pipeLoad struct {
	kind
	server  io.ReadWriter
	reply   int // bytes of a reply
	depth   int
	replies atomic.Uint64
	stop    atomic.Bool
}

// run sends until stop is set, and then waits for the replies that are out.
func (l *pipeLoad) run() error {
	list := l.requests()
	size, next, flying := len(list[0]), 0, 0
	// The requests over and over, so that any depth of them in a row are one write.
	lines := []byte(strings.Repeat(strings.Join(list, ""), 1+l.depth))
	issue := func(n int) error {
		b := lines[next*size : (next+n)*size]
		next, flying = (next+n)%len(list), flying+n
		_, err := l.server.Write(b)
		return err
	}
	if err := issue(l.depth); err != nil {
		return err
	}
	for in := bufio.NewReaderSize(l.server, l.reply*l.depth); flying > 0; {
		if _, err := in.Peek(l.reply); err != nil {
			return fmt.Errorf("%d replies are missing: %w", flying, err)
		}
		n := in.Buffered() / l.reply // what came with the first
		for range n {
			if line, err := in.ReadSlice('\n'); err != nil || len(line) != l.reply {
				return fmt.Errorf("cannot take %q as a reply of %d bytes", line, l.reply)
			}
		}
		flying -= n
		l.replies.Add(uint64(n))
		if !l.stop.Load() {
			if err := issue(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// pipes measures the hot kinds over pipes.
func (b *bench) pipes() error {
	var pairs []pair
	for _, k := range hot() {
		ours := goal.Cell{Server: trunkline, Method: k.name, Via: "pipes", Conns: 1, Depth: b.Depth}
		peer := ours
		peer.Server = constant
		pairs = append(pairs, pair{goal: goal.Goal{What: "tool lines over pipes, requests/s over constant replies, " + k.name, Must: k.pipes}, member: k.name,
			ours: ours, peer: peer, measure: func(c goal.Cell) (goal.Sample, error) { return b.overPipes(c.Server, k) }})
	}
	return b.compare(pairs)
}

// overPipes measures a server in a process of its own. The peer's replies are as long as those of
// the tool server, which is asked for that.
func (b *bench) overPipes(server string, k kind) (got goal.Sample, err error) {
	within := b.Warmup + b.Window
	cmd := exec.Command(b.Binary, b.serveArgs()...)
	cmd.Env = append(os.Environ(), b.env()...)
	s, err := startPipes(cmd, within)
	if err != nil {
		return got, err
	}
	size, err := k.prime(s)
	if err == nil && server != trunkline {
		if err = s.end(); err != nil {
			return got, err
		}
		self, err := os.Executable()
		if err != nil {
			return got, fmt.Errorf("cannot find this program: %w", err)
		}
		if s, err = startPipes(exec.Command(self, part.ChildArgs(echoChild, strconv.Itoa(size))...), within); err != nil {
			return got, err
		}
	}
	if err == nil {
		got, err = b.pipeWindow(&pipeLoad{kind: k, server: s, reply: size, depth: b.Depth}, s.cmd.Process.Pid)
	}
	return got, errors.Join(err, s.end())
}

func (b *bench) pipeWindow(l *pipeLoad, pid int) (goal.Sample, error) {
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	time.Sleep(b.Warmup)
	w, err := load.OpenWindow(pid, l.replies.Load())
	if err == nil {
		time.Sleep(b.Window)
	}
	s, closeErr := w.Close(l.replies.Load())
	l.stop.Store(true)
	return s, errors.Join(<-ended, err, closeErr)
}
