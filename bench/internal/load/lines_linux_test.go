package load

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestSplitLines(t *testing.T) {
	f := func(in string, size, used, lines int, problem string) {
		t.Helper()
		u, l, err := SplitLines([]byte(in), size)
		if u != used || l != lines || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: used %d, %d lines, %v; want %d, %d, %q", in, u, l, err, used, lines, problem)
		}
	}
	f("", 3, 0, 0, "")
	f("ab", 3, 0, 0, "")
	f("ab\n", 3, 3, 1, "")
	f("ab\ncd\ne", 3, 6, 2, "")
	f("\n\n", 1, 2, 2, "")
	f("ab\nc\nd", 3, 3, 1, `cannot take "c\nd"`)
	f("abc\n", 3, 0, 0, `cannot take "abc"`)
}

// TestLinesAreExchanged has a server answer each line with one of five bytes, or, to every tenth,
// something else.
func TestLinesAreExchanged(t *testing.T) {
	f := func(odd bool) error {
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
			for n, in := 1, bufio.NewScanner(c); in.Scan(); n++ {
				reply := "good\n"
				if odd && n%10 == 0 {
					reply = "an error\n"
				}
				_, _ = c.Write([]byte(reply))
			}
		}()
		tape := new(Tape)
		for i := range 50 {
			tape.Add(0, fmt.Appendf(nil, "request %d\n", i))
		}
		s, err := Start(Config{Addr: ln.Addr().String(), Protocol: Lines, Reply: 5, Tapes: []*Tape{tape}, Depth: 4, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Wait()
		if err == nil && s.Replies() != 50 {
			t.Errorf("%d replies", s.Replies())
		}
		return err
	}
	if err := f(false); err != nil {
		t.Error(err)
	}
	if err := f(true); err == nil {
		t.Error("an odd reply was taken")
	}
	if _, err := Start(Config{Addr: "127.0.0.1:1", Protocol: Lines, Tapes: []*Tape{new(Tape)}, Depth: 1}); err == nil {
		t.Error("replies of no length were taken")
	}
}
