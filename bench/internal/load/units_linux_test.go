package load

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestNewRequest(t *testing.T) {
	// The bytes of kernel-ipc §9.2, with another id.
	want := []byte("\x00\x00\x00\x3f\x01\x84\xa2id\xa8r0000001\xa7service\xa6kernel\xa6method\xaaGetProcess\xa4body\x81\xa3pid\xa5ghost")
	if got := NewRequest("kernel", "GetProcess", "pid", "ghost"); !bytes.Equal(got, want) {
		t.Errorf("request\n% x, want\n% x", got, want)
	}
}

func TestAppendPost(t *testing.T) {
	got := string(AppendPost(nil, "/p", []byte("{}"), "A: b", "C: d"))
	if !strings.HasPrefix(got, "POST /p HTTP/1.1\r\n") || !strings.HasSuffix(got, "Content-Length: 2\r\nA: b\r\nC: d\r\n\r\n{}") {
		t.Errorf("request %q", got)
	}
}

func TestProcessReadings(t *testing.T) {
	before, err := cpu(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	after, err := cpu(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("CPU time went from %v to %v, %v", before, after, err)
	}
	if m, err := memoryOf(os.Getpid()); err != nil || m.RSS < 1<<20 || m.Peak < m.RSS/2 {
		t.Errorf("memory %+v, %v", m, err)
	}
	if _, err := cpu(1 << 30); err == nil {
		t.Error("a process that is not there has a CPU time")
	}
	if n := kibibytes([]byte("VmHWM:\t 7 kB\nVmRSS:\n"), "VmRSS:"); n != 0 {
		t.Errorf("an empty line reads as %d bytes", n)
	}
}

func TestServer(t *testing.T) {
	script := "echo starting; echo kernel ipc listening on 127.0.0.1:$FAKE_PORT; echo admin off; exec sleep 60"
	s, err := StartServer(Command{Name: "fake", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"FAKE_PORT=1234"}, Listening: trunklineListening})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr != "127.0.0.1:1234" || !s.Alive() {
		t.Errorf("address %q, alive %v", s.Addr, s.Alive())
	}
	s.Stop()
	s.Stop()
	if s.Alive() {
		t.Error("alive after Stop")
	}
	_, err = StartServer(Command{Name: "fake", Path: "/bin/sh", Args: []string{"-c", "echo cannot bind; exit 1"}, Listening: trunklineListening})
	if err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("a server that ends at once: %v, want its output", err)
	}
}

func TestListenerPID(t *testing.T) {
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip("needs ss of the package iproute2: ", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := func(addr string, want int) {
		t.Helper()
		if pid := ListenerPID(addr); pid != want {
			t.Errorf("process %d listens on %s, want %d", pid, addr, want)
		}
	}
	f(ln.Addr().String(), os.Getpid())
	f("localhost:80", 0) // is not looked up
	f("192.0.2.1:80", 0)
	gone := ln.Addr().String()
	ln.Close()
	f(gone, 0)
}
