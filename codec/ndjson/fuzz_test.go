package ndjson

import (
	"bytes"
	"slices"
	"testing"
)

// tooLongLine stands in a list of lines for one that was above the limit; it cannot be a line.
const tooLongLine = "\n"

// reference is what the lines of a whole stream are, written as simply as possible.
func reference(stream []byte, limit int) (lines []string) {
	parts := bytes.Split(stream, []byte{'\n'})
	add := func(line []byte) {
		if len(line) > limit {
			line = []byte(tooLongLine)
		}
		lines = append(lines, string(line))
	}
	for _, part := range parts[:len(parts)-1] {
		add(bytes.TrimSuffix(part, []byte{'\r'}))
	}
	if last := parts[len(parts)-1]; len(last) > 0 {
		add(last)
	}
	return lines
}

// reader collects the lines of a stream that comes in pieces, as a session does.
type reader struct {
	t        *testing.T
	limit    int
	buf      []byte // what was not used yet
	scanned  int
	skipping bool
	lines    []string
}

func (r *reader) feed(piece []byte) {
	r.buf = append(r.buf, piece...)
	for {
		if r.skipping {
			used, done := Skip(r.buf)
			r.buf, r.skipping = r.buf[used:], !done
			if !done {
				return
			}
		}
		line, used, st, scanned := Split(r.buf, r.scanned, r.limit)
		r.scanned = scanned
		switch st {
		case More:
			if used != 0 || scanned != len(r.buf) || len(r.buf) > r.limit+1 {
				r.t.Fatalf("more: %d used, %d scanned, %d held under limit %d", used, scanned, len(r.buf), r.limit)
			}
			return
		case Line:
			r.lines = append(r.lines, string(line))
		case TooLong:
			r.lines = append(r.lines, tooLongLine)
			r.skipping = true
		}
		r.buf = r.buf[used:]
	}
}

func (r *reader) end() {
	if r.skipping {
		return
	}
	switch line, st := Last(r.buf, r.limit); st {
	case Line:
		r.lines = append(r.lines, string(line))
	case TooLong:
		r.lines = append(r.lines, tooLongLine)
	}
}

// Whatever the pieces, the lines are those of the whole stream. The bytes of cuts are the lengths
// of the pieces in turn.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\r\n\r\n\n"), []byte{1}, uint8(7))
	f.Add([]byte("abcd\r\nabcde\r\nabcd\r"), []byte{5, 1}, uint8(4))
	f.Add([]byte("abcdefghi\nx\r\r\n"), []byte{0, 2, 9}, uint8(3))
	f.Add([]byte("\xe4\xb8\x96\n\xff\n \n"), []byte{2}, uint8(0))
	f.Fuzz(func(t *testing.T, stream, cuts []byte, limit uint8) {
		want := reference(stream, int(limit))
		r := reader{t: t, limit: int(limit)}
		for i, rest := 0, stream; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, int(cuts[i%len(cuts)])+i/len(cuts)) // grows, so that zeros do not loop
			}
			r.feed(rest[:n])
			rest = rest[n:]
		}
		r.end()
		if !slices.Equal(r.lines, want) {
			t.Fatalf("%q, limit %d, cut by %v:\n got %q\nwant %q", stream, limit, cuts, r.lines, want)
		}
	})
}
