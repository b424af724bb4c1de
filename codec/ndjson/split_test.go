package ndjson

import (
	"bytes"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	f := func(in string, limit int, wantLine string, wantUsed int, wantStatus Status, wantScanned int) {
		t.Helper()
		line, used, st, scanned := Split([]byte(in), 0, limit)
		if string(line) != wantLine || used != wantUsed || st != wantStatus || scanned != wantScanned {
			t.Errorf("Split(%q, limit %d) = %q, %d, %d, %d, want %q, %d, %d, %d",
				in, limit, line, used, st, scanned, wantLine, wantUsed, wantStatus, wantScanned)
		}
	}
	f("", 4, "", 0, More, 0)
	f("abc", 4, "", 0, More, 3)
	f("abc\n", 4, "abc", 4, Line, 0)
	f("abc\r\n", 4, "abc", 5, Line, 0)
	f("abc\r\r\n", 4, "abc\r", 6, Line, 0) // exactly one
	f("a\rc\n", 4, "a\rc", 4, Line, 0)
	f("\n", 4, "", 1, Line, 0)
	f("\r\n", 4, "", 2, Line, 0)
	f("\r\r\n", 4, "\r", 3, Line, 0)
	f("\n\n", 4, "", 1, Line, 0)
	f("a\nb\n", 4, "a", 2, Line, 0) // the first of several
	f(" \t\n", 4, " \t", 3, Line, 0)
	f("\x00\xff\n", 4, "\x00\xff", 3, Line, 0)

	f("abcd\n", 4, "abcd", 5, Line, 0) // at the limit
	f("abcd\r\n", 4, "abcd", 6, Line, 0)
	f("abcd", 4, "", 0, More, 4)
	f("abcd\r", 4, "", 0, More, 5)       // the end may follow
	f("abcde\n", 4, "", 5, TooLong, 0)   // limit + 1, whole
	f("abcde\r\n", 4, "", 6, TooLong, 0) // its end is left to Skip
	f("abcde", 4, "", 5, TooLong, 0)     // limit + 1, judged before its end
	f("abcd\rx", 4, "", 6, TooLong, 0)
	f("abcd\r\r\n", 4, "", 6, TooLong, 0)
	f("abcdefgh\nx\n", 4, "", 6, TooLong, 0) // no byte behind limit+2 is looked at

	f("\n", 0, "", 1, Line, 0)
	f("\r\n", 0, "", 2, Line, 0)
	f("a\n", 0, "", 1, TooLong, 0)
	f("a\n", -1, "", 1, TooLong, 0)
	f("a\n", int(^uint(0)>>1), "a", 2, Line, 0)
}

func TestSplitGoesOnWhereItStopped(t *testing.T) {
	f := func(from int, wantLine string, wantStatus Status) {
		t.Helper()
		line, _, st, _ := Split([]byte("a\nbc\r\n"), from, 9)
		if string(line) != wantLine || st != wantStatus {
			t.Errorf("from %d: %q, %d, want %q, %d", from, line, st, wantLine, wantStatus)
		}
	}
	f(0, "a", Line)
	f(1, "a", Line)
	f(2, "a\nbc", Line) // what was searched is not searched again
	f(6, "", More)
	f(-5, "a", Line)
	f(99, "", More)
}

func TestSkip(t *testing.T) {
	f := func(in string, wantUsed int, wantDone bool) {
		t.Helper()
		if used, done := Skip([]byte(in)); used != wantUsed || done != wantDone {
			t.Errorf("Skip(%q) = %d, %v, want %d, %v", in, used, done, wantUsed, wantDone)
		}
	}
	f("", 0, false)
	f("abc", 3, false)
	f("\n", 1, true)
	f("abc\r\ndef\n", 5, true)
}

func TestLast(t *testing.T) {
	f := func(in string, wantLine string, want Status) {
		t.Helper()
		if line, st := Last([]byte(in), 4); string(line) != wantLine || st != want {
			t.Errorf("Last(%q) = %q, %d, want %q, %d", in, line, st, wantLine, want)
		}
	}
	f("", "", More)
	f("a", "a", Line)
	f("\r", "\r", Line)
	f("abcd", "abcd", Line)
	f("abcde", "", TooLong)
	f("abcd\r", "", TooLong)
}

// A request line of toolhost §2.2 is 10 MiB long, and not a byte longer.
func TestSplitAtTheRequestLimit(t *testing.T) {
	const limit = 10 << 20
	f := func(length int, end string, want Status) {
		t.Helper()
		in := append(bytes.Repeat([]byte{'x'}, length), end+"next\n"...)
		line, used, st, _ := Split(in, 0, limit)
		if st != want || st == Line && (len(line) != length || used != length+len(end)) {
			t.Fatalf("%d bytes and %q: status %d, %d bytes, %d used", length, end, st, len(line), used)
		}
		if st == TooLong {
			skipped, done := Skip(in[used:])
			if used += skipped; !done {
				t.Fatalf("%d bytes and %q: the end is there and Skip does not find it", length, end)
			}
		}
		if next, _, _, _ := Split(in[used:], 0, limit); string(next) != "next" {
			t.Errorf("%d bytes and %q: then comes %q", length, end, next)
		}
	}
	f(limit, "\n", Line)
	f(limit, "\r\n", Line)
	f(limit+1, "\n", TooLong)
	f(limit+1, "\r\n", TooLong)
	f(2*limit, "\n", TooLong)
}

func TestSplitLendsWithoutCapacity(t *testing.T) {
	in := []byte("ab\r\ncd\n")
	line, _, _, _ := Split(in, 0, 9)
	if &line[0] != &in[0] || cap(line) != 2 {
		t.Error("a line must be the input's own bytes and must not reach into the next one")
	}
	if line, _ = Last(in[:3], 9); &line[0] != &in[0] || cap(line) != 3 {
		t.Error("so must the last line")
	}
}

// Each byte of a slow line is searched once: in holds no end in front of scanned, whatever is there
// now.
func TestSplitIsLinear(t *testing.T) {
	const limit = 1 << 16
	in, scanned := make([]byte, 0, limit), 0
	for len(in) < limit {
		in = append(in, strings.Repeat("x", 256)...)
		_, used, st, next := Split(in, scanned, limit)
		if st != More || used != 0 || next != len(in) {
			t.Fatalf("%d bytes: %d, %d used, %d scanned", len(in), st, used, next)
		}
		scanned = next
	}
}
