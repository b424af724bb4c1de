package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// kernelServer answers every request of the kernel protocol over TCP until the test ends. before is
// called ahead of each reply, for one request at a time over all connections, with the number of
// the request; false closes the connection instead.
func kernelServer(t *testing.T, before func(n int) bool) (addr string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{before: before, open: make(map[net.Conn]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for nc, err := ln.Accept(); err == nil; nc, err = ln.Accept() {
			if s.enter(nc) {
				wg.Go(func() { s.serve(nc) })
			}
		}
	})
	stop = func() {
		ln.Close()
		s.closeAll()
		wg.Wait()
	}
	t.Cleanup(stop)
	return ln.Addr().String(), stop
}

type server struct {
	turn   sync.Mutex // one request at a time
	n      int
	before func(n int) bool

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (s *server) enter(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		nc.Close()
		return false
	}
	s.open[nc] = true
	return true
}

func (s *server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for nc := range s.open {
		nc.Close()
	}
}

func (s *server) serve(nc net.Conn) {
	defer nc.Close()
	var in []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := nc.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for {
			_, payload, n := frame.Split(in, len(buf))
			if n <= 0 {
				break
			}
			if !s.answer(nc, payload) {
				return
			}
			in = in[n:]
		}
	}
}

func (s *server) answer(nc net.Conn, payload []byte) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.n++
	if s.before != nil && !s.before(s.n) {
		return false
	}
	var r mpack.Request
	var scan mpack.Scanner
	if scan.ParseRequest(payload, &r) != mpack.NoProblem {
		return false
	}
	_, err := nc.Write(frame.Append(nil, frame.Response, append(mpack.AppendResponseHead(nil, r.ID), 0x80), nil))
	return err == nil
}

// benchCommand is the program with the arguments of bench, as a process of its own.
func benchCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"bench"}, args...)...)
	cmd.Args[0] = "trunkline" // see TestMain
	return cmd
}

// bench runs it to its end.
func bench(args ...string) (code int, stdout, stderr string) {
	cmd := benchCommand(args...)
	var out, talk bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), &out, &talk
	_ = cmd.Run() // the exit code shows it
	return cmd.ProcessState.ExitCode(), out.String(), talk.String()
}
