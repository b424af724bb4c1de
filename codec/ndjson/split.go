// Package ndjson splits a stream of newline-delimited JSON into lines without copying, under a
// limit of the line's length (toolhost §2.2). It knows nothing of JSON: a line is any bytes.
//
//	line = *( any byte but LF ) [ CR ] LF
//
// A line ends with "\n"; exactly one "\r" before that is dropped, any other "\r" belongs to the
// line. The limit counts what is left. However the stream is cut into pieces, the lines are the
// same. How to read one, in being what the caller has not used yet:
//
//	skipping = false, scanned = 0
//	loop: if skipping { used, done = Skip(in); drop used; skipping = !done }
//	      else { line, used, st, scanned = Split(in, scanned, limit); handle st; drop used }
//
//	More     read on; nothing was used
//	Line     handle the line, then drop used bytes
//	TooLong  answer, drop used bytes, skipping = true
//
// At the end of the stream Last turns what is left into a line or not.
package ndjson

import (
	"bytes"
)

// Status is what Split found at the front of its input.
type Status uint8

// The answers of Split and Last.
const (
	More    Status = iota // no whole line yet, and not too long so far; of Last: nothing is left
	Line                  // a line, perhaps an empty one
	TooLong               // a line longer than the limit: Skip takes what is left of it
)

// Split looks for a line at the front of in. line is the line without its end, a part of in. limit
// is the greatest length of line, in bytes.
//
// With Line used is what the line takes with its end. With More used is 0; pass scanned as from
// once more bytes are behind the same ones, so that no byte is searched twice. In other cases from
// and scanned are 0. With TooLong used bytes can be dropped at once and Skip must take the rest of
// the line, even if its end is in in already; never more than limit+1 bytes must be held. Split
// does not allocate.
func Split(in []byte, from, limit int) (line []byte, used int, st Status, scanned int) {
	limit = max(limit, 0)
	head := in
	if len(in)-2 > limit {
		head = in[:limit+2] // a line of that length with "\r\n"
	}
	from = min(max(from, 0), len(head))
	end := bytes.IndexByte(head[from:], '\n')
	if end < 0 {
		if tooLong(head, limit) {
			return nil, len(head), TooLong, 0
		}
		return nil, 0, More, len(head)
	}
	end += from
	used = end + 1
	if end > 0 && in[end-1] == '\r' {
		end--
	}
	if end > limit {
		return nil, used - 1, TooLong, 0
	}
	return in[:end:end], used, Line, 0
}

// tooLong reports whether the beginning of a line is above the limit whatever follows: the byte
// behind the limit may be the "\r" of the end.
func tooLong(head []byte, limit int) bool {
	return len(head) > limit+1 || len(head) == limit+1 && head[limit] != '\r'
}

// Skip drops the rest of a line that was too long: used is how many bytes of in to drop, done
// whether the line's end was among them. It does not allocate.
func Skip(in []byte) (used int, done bool) {
	if end := bytes.IndexByte(in, '\n'); end >= 0 {
		return end + 1, true
	}
	return len(in), false
}

// Last returns what Split has left when the stream ended: the last line needs no end (toolhost
// §2.2). More means that there is none. A "\r" is part of that line, as no "\n" follows. It does
// not allocate.
func Last(in []byte, limit int) (line []byte, st Status) {
	switch {
	case len(in) == 0:
		return nil, More
	case len(in) > max(limit, 0):
		return nil, TooLong
	}
	return in[:len(in):len(in)], Line
}
