package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLineReplies(t *testing.T) {
	f := func(in string, size, used, lines int, problem string) {
		t.Helper()
		u, l, _, err := Lines(&Config{Reply: size}, []byte(in))
		if u != used || l != lines || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: used %d, %d lines, %v; want %d, %d, %q", in, u, l, err, used, lines, problem)
		}
	}
	f("", 3, 0, 0, "")
	f("ab", 3, 0, 0, "")
	f("ab\n", 3, 3, 1, "")
	f("ab\ncd\ne", 3, 6, 2, "")
	f("\n\n", 1, 2, 2, "")
	f("ab\nc\nd", 3, 3, 1, `cannot take "c"`)
	f("abc\n", 3, 0, 0, `cannot take "abc"`)
}

func TestGoodReplies(t *testing.T) {
	f := func(in, greeted string, used, lines int, problem string) {
		t.Helper()
		u, l, events, err := Lines(&Config{Good: "ok", Greeted: greeted, Event: "event"}, []byte(in))
		if u != used || l != lines || events != strings.Count(in[:used], "event ") || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: used %d, %d lines, %v; want %d, %d, %q", in, u, l, err, used, lines, problem)
		}
	}
	f("", "", 0, 0, "")
	f("ok", "", 0, 0, "")
	f("ok\nok and more\nok", "", 15, 2, "")
	f("hi you\nok\n", "hi", 10, 1, "")
	f("event 1\nok\nevent 2\nevent", "", 19, 1, "")
	f("ok\nhi\n", "", 3, 1, `cannot take "hi": a reply of 0 bytes begins with ok`)
	f("no\n", "hi", 0, 0, `cannot take "no"`)
	f("\n", "hi", 0, 0, `cannot take ""`)
	f("o\n", "", 0, 0, `cannot take "o"`)
}

// TestLinesAreExchanged has a server, over a socket or over pipes, answer each line with one of
// five bytes, or, to every tenth and to what is out of turn, something else.
func TestLinesAreExchanged(t *testing.T) {
	serve := func(in io.Reader, out io.Writer, greeting string, odd bool) {
		if greeting != "" {
			_, _ = io.WriteString(out, greeting+"!\n")
		}
		for n, in := 0, bufio.NewScanner(in); in.Scan(); n++ {
			reply := "good\n"
			if odd && n%10 == 9 || in.Text() != fmt.Sprint("request ", n) {
				reply = "an error\n"
			}
			_, _ = io.WriteString(out, reply)
		}
	}
	f := func(cfg Config, pipes, odd bool) error {
		if pipes {
			request, out, outErr := os.Pipe()
			in, reply, inErr := os.Pipe()
			if err := errors.Join(outErr, inErr); err != nil {
				t.Fatal(err)
			}
			cfg.In, cfg.Out = in, out
			defer in.Close()
			defer reply.Close()
			defer out.Close()
			go serve(request, reply, cfg.Greeted, odd)
		} else {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				serve(c, c, cfg.Greeted, odd)
			}()
			cfg.Addr = ln.Addr().String()
		}
		tape := new(Tape)
		for i := range 50 {
			tape.Add(fmt.Appendf(nil, "request %d\n", i))
		}
		cfg.Tapes, cfg.Depth, cfg.Once = []*Tape{tape}, 4, true
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Wait()
		if err == nil && s.Replies() != 50 {
			t.Errorf("%d replies", s.Replies())
		}
		return err
	}
	for _, cfg := range []Config{{Protocol: Lines, Reply: 5}, {Protocol: Lines, Good: "go"}, {Protocol: Lines, Good: "go", Greeted: "hi"}} {
		for _, pipes := range []bool{false, true} {
			if err := f(cfg, pipes, false); err != nil {
				t.Error(err)
			}
			if err := f(cfg, pipes, true); err == nil {
				t.Errorf("%q: an odd reply was taken", cfg.Good)
			}
		}
	}
	if _, _, _, err := Lines(&Config{}, []byte("a\n")); err == nil {
		t.Error("replies of which nothing is known were taken")
	}
}

func TestResponsesOfAClosedLoop(t *testing.T) {
	f := func(in string, used, replies int, problem string) {
		t.Helper()
		u, n, _, err := HTTP(nil, []byte(in))
		if u != used || n != replies || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %d bytes, %d replies, %v; want %d, %d, %q", in, u, n, err, used, replies, problem)
		}
	}
	const one = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	f(one, len(one), 1, "")
	f(one+one+"HTTP", 2*len(one), 2, "")
	f(one[:len(one)-1], 0, 0, "")
	f(one[:20], 0, 0, "")
	f("", 0, 0, "")
	f("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 44, 1, "")
	f(one+"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}", len(one), 1, "503")
	f("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0, 0, "close")
	f("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0, 0, "malformed")
}

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
