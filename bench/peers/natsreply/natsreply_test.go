package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	f := func(in, out string, used int, stands bool, failure string) {
		t.Helper()
		got, n, s, err := take(nil, []byte(in), []byte(" 3\r\nvvv\r\n"))
		if string(got) != out || n != used || s != stands || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("take(%q) = %q, %d, %v, %v; want %q, %d, %v, %q", in, got, n, s, err, out, used, stands, failure)
		}
	}
	one, answer := "MSG bench.get 1 in.7 2\r\nab\r\n", "PUB in.7 3\r\nvvv\r\n"
	f("", "", 0, false, "")
	f(one, answer, len(one), false, "")
	f(one+one[:len(one)-1], answer, len(one), false, "")
	f(one[:10], "", 0, false, "")
	f("INFO {}\r\nPONG\r\n"+one+one, answer+answer, 9+6+2*len(one), true, "")
	f("MSG bench.get 1 in.7 4\r\n\r\n\r\n\r\n", "PUB in.7 3\r\nvvv\r\n", 24+6, false, "") // a payload of line ends
	f("PING\r\n", "PONG\r\n", 6, false, "")
	f("MSG bench.get 1 2\r\nab\r\n", "", 0, false, "want a reply subject")
	f("MSG bench.get 1 in.7 x\r\n", "", 0, false, "size")
	f("MSG bench.get 1 in.7 -1\r\n", "", 0, false, "size")
	f("-ERR 'Slow Consumer'\r\n", "", 0, false, "Slow Consumer")
}

// running is a server with its responder, whose end comes on the channel.
func running(t *testing.T) (addr string, shutdown func(), ended <-chan error) {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	ready, end := make(chan struct{}), make(chan error, 1)
	go func() { end <- respond(s.Addr().String(), 5, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-end:
		t.Fatal(err)
	}
	return s.Addr().String(), s.Shutdown, end
}

// TestRequestReply asks a real server many times at once and takes as many replies.
func TestRequestReply(t *testing.T) {
	addr, _, _ := running(t)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	go io.WriteString(c, "CONNECT {\"verbose\":false}\r\nSUB in.1 9\r\n"+strings.Repeat("PUB bench.get in.1 2\r\nab\r\n", n))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "INFO ") {
		t.Fatalf("greeted with %q, %v", line, err)
	}
	want := "MSG in.1 9 5\r\nvvvvv\r\n"
	got := make([]byte, len(want)*n)
	if _, err := io.ReadFull(in, got); err != nil || string(got) != strings.Repeat(want, n) {
		t.Errorf("%q…, %v", got[:100], err)
	}
}

// TestAServerThatEnds is reported to the starter of the responder.
func TestAServerThatEnds(t *testing.T) {
	_, shutdown, ended := running(t)
	shutdown()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "cannot read requests") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the responder goes on without a server")
	}
}
