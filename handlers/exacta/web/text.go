package web

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// text turns one text message, which comes in pieces, into a line (exacta §2.2). The zero text is
// ready for a message.
type text struct {
	part [utf8.UTFMax]byte // a character that is not complete
	n    int
	some bool // there was something other than white space
}

// take changes the next piece in place. It reports false if the message is not UTF-8. It does not
// allocate.
func (t *text) take(b []byte) bool {
	for i, c := range b {
		switch c {
		case '\n':
			b[i] = '\r'
		case ' ', '\t', '\r':
		default:
			t.some = true
		}
	}
	for t.n > 0 && len(b) > 0 {
		t.part[t.n] = b[0]
		t.n++
		b = b[1:]
		if utf8.FullRune(t.part[:t.n]) {
			if !utf8.Valid(t.part[:t.n]) {
				return false
			}
			t.n = 0
		}
	}
	whole := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	if !utf8.Valid(b[:whole]) {
		return false
	}
	t.n += copy(t.part[t.n:], b[whole:])
	return true
}

// Ends of lines.
const (
	lineEnd = "\n"
	// blankEnd ends a message without anything: a line of blanks would be ignored (exacta §2.1),
	// while such a message is broken JSON.
	blankEnd = "\r\r\n"
)

// end ends the message and returns what ends its line. It reports false if the message is not
// UTF-8.
func (t *text) end() (end string, ok bool) {
	end, ok = lineEnd, t.n == 0
	if !t.some {
		end = blankEnd
	}
	*t = text{}
	return end, ok
}

// The first byte of a frame (RFC 6455 §5.2).
const (
	opContinuation = 0x0
	opText         = 0x1
	opPing         = 0x9
	opPong         = 0xa
	fin            = 0x80
)

// appendFrame appends a frame without a mask. It does not allocate where out has room.
func appendFrame(out []byte, first byte, payload []byte) []byte {
	out = append(out, first)
	switch n := len(payload); {
	case n < 126:
		out = append(out, byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 127), uint64(n))
	}
	return append(out, payload...)
}

// appendLines appends lines as messages. open reports that a message has begun and is not ended, at
// the beginning and afterwards.
func appendLines(out, lines []byte, open bool) (_ []byte, openAfter bool) {
	for len(lines) > 0 {
		first := byte(opText)
		if open {
			first = opContinuation
		}
		line, rest, ends := bytes.Cut(lines, []byte(lineEnd))
		if ends {
			first |= fin
		}
		out = appendFrame(out, first, line)
		lines, open = rest, !ends
	}
	return out, open
}
