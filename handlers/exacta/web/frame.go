package web

import (
	"bytes"
	"encoding/binary"
)

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
