package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// stuckAfter is how much longer than it should a cell may take before its server is killed.
const stuckAfter = 10 * time.Second

// pipeServer is a process behind two pipes, whose ends here are plain descriptors: a blocked read
// costs no more than it has to.
type pipeServer struct {
	cmd     *exec.Cmd
	in, out int // its stdin and stdout
	guard   *time.Timer
}

func startPipes(cmd *exec.Cmd, within time.Duration) (s *pipeServer, err error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		unix.Close(in[0])
		unix.Close(in[1])
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	stdin, stdout := os.NewFile(uintptr(in[0]), "stdin"), os.NewFile(uintptr(out[1]), "stdout")
	defer stdin.Close()
	defer stdout.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	s = &pipeServer{cmd: cmd, in: in[1], out: out[0]}
	if err := load.StartPinned(cmd, nil); err != nil {
		s.closePipes()
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	s.guard = time.AfterFunc(within+stuckAfter, func() { _ = cmd.Process.Kill() })
	return s, nil
}

func (s *pipeServer) closePipes() {
	unix.Close(s.in)
	unix.Close(s.out)
}

// end closes the pipes, at which the server leaves.
func (s *pipeServer) end() error {
	s.closePipes()
	err := s.cmd.Wait()
	s.guard.Stop()
	if err != nil {
		return fmt.Errorf("cannot end %s: %w", s.cmd.Path, err)
	}
	return nil
}

// Read implements io.Reader.
func (s *pipeServer) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.out, p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("cannot read: %w", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write implements io.Writer.
func (s *pipeServer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := unix.Write(s.in, p[n:])
		if err != nil && err != unix.EINTR {
			return n, fmt.Errorf("cannot write: %w", err)
		}
		n += max(m, 0)
	}
	return n, nil
}

// pipeLoad keeps depth requests in flight: it answers each batch of replies with one write of as
// many requests. All requests have one length, and all replies. What is in flight fits into the
// pipes, so that neither side waits for the other to read.
type pipeLoad struct {
	server  io.ReadWriter
	lines   []byte // the requests over and over, so that any depth of them in a row are one write
	request int    // bytes of a request
	kinds   int    // different requests
	reply   int    // bytes of a reply
	depth   int

	replies atomic.Uint64
	stop    atomic.Bool
}

func newPipeLoad(server io.ReadWriter, kind string, reply, depth int) *pipeLoad {
	list := requests(kind)
	l := &pipeLoad{server: server, request: len(list[0]), kinds: len(list), reply: reply, depth: depth}
	for i := range len(list) + depth {
		l.lines = append(l.lines, list[i%len(list)]...)
	}
	return l
}

// run sends until stop is set, and then waits for the replies that are out.
func (l *pipeLoad) run() error {
	next, flying, held := 0, 0, 0
	buf := make([]byte, l.reply*l.depth)
	issue := func(n int) error {
		b := l.lines[next*l.request : (next+n)*l.request]
		next, flying = (next+n)%l.kinds, flying+n
		_, err := l.server.Write(b)
		return err
	}
	if err := issue(l.depth); err != nil {
		return err
	}
	for flying > 0 {
		n, err := l.server.Read(buf[held:])
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%d replies are missing: the server has ended", flying)
		}
		if err != nil {
			return err
		}
		used, replies, err := load.SplitLines(buf[:held+n], l.reply)
		if err != nil {
			return err
		}
		held = copy(buf, buf[used:held+n])
		flying -= replies
		l.replies.Add(uint64(replies))
		if !l.stop.Load() {
			if err := issue(replies); err != nil {
				return err
			}
		}
	}
	return nil
}

// pipes measures a cell over pipes, each with a process of its own.
func (b *bench) pipes(c goal.Cell) (goal.Sample, error) {
	within := b.o.warmup + b.o.window
	s, err := startPipes(b.pipeCommand(trunkline, 0), within)
	if err != nil {
		return goal.Sample{}, err
	}
	size, err := prime(s, c.Method)
	if err == nil && c.Server != trunkline { // it was only asked how long its replies are
		if err = s.end(); err != nil {
			return goal.Sample{}, err
		}
		if s, err = startPipes(b.pipeCommand(c.Server, size), within); err != nil {
			return goal.Sample{}, err
		}
	}
	var got goal.Sample
	if err == nil {
		got, err = b.pipeWindow(newPipeLoad(s, c.Method, size, c.Depth), s.cmd.Process.Pid)
	}
	return got, errors.Join(err, s.end())
}

func (b *bench) pipeCommand(server string, reply int) *exec.Cmd {
	if server != trunkline {
		return exec.Command(b.peer, "-peer", partPipes, "-reply", strconv.Itoa(reply))
	}
	cmd := exec.Command(b.Binary, b.serveArgs()...)
	cmd.Env = append(os.Environ(), b.env()...)
	return cmd
}

func (b *bench) pipeWindow(l *pipeLoad, pid int) (goal.Sample, error) {
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	time.Sleep(b.o.warmup)
	w, err := load.OpenWindow(pid, l.replies.Load())
	if err == nil {
		time.Sleep(b.o.window)
	}
	s, closeErr := w.Close(l.replies.Load())
	l.stop.Store(true)
	return s, errors.Join(<-ended, err, closeErr)
}
