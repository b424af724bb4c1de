package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func TestTake(t *testing.T) {
	f := func(in, out string, used int, stands bool, failure string) {
		t.Helper()
		r := newResponder(nil, 3)
		n, s, err := r.take([]byte(in))
		if string(r.out) != out || n != used || s != stands || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("take(%q) = %q, %d, %v, %v; want %q, %d, %v, %q", in, r.out, n, s, err, out, used, stands, failure)
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
	f("MSG bench.get 1 2\r\nab\r\n", "", 0, false, "no reply subject")
	f("MSG bench.get 1 in.7 x\r\n", "", 0, false, "size")
	f("MSG bench.get 1 in.7 -1\r\n", "", 0, false, "size")
	f("-ERR 'Slow Consumer'\r\n", "", 0, false, "Slow Consumer")
}

func TestHostPort(t *testing.T) {
	f := func(addr, host string, port int, ok bool) {
		t.Helper()
		h, p, err := hostPort(addr)
		if h != host || p != port || (err == nil) != ok {
			t.Errorf("hostPort(%q) = %q, %d, %v", addr, h, p, err)
		}
	}
	f("127.0.0.1:4222", "127.0.0.1", 4222, true)
	f("127.0.0.1:0", "127.0.0.1", server.RANDOM_PORT, true)
	f("127.0.0.1", "", 0, false)
	f("127.0.0.1:http", "", 0, false)
}

// TestRequestReply asks a real server many times at once and takes as many replies.
func TestRequestReply(t *testing.T) {
	s, err := start("127.0.0.1", server.RANDOM_PORT)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	if err := respond(s, 5, func(error) {}); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr().String())
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
	s, err := start("127.0.0.1", server.RANDOM_PORT)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	if err := respond(s, 5, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "cannot read requests") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the responder goes on without a server")
	}
}
