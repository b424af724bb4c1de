package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// complaints is a test that notes the errors it gets.
type complaints struct {
	testing.TB
	said []string
}

func (c *complaints) Error(args ...any)            { c.said = append(c.said, fmt.Sprint(args...)) }
func (c *complaints) Errorf(f string, args ...any) { c.said = append(c.said, fmt.Sprintf(f, args...)) }

func TestScreen(t *testing.T) {
	f := func(sent, want string, row, col int) {
		t.Helper()
		for cut := range len(sent) { // in two pieces
			s := New(t, 10, 3, utf8.RuneCountInString)
			fmt.Fprint(s, sent[:cut])
			fmt.Fprint(s, sent[cut:])
			if at := s.State(); s.Shown() != want || at.Row != row || at.Col != col || at.Overflow > 0 {
				t.Errorf("%q cut at %d: %q, %+v", sent, cut, s.Shown(), at)
			}
		}
	}
	f("ab", "ab\n", 0, 2)
	f("a\r\n█b", "a\n█b\n", 1, 2)
	f("abc\rX", "Xbc\n", 0, 1)
	f("abc\r\x1b[K", "\n", 0, 0)
	f("a\r\nbcd\x1b[A!", "a  !\nbcd\n", 0, 4)
	f("a\r\nb\r\nc\x1b[2A\x1b[J", "a\n", 0, 1)
	f("1\r\n2\r\n3\r\n4", "2\n3\n4\n", 3, 1)
	f("1\r\n2\r\n3\r\n4\x1b[9AX", "2X\n3\n4\n", 1, 2) // the cursor stops at the top
	f("\x1b[31mred\x1b[0m", "red\n", 0, 3)
}

func TestState(t *testing.T) {
	s := New(t, 4, 2, utf8.RuneCountInString)
	fmt.Fprint(s, "\x1b[?25l\x1b[1mabcdef")
	if at := s.State(); at.Sane || at.Overflow != 2 || at.Attributes != 1 || at.Frames != 1 {
		t.Errorf("%+v", at)
	}
	fmt.Fprint(s, "\x1b[?25h\x1b[?7l\x1b[?2026h")
	if s.State().Sane {
		t.Error("lines do not wrap")
	}
	fmt.Fprint(s, "\x1b[?7h")
	if !s.State().Sane {
		t.Error("it is as it was found")
	}
	fmt.Fprint(s, "\x1b[")
	if s.State().Sane {
		t.Error("a command has begun")
	}
}

func TestResize(t *testing.T) {
	f := func(cut bool, want string) {
		t.Helper()
		s := New(t, 10, 9, utf8.RuneCountInString)
		if cut {
			s.CutLongLines()
		}
		fmt.Fprint(s, "abcdefg\r\nh")
		s.Resize(3, 9)
		if s.Shown() != want {
			t.Errorf("cut %v: %q", cut, s.Shown())
		}
		fmt.Fprint(s, "!")
		if want = strings.Replace(want, "h", "h!", 1); s.Shown() != want {
			t.Errorf("cut %v: %q, want %q", cut, s.Shown(), want)
		}
		s.Resize(3, 1)
		if s.Shown() != "h!\n" || s.All() != want {
			t.Errorf("%q of %q", s.Shown(), s.All())
		}
	}
	f(false, "abc\ndef\ng\nh\n")
	f(true, "abc\nh\n")
}

func TestComplaints(t *testing.T) {
	f := func(sent, want string) {
		t.Helper()
		c := &complaints{TB: t}
		fmt.Fprint(New(c, 10, 3, utf8.RuneCountInString), sent)
		if got := strings.Join(c.said, "|"); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
	f("\x1b[2J", "unknown command")
	f("\x1b[3n", "unknown command")
	f("a\x07", "control character")
	f("a\r\x1b[J", "erased from its first cell")
}

// TestManyWriters: what is shown, reported and written at the same time is whole.
func TestManyWriters(t *testing.T) {
	s := New(t, 10, 3, utf8.RuneCountInString)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				fmt.Fprint(s, "\x1b[31mab\r\n\x1b[0m")
				s.Resize(s.Size())
				if at := s.State(); at.Col != 0 || at.Rows != at.Row+1 {
					t.Errorf("%+v", at)
				}
			}
		})
	}
	writers.Wait()
	if s.Shown() != "ab\nab\n" || strings.Count(s.All(), "ab\n") != 400 {
		t.Errorf("%q", s.Shown())
	}
}

func TestSize(t *testing.T) {
	s := New(t, 10, 3, utf8.RuneCountInString)
	s.Resize(7, 5)
	if columns, rows := s.Size(); columns != 7 || rows != 5 {
		t.Errorf("%d by %d", columns, rows)
	}
}

// TestWholeScreen: what a program paints that uses the whole screen, and what is there after it.
func TestWholeScreen(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		s := New(t, 10, 4, utf8.RuneCountInString)
		_, _ = io.WriteString(s, "before\r\n\x1b[?1049h\x1b]0;title\a\x1b[?2004h")
		_, _ = io.WriteString(s, text)
		if got := s.Shown(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if s.State().Sane {
			t.Error("it is as it was")
		}
		_, _ = io.WriteString(s, "\x1b[?1049l")
		if got := s.State(); s.Shown() != "before\n" || !got.Sane || got.Row != 1 {
			t.Errorf("%q: %q is left, %+v", text, s.Shown(), got)
		}
	}
	f("a\x1b[2;3Hb\x1b[4dc\x1b[1Gd", "a\n  b\n\nd  c\n")
	f("one\r\ntwo\r\nthree\x1b[2;1H\x1b[L\x1bMx", "xne\n\ntwo\nthree\n")
	f("one\r\ntwo\r\nthree\x1b[1;1H\x1b[M", "two\nthree\n")
	f("one\r\ntwo\r\nthree\x1b[2;3r\x1b[S", "one\nthree\n")
	f("abcdef\x1b[3D\x1b[X\x1b[2P\x1b[@", "abc f\n")
	f("abcdef\x1b[2G\x1b[1K\x1b[2C\tx", "  cdef  x\n")
	f("abcdef\x1b[2J\x1b[Hx\x1b[K\by", "y\n")
}
