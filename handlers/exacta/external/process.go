package external

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"trunkline/codec/ndjson"
	"trunkline/engine/procgroup"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
)

const (
	firstRead = 16 << 10
	keepRead  = 256 << 10 // bytes of its buffer that a process keeps between answers
	keepErr   = 1 << 10   // bytes of its stderr that are shown when it ends
)

// inherited are the variables of the server that a planner gets (exacta §4.20).
var inherited = []string{"PATH", "HOME", "LANG"}

// process is one running planner. One question at a time goes to it.
type process struct {
	proc *procgroup.Process
	in   *os.File // its stdin
	out  *os.File // its stdout
	buf  []byte   // what it wrote and nothing took
	gone chan struct{}
}

// start starts a planner as the leader of a group of processes, in an empty directory. done is
// called when it has ended and was reaped, or was not started. Who has the process ends it.
func start(command []string, logger *slog.Logger, done func()) (*process, error) {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	file, err := procgroup.Executable(command[0], env)
	if err == nil {
		file, err = filepath.Abs(file) // the directory of the process is another one
	}
	if err != nil {
		done()
		return nil, err
	}
	s := &starting{file: file, argv: command, env: env}
	if err := s.prepare(); err != nil {
		s.closeAll()
		done()
		return nil, err
	}
	p := &process{in: s.own[0], out: s.own[1], gone: make(chan struct{})}
	started := make(chan error, 1)
	go p.live(s, logger, started, done)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// starting is what a process is made of.
type starting struct {
	file      string
	argv, env []string
	dir       string
	theirs    []*os.File // stdin, stdout, stderr of the process
	own       []*os.File // the other ends
}

func (s *starting) prepare() (err error) {
	if s.dir, err = os.MkdirTemp("", "exacta-planner-"); err != nil {
		return err
	}
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if i == 0 {
			r, w = w, r
		}
		s.own, s.theirs = append(s.own, r), append(s.theirs, w)
	}
	return nil
}

// closeAll gives up what prepare made.
func (s *starting) closeAll() {
	s.closeTheirs()
	for _, f := range s.own {
		_ = f.Close() // nothing is lost
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // it is one for temporary files
	}
}

func (s *starting) closeTheirs() {
	for _, f := range s.theirs {
		_ = f.Close() // the process has its own
	}
	s.theirs = nil
}

// live starts the process and stays with it to its end: the kernel ends a process with the thread
// that started it.
func (p *process) live(s *starting, logger *slog.Logger, started chan<- error, done func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	proc, err := procgroup.Start(s.file, s.argv, &os.ProcAttr{Dir: s.dir, Env: s.env, Files: s.theirs})
	s.closeTheirs()
	if err != nil {
		s.closeAll()
		started <- err
		done()
		return
	}
	defer done()
	p.proc = proc
	started <- nil
	talk := make(chan string, 1)
	go func() { talk <- tail(s.own[2]) }()
	code := proc.Wait()
	close(p.gone)
	limit := time.Now().Add(lingerWithin) // a process that left the group may hold the pipes
	_ = p.out.SetReadDeadline(limit)      // its last answer counts
	_ = s.own[2].SetReadDeadline(limit)
	level := slog.LevelWarn
	if code == procgroup.Killed { // as end does
		level = slog.LevelDebug
	}
	logger.Log(context.Background(), level, "planner has ended", "code", code, "stderr", <-talk)
	s.own = s.own[2:]
	s.closeAll()
}

// lingerWithin is how long the pipes of a process that has ended are read.
const lingerWithin = 5 * time.Second

// tail reads to the end and returns the last lines, without secrets.
func tail(r io.Reader) string {
	var last []byte
	buf := make([]byte, keepErr)
	for {
		n, err := r.Read(buf)
		last = append(last, buf[:n]...)
		last = last[max(0, len(last)-keepErr):]
		if err != nil {
			return strings.ToValidUTF8(string(secret.Redact(nil, last)), "�")
		}
	}
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// end kills the process and all that it started, in other groups and sessions too. Its pipes are of
// no more use.
func (p *process) end() {
	left := p.proc.Descendants() // before it ends: they are found by their parents
	p.proc.Kill()
	left.Kill()
	_ = p.in.Close()  // nothing more is written
	_ = p.out.Close() // or read
}

// exchange writes a line and returns the next one that is not blank. The caller ends the process
// unless it gets one: AI-003 if there is none in time or the process ended, AI-004 if it is too
// long. The line is the caller's.
func (p *process) exchange(ctx context.Context, line []byte) ([]byte, *errcode.Fault) {
	defer p.reset()
	stop := context.AfterFunc(ctx, p.interrupt)
	written := make(chan error, 1)
	go func() {
		_, err := p.in.Write(line)
		written <- err
	}()
	answer, f := p.line(ctx)
	if f != nil {
		p.interrupt()
	}
	// A process that answers has read its line, or the time limit ends the write.
	if err := <-written; err != nil && f == nil {
		f = broken(ctx, err)
	}
	if !stop() && f == nil {
		f = late() // the pipes are interrupted
	}
	return answer, f
}

// interrupt has all reads and writes end.
func (p *process) interrupt() {
	past := time.Unix(1, 0)
	_ = p.in.SetWriteDeadline(past) // a closed pipe needs none
	_ = p.out.SetReadDeadline(past)
}

// reset gives back a large buffer.
func (p *process) reset() {
	if cap(p.buf) > keepRead && len(p.buf) == 0 {
		p.buf = nil
	}
}

// line reads a line that is not blank.
func (p *process) line(ctx context.Context) ([]byte, *errcode.Fault) {
	scanned := 0
	for {
		line, used, st, next := ndjson.Split(p.buf, scanned, maxAnswer)
		scanned = next
		switch st {
		case ndjson.TooLong:
			return nil, tooLarge()
		case ndjson.Line:
			answer := append([]byte(nil), line...)
			p.buf = append(p.buf[:0], p.buf[used:]...)
			if strings.TrimLeft(string(answer), " \t") == "" {
				continue
			}
			return answer, nil
		}
		if err := p.read(); err != nil {
			return nil, broken(ctx, err)
		}
	}
}

// read appends to the buffer.
func (p *process) read() error {
	if cap(p.buf)-len(p.buf) < firstRead {
		p.buf = append(make([]byte, 0, 2*cap(p.buf)+firstRead), p.buf...)
	}
	n, err := p.out.Read(p.buf[len(p.buf):cap(p.buf)])
	p.buf = p.buf[:len(p.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// broken returns the fault of a pipe that failed.
func broken(ctx context.Context, err error) *errcode.Fault {
	if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return late()
	}
	return errcode.New("AI-003", "planner: it has ended")
}

func late() *errcode.Fault { return errcode.New("AI-003", "planner: no answer in time") }
