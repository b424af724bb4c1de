package owner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Limits of a Beat.
const (
	maxText     = 255
	beatVersion = 1
	released    = 1 // flag
	handed      = 2 // flag: a third text follows
	beatHeader  = 6 // bytes before the texts
)

// Beat is what an owner writes into the journal so that others know of it. As bytes it is version
// u8, flags u8, the term in milliseconds as u32 (big-endian), and two texts, or three with To, each
// with its length as u8.
type Beat struct {
	// Node is its id, and Addr where it takes what other nodes forward.
	Node, Addr string
	// Term is that of its lease, of which standbys may have another setting: whole milliseconds.
	Term time.Duration
	// Released: the owner has stopped, and another node may take over at once: To, if it is not "",
	// and the others a term later.
	Released bool
	To       string
}

var errBeat = errors.New("cannot parse the record of an owner")

// Encode returns b as bytes.
func (b *Beat) Encode() ([]byte, error) {
	ms := b.Term / time.Millisecond
	if ms < 0 || ms > math.MaxUint32 {
		return nil, fmt.Errorf("cannot use a lease of %s", b.Term)
	}
	out := binary.BigEndian.AppendUint32([]byte{beatVersion, 0}, uint32(ms))
	if b.Released {
		out[1] = released
	}
	if b.To != "" {
		out[1] |= handed
	}
	for _, text := range b.texts(out[1]) {
		if len(*text) > maxText {
			return nil, fmt.Errorf("cannot use %q: %d bytes, at most %d", *text, len(*text), maxText)
		}
		out = append(append(out, byte(len(*text))), *text...)
	}
	return out, nil
}

// texts are those that a record with these flags has.
func (b *Beat) texts(flags byte) []*string {
	if flags&handed != 0 {
		return []*string{&b.Node, &b.Addr, &b.To}
	}
	return []*string{&b.Node, &b.Addr}
}

// Decode accepts exactly what Encode makes.
func Decode(rec []byte) (b Beat, err error) {
	if len(rec) > 0 && rec[0] != beatVersion {
		return Beat{}, fmt.Errorf("%w: it has version %d, this program reads %d", errBeat, rec[0], beatVersion)
	}
	if len(rec) < beatHeader || rec[1] > released|handed {
		return Beat{}, errBeat
	}
	b.Released = rec[1]&released != 0
	b.Term = time.Duration(binary.BigEndian.Uint32(rec[2:])) * time.Millisecond
	rest := rec[beatHeader:]
	for _, text := range b.texts(rec[1]) {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return Beat{}, errBeat
		}
		n := 1 + int(rest[0])
		*text, rest = string(rest[1:n]), rest[n:]
	}
	if len(rest) > 0 || b.To == "" && rec[1]&handed != 0 {
		return Beat{}, errBeat
	}
	return b, nil
}
