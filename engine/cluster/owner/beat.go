package owner

import (
	"errors"
	"fmt"
)

// Limits of a Beat.
const (
	maxText     = 255
	beatVersion = 1
	released    = 1 // flag
)

// Beat is what an owner writes into the journal so that others know of it. As bytes it is version
// u8, flags u8, and two texts, each with its length as u8.
type Beat struct {
	// Node is its id, and Addr where it takes what other nodes forward.
	Node, Addr string
	// Released: the owner has stopped, and another node may take over at once.
	Released bool
}

var errBeat = errors.New("cannot parse the record of an owner")

// Encode returns b as bytes.
func (b *Beat) Encode() ([]byte, error) {
	out := []byte{beatVersion, 0}
	if b.Released {
		out[1] = released
	}
	for _, text := range []string{b.Node, b.Addr} {
		if len(text) > maxText {
			return nil, fmt.Errorf("cannot use %q: %d bytes, at most %d", text, len(text), maxText)
		}
		out = append(append(out, byte(len(text))), text...)
	}
	return out, nil
}

// Decode accepts exactly what Encode makes.
func Decode(rec []byte) (b Beat, err error) {
	if len(rec) < 2 || rec[0] != beatVersion || rec[1] > released {
		return Beat{}, errBeat
	}
	b.Released = rec[1] == released
	rest := rec[2:]
	for _, text := range []*string{&b.Node, &b.Addr} {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return Beat{}, errBeat
		}
		n := 1 + int(rest[0])
		*text, rest = string(rest[1:n]), rest[n:]
	}
	if len(rest) > 0 {
		return Beat{}, errBeat
	}
	return b, nil
}
