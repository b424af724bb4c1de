package linktest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The commands; answers carry the command they answer. End closes a stream.
const (
	Echo      = 'e'
	big       = 'b'
	block     = 'h'
	pending   = 'q'
	Stream    = 's'
	Open      = 'o'
	panicFeed = 'p'
	panicPump = 'P'
	bye       = 'c'
	end       = 'z'
)

// HeaderBytes is the length prefix.
const HeaderBytes = 4

// Append appends one frame to dst.
func Append(dst []byte, cmd byte, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+len(payload)))
	dst = append(dst, cmd)
	return append(dst, payload...)
}

// Frame returns one frame.
func Frame(cmd byte, payload string) []byte { return Append(nil, cmd, []byte(payload)) }

// Sized returns one frame whose payload is the given numbers.
func Sized(cmd byte, n ...uint32) []byte {
	var p []byte
	for _, v := range n {
		p = binary.BigEndian.AppendUint32(p, v)
	}
	return Append(nil, cmd, p)
}

// Read reads one frame.
func Read(r io.Reader) (cmd byte, payload []byte, err error) {
	var h [HeaderBytes]byte
	if _, err = io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(h[:]))
	if _, err = io.ReadFull(r, b); err != nil {
		return 0, nil, err
	}
	return b[0], b[1:], nil
}

// Pattern appends n bytes that show their place, so that lost, repeated and reordered bytes show.
func Pattern(dst []byte, n int) []byte {
	for i := range n {
		dst = append(dst, byte(i*7+i>>8))
	}
	return dst
}

// CheckPattern reports the first byte of p that Pattern would not have put there.
func CheckPattern(p []byte) error {
	for i, b := range p {
		if b != byte(i*7+i>>8) {
			return fmt.Errorf("byte %d of %d is %#x, want %#x", i, len(p), b, byte(i*7+i>>8))
		}
	}
	return nil
}
