package sock

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tcpPair returns two connected TCP sockets: a blocking descriptor's end for us, and its peer.
func tcpPair(t *testing.T) (fd int, peer net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if peer, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	f, err := nc.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(); _ = peer.Close() })
	return int(f.Fd()), peer
}

// fill has the socket take bytes until it takes no more, and returns how many.
func fill(t *testing.T, fd int) (total int) {
	t.Helper()
	piece := make([]byte, 64<<10)
	for {
		n, err := Send(fd, piece)
		if total += n; err == unix.EAGAIN {
			return total
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestUndeliveredIsWhatThePeerLacks: a peer that does not read lacks what its system has no room
// for; once it has read, it lacks nothing, whether or not its acknowledgement of the FIN has come.
func TestUndeliveredIsWhatThePeerLacks(t *testing.T) {
	fd, peer := tcpPair(t)
	total := fill(t, fd)
	if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	n, ok := Undelivered(fd)
	if !ok || n <= 0 || n >= total {
		t.Fatalf("got %d of %d, %v", n, total, ok)
	}
	in, got := make([]byte, 1<<20), 0
	for {
		k, err := peer.Read(in)
		if got += k; err != nil {
			break
		}
	}
	// What it read last may not be acknowledged yet.
	for start := time.Now(); n > 0 && time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		n, ok = Undelivered(fd)
	}
	if got != total || n != 0 || !ok {
		t.Fatalf("the peer read %d of %d, and lacks %d, %v", got, total, n, ok)
	}
}

// TestAUnixSocketDeliversAtOnce, but shows what was not read.
func TestAUnixSocketDeliversAtOnce(t *testing.T) {
	a, b := pair(t)
	fill(t, a)
	if n, ok := Undelivered(a); n != 0 || !ok {
		t.Errorf("%d undelivered, %v", n, ok)
	}
	before, _ := Queued(a)
	in := make([]byte, 1<<20)
	_, _ = unix.Read(b, in)
	if after, ok := Queued(a); !ok || after >= before {
		t.Errorf("%d queued, %d before the peer read", after, before)
	}
}

func TestNoSocketTellsNothing(t *testing.T) {
	if n, ok := Undelivered(-1); n != 0 || ok {
		t.Errorf("%d undelivered, %v", n, ok)
	}
	if _, ok := Queued(-1); ok {
		t.Error("queued")
	}
}

func TestAskingDoesNotAllocate(t *testing.T) {
	fd, _ := tcpPair(t)
	if n := testing.AllocsPerRun(100, func() { _, _ = Undelivered(fd); _, _ = Queued(fd) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
