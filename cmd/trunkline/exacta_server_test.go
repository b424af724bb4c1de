package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/projects/codec"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
)

// projectServer is a server of projects on a socket of its own.
type projectServer struct {
	t    *testing.T
	addr string
	dir  string // of a project
	srv  *exacta.Server
	host *stream.Host

	mu   sync.Mutex
	open []net.Conn
}

// startProjects starts a server whose ids have a seed, and makes a project.
func startProjects(t *testing.T, files map[string]string) *projectServer {
	t.Helper()
	s := &projectServer{t: t, dir: t.TempDir()}
	for name, text := range files {
		s.write(name, text)
	}
	return startProjectsIn(t, s.dir)
}

// startProjectsIn starts a server for a project that exists.
func startProjectsIn(t *testing.T, dir string) *projectServer {
	t.Helper()
	s := &projectServer{t: t, dir: dir}
	s.srv = exacta.New(exacta.Config{Logger: slog.New(slog.DiscardHandler), Seed: "t1", Clock: codec.FixedClock(time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC))})
	s.host = stream.NewHost(stream.Config{
		Open:   func(p *connection.Port) connection.Session { return s.srv.Open(p, exacta.Unix, nil) },
		Limits: s.srv.SocketLimits(),
	})
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s.addr = "unix://" + ln.Addr().String()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for nc, err := ln.Accept(); err == nil; nc, err = ln.Accept() {
			s.mu.Lock()
			s.open = append(s.open, nc)
			s.mu.Unlock()
			go func() { _ = s.host.Serve(nc, "peer") }()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
		_ = s.host.Shutdown(context.Background())
		s.srv.Close()
	})
	return s
}

func (s *projectServer) write(name, text string) {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *projectServer) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// await waits for a file.
func (s *projectServer) await(name string) {
	s.t.Helper()
	for deadline := time.Now().Add(waitFor); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(filepath.Join(s.dir, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s never came", name)
		}
	}
}

// breakAll ends all connections.
func (s *projectServer) breakAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nc := range s.open {
		nc.Close()
	}
	s.open = nil
}

// run runs a command on the project, for a time that is a bound on failure.
func (s *projectServer) run(args ...string) ran {
	s.t.Helper()
	return runProjects(s.t, "", append(args, "--addr", s.addr, "--project", s.dir, "--timeout", waitFor.String())...)
}

// call runs exacta call.
func (s *projectServer) call(args ...string) ran {
	s.t.Helper()
	return runProjects(s.t, "", append([]string{"call"}, append(args, "--addr", s.addr)...)...)
}

func runProjects(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"exacta"}, args...), strings.NewReader(stdin), &out, &errs)
	return ran{code, out.String(), errs.String()}
}

// id returns the project's id.
func (s *projectServer) id() string {
	s.t.Helper()
	var r struct {
		ID string `json:"project_id"`
	}
	got := s.run("status", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.ID == "" {
		s.t.Fatalf("%v: %+v", err, got)
	}
	return r.ID
}

// demo are the files of the contract's examples.
func demo() map[string]string {
	return map[string]string{"go.mod": "module x\n", "README.md": "# Demo\n\nHello.\n"}
}

// hostileProjects answers every line with a text in which {R} is the request_id; end closes the
// connection behind it.
func hostileProjects(t *testing.T, text string, end bool) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		ln.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for nc, err := ln.Accept(); err == nil; nc, err = ln.Accept() {
			for lines := bufio.NewScanner(nc); lines.Scan(); {
				var asked struct {
					RequestID string `json:"request_id"`
				}
				_ = json.Unmarshal(lines.Bytes(), &asked)
				fmt.Fprint(nc, strings.ReplaceAll(text, "{R}", asked.RequestID))
				if end {
					break
				}
			}
			nc.Close()
		}
	}()
	return ln.Addr().String()
}

func needMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
}
