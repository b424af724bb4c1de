package sock

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]); _ = unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func TestSend(t *testing.T) {
	a, b := pair(t)
	if n, err := Send(a, []byte("hello")); n != 5 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	var in [16]byte
	if n, _ := unix.Read(b, in[:]); string(in[:n]) != "hello" {
		t.Fatalf("the peer read %q", in[:n])
	}
}

// TestSendOfAFullSocketSaysSo fills the socket: the call returns what was taken, and never waits.
func TestSendOfAFullSocketSaysSo(t *testing.T) {
	a, _ := pair(t)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 1000 {
		n, err := Send(a, piece)
		if err != nil {
			if err != unix.EAGAIN || n != 0 {
				t.Fatalf("got %d, %v; want 0, EAGAIN", n, err)
			}
			return
		}
	}
	t.Fatal("the socket took a gigabyte that nobody reads")
}

// TestSendToAClosedPeerIsAnError, not a signal that ends the process.
func TestSendToAClosedPeerIsAnError(t *testing.T) {
	a, b := pair(t)
	if err := unix.Shutdown(b, unix.SHUT_RD); err != nil {
		t.Fatal(err)
	}
	if n, err := Send(a, []byte("x")); err != unix.EPIPE || n != 0 {
		t.Fatalf("got %d, %v; want 0, EPIPE", n, err)
	}
}

func TestSendDoesNotAllocate(t *testing.T) {
	a, b := pair(t)
	out, in := []byte("hello"), make([]byte, 16)
	if got := testing.AllocsPerRun(100, func() {
		_, _ = Send(a, out)
		_, _ = unix.Read(b, in)
	}); got != 0 {
		t.Fatalf("%v allocations, want 0", got)
	}
}
