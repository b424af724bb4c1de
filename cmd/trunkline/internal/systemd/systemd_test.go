package systemd

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestASupervisorThatDoesNotRead holds nothing up, and neither does one that is gone.
func TestASupervisorThatDoesNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	t.Setenv("NOTIFY_SOCKET", name)
	Notify("READY=1")
	reader, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	Notify("READY=1")
	b := make([]byte, 16)
	if n, err := reader.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for err == nil { // until the queue is full
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, err = c.Write([]byte("x"))
	}
	if !os.IsTimeout(err) {
		t.Fatal(err)
	}
	Notify("READY=1")
}
