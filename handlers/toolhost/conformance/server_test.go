package conformance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// transports of serve.
const (
	stdio = "stdio"
	unix  = "unix"
	tcp   = "tcp"
)

// server is one running process in mode serve.
type server struct {
	cmd  *exec.Cmd
	io   *stream   // its standard streams
	talk *kit.Text // what it states on stderr
	over string
	addr string
	gone chan struct{}
	dir  string
	as   origin
}

// origin states what a server's process is made from; usually nothing but the program.
type origin struct {
	through []string // a program that is started in its place, and becomes it
	env     []string
	attr    *syscall.SysProcAttr // the test is skipped where the system does not permit them
}

// listening finds the bound port of the loopback in what the program states.
var listening = regexp.MustCompile(`listening.*?127\.0\.0\.1:(\d+)`)

// environ is the environment of every process started here: nothing of the caller's settings.
func environ(extra []string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}, extra...)
}

// inheritedName is a file that every server is started with, and no worker is to see.
const inheritedName = "inherited"

// serve starts the program over one transport and waits until it can be dialled.
func serve(t testing.TB, over, root string, env []string, args ...string) *server {
	t.Helper()
	return serveAs(t, origin{}, over, root, env, args...)
}

func serveAs(t testing.TB, as origin, over, root string, env []string, args ...string) *server {
	t.Helper()
	srv := &server{over: over, talk: new(kit.Text), gone: make(chan struct{}), dir: newDir(t), as: as}
	switch over {
	case unix:
		srv.addr = filepath.Join(srv.dir, "s")
		args = append(args, "--listen", "unix://"+srv.addr)
	case tcp:
		args = append(args, "--listen", "tcp://127.0.0.1:0")
	}
	srv.launch(t, root, env, args)
	if over != stdio {
		srv.awaitListener(t)
	}
	return srv
}

func (srv *server) launch(t testing.TB, root string, env, args []string) {
	t.Helper()
	argv := slices.Concat(srv.as.through, []string{kit.Program(t, scratch)}, args)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.SysProcAttr = root, environ(slices.Concat(srv.as.env, env)), srv.talk, srv.as.attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	// A pipe of our own: Wait must not close it before its last line is read.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	inherited, err := os.Create(filepath.Join(srv.dir, inheritedName))
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	cmd.ExtraFiles = []*os.File{inherited}
	if err := kit.Start(cmd); err != nil {
		if r.Close(); srv.as.attr != nil {
			t.Skipf("needs the right to start a process as %+v: %v", srv.as.attr, err)
		}
		t.Fatal(err)
	}
	w.Close()
	srv.cmd, srv.io = cmd, newStream(r, in, in.Close, func() { in.Close() })
	go func() { cmd.Wait(); close(srv.gone) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-srv.gone; r.Close() })
}

func (srv *server) awaitListener(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if m := listening.FindStringSubmatch(srv.talk.String()); srv.over == tcp && m != nil {
			srv.addr = "127.0.0.1:" + m[1]
			return
		}
		if srv.over == unix {
			if nc, err := net.Dial("unix", srv.addr); err == nil {
				nc.Close()
				return
			}
		}
		select {
		case <-srv.gone:
			t.Fatalf("the server ended with %d: %s", srv.cmd.ProcessState.ExitCode(), srv.talk)
		default:
		}
	}
	t.Fatalf("the server does not listen; stderr: %s", srv.talk)
}

// dial opens a conversation; over the standard streams there is only one.
func (srv *server) dial(t testing.TB) *stream {
	t.Helper()
	if srv.over == stdio {
		return srv.io
	}
	c := connStream(srv.dialConn(t))
	t.Cleanup(c.close)
	return c
}

func (srv *server) dialConn(t testing.TB) net.Conn {
	t.Helper()
	nc, err := net.Dial(srv.over, srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// exit waits for the process and returns its code, -1 when it does not end.
func (srv *server) exit(patience time.Duration) int {
	select {
	case <-srv.gone:
		return srv.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		return -1
	}
}

func (srv *server) term() { srv.cmd.Process.Signal(syscall.SIGTERM) }

// newDir is a short temporary directory: the path of a socket is bounded.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch, "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
