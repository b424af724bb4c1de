package load

import (
	"net"
	"os"
	"testing"
)

func TestListenerPID(t *testing.T) {
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

func TestListenerInode(t *testing.T) {
	table := []byte(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0050 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1 0 100 0 0 10 0
   2: 00000000:01BB 00000000:0000 0A
`)
	f := func(port uint16, want string) {
		t.Helper()
		if got := listenerInode(table, port); got != want {
			t.Errorf("port %d is inode %q, want %q", port, got, want)
		}
	}
	f(0x1F90, "22")
	f(0x50, "")  // a connection, not a listener
	f(443, "")   // a torn line
	f(12345, "") // no one
}
