package conformance

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// waitFor bounds every wait. It is only reached by a defect.
const waitFor = 60 * time.Second

// fixed are the flags of a server whose output is the same twice (exacta §6.4).
var fixed = []string{"--clock", "fixed:2026-01-15T00:00:00.000Z", "--ids", "seed:t1"}

// server is a running program.
type server struct {
	t     testing.TB
	via   *carrier
	home  string // has all files of the test
	flags []string
	env   []string
	cmd   *exec.Cmd
	in    io.WriteCloser // stdin
	out   io.ReadCloser  // stdout
	log   *kit.Text
	dials int
}

// serve starts a server with a fixed clock and seed. Its files are in a directory of its own.
func serve(t testing.TB, via *carrier, flags ...string) *server {
	t.Helper()
	return serveIn(t, via, realTemp(t), append(append([]string(nil), fixed...), flags...)...)
}

// realTemp returns a new directory without symlinks in its path.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveIn starts a server with the files of a directory, and with these flags only.
func serveIn(t testing.TB, via *carrier, home string, flags ...string) *server {
	t.Helper()
	s := &server{t: t, via: via, home: home, flags: flags}
	s.start()
	return s
}

// start starts the program.
func (s *server) start() {
	s.t.Helper()
	args := append(append([]string{"exacta", "serve"}, s.via.flags(s)...), s.flags...)
	s.cmd = exec.Command(kit.Program(s.t, scratch), args...)
	s.cmd.Dir = s.home
	s.cmd.Env = append(append(os.Environ(), "HOME="+s.home, "XDG_CONFIG_HOME="), s.env...)
	s.log, s.dials = &kit.Text{}, 0
	s.cmd.Stderr = s.log
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err = kit.Start(s.cmd); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.cmd
	s.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// kill ends the program as a crash does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop ends the program as its carrier does: with the end of stdin, or with a signal.
func (s *server) stop() int {
	if s.via.name == "stdio" {
		_ = s.in.Close()
	} else {
		_ = s.cmd.Process.Signal(os.Interrupt)
	}
	return s.wait()
}

// wait waits for the end of the program and returns its exit code.
func (s *server) wait() int {
	s.t.Helper()
	ended := make(chan struct{})
	timer := time.AfterFunc(waitFor, func() {
		select {
		case <-ended:
		default:
			_ = s.cmd.Process.Kill()
		}
	})
	_ = s.cmd.Wait() // the exit code has all
	close(ended)
	timer.Stop()
	return s.cmd.ProcessState.ExitCode()
}

// write writes a file of the project, with its directories.
func (s *server) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.home, "p", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// read returns the content of a file of the project, "-" if there is none.
func (s *server) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.home, "p", name))
	if err != nil {
		return "-"
	}
	return string(text)
}

// dir returns the directory of the project.
func (s *server) dir() string { return filepath.Join(s.home, "p") }

// remove removes a file of the project.
func (s *server) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.home, "p", name)); err != nil {
		s.t.Fatal(err)
	}
}
