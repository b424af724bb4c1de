package load

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

func TestListenerPID(t *testing.T) {
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip(err)
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
