package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestFramingOfPeers(t *testing.T) {
	f := func(of Protocol, in string, used, replies int, failure string) {
		t.Helper()
		n, r, _, err := of(nil, []byte(in))
		if n != used || r != replies || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("%q: %d bytes, %d replies, %v; want %d, %d, %q", in, n, r, err, used, replies, failure)
		}
	}
	const one = "MSG _INBOX.3 1 4\r\na\r\nb\r\n"
	f(NATS, "", 0, 0, "")
	f(NATS, one, len(one), 1, "")
	f(NATS, one+one+one[:len(one)-1], 2*len(one), 2, "")
	f(NATS, "INFO {\"max\":1}\r\nPING\r\n"+one, 16+6+len(one), 1, "")
	f(NATS, "MSG _INBOX.3 1 x\r\n", 0, 0, "MSG")
	f(NATS, "MSG _INBOX.3 1 99999999999\r\n", 0, 0, "MSG")
	f(NATS, "-ERR 'Authorization Violation'\r\n", 0, 0, "Authorization")
	f(NATS, "+OK\r\n", 0, 0, "+OK")

	f(RESP, "+OK\r\n+OK\r", 5, 1, "")
	f(RESP, "$3\r\nabc\r\n$0\r\n\r\n+", 15, 2, "")
	f(RESP, "$3\r\nabc\r", 0, 0, "")
	f(RESP, "$", 0, 0, "")
	f(RESP, "+OK\r\n$-1\r\n", 5, 1, "-1")
	f(RESP, "$\r\n", 0, 0, `the reply "$"`)
	f(RESP, "$99999999999999999999\r\n", 0, 0, "9999")
	f(RESP, "-ERR no\r\n", 0, 0, `"-ERR no"`)
	if got := string(AppendCommand(nil, "GET", "k1")); got != "*2\r\n$3\r\nGET\r\n$2\r\nk1\r\n" {
		t.Errorf("command %q", got)
	}
}

// fakeNATS answers one connection: it greets, wants a greeting, and answers every request with a
// message to its inbox.
func fakeNATS(c net.Conn, size int) error {
	fmt.Fprint(c, "INFO {}\r\nPING\r\n")
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil
		}
		var subject, inbox string
		var n int
		switch {
		case strings.HasPrefix(line, "CONNECT {"), line == "SUB _INBOX.0 1\r\n":
			continue
		default:
			if _, err := fmt.Sscanf(line, "PUB %s %s %d\r\n", &subject, &inbox, &n); err != nil || subject != "svc" || inbox != "_INBOX.0" {
				return fmt.Errorf("the load says %q", line)
			}
			if _, err := io.CopyN(io.Discard, in, int64(n+2)); err != nil {
				return nil
			}
			fmt.Fprintf(c, "MSG %s 1 %d\r\n%s\r\n", inbox, size, strings.Repeat("v", size))
		}
	}
}

func TestNATS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	said := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			said <- err
			return
		}
		said <- fakeNATS(c, 300)
	}()
	tape := TapeOf(fmt.Appendf(nil, "PUB svc _INBOX.0 100\r\n%s\r\n", strings.Repeat("p", 100)))
	tape.Hello = []byte("CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"load\"}\r\nSUB _INBOX.0 1\r\n")
	s, h, err := runFor(t, Config{Addr: ln.Addr().String(), Protocol: NATS, Tapes: []*Tape{tape}, Depth: 8}, 100)
	if err != nil || s.Replies() < 100 || h.Total() == 0 {
		t.Errorf("%d replies, %d latencies, %v", s.Replies(), h.Total(), err)
	}
	select {
	case err := <-said:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the connection was not closed")
	}
}
