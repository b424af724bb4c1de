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
			tape.Add(0, fmt.Appendf(nil, "request %d\n", i))
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
