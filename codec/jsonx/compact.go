package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// lows are the bits below the mark of each byte.
const lows = ones * 0x7f

// Compact removes the space between the tokens of checked text in place and returns the front of b.
// Literals and strings keep their spelling. It does not allocate.
//
// It does not read tokens: quotes determine which bytes are in strings.
func Compact(b []byte) []byte {
	w, i, quoted := 0, 0, uint64(0) // quoted: all bits set inside a string
	for len(b)-i >= 8 {
		word := binary.LittleEndian.Uint64(b[i:])
		quotes, slashes := markByte(word, '"'), markByte(word, '\\')
		if slashes != 0 {
			w, i, quoted = compactTo(b, w, i, i+bits.TrailingZeros64(slashes)>>3+1, quoted)
			continue
		}
		within := quotes*ones ^ quoted // bit 7 of each byte: the parity of the quotes up to there
		spaces := ^((word & lows) + ones*(0x7f-' ') | word) & highs &^ within
		size := 8 - bits.OnesCount64(spaces)
		for spaces != 0 {
			below := uint64(1)<<(bits.Len64(spaces)-8) - 1
			word = word&below | word>>8&^below
			spaces &= below
		}
		binary.LittleEndian.PutUint64(b[w:], word)
		w, i, quoted = w+size, i+8, uint64(int64(within)>>63)
	}
	w, _, _ = compactTo(b, w, i, len(b), quoted)
	return b[:w]
}

// compactTo does the same byte by byte for b[i:end] and what a backslash there escapes, into b[w:].
func compactTo(b []byte, w, i, end int, quoted uint64) (newW, newI int, nowQuoted uint64) {
	for ; i < end; i++ {
		c := b[i]
		switch {
		case c == '"':
			quoted = ^quoted
		case c == '\\' && i+1 < len(b):
			b[w] = c
			w++
			i++
			c = b[i]
		case c <= ' ' && quoted == 0:
			continue
		}
		b[w] = c
		w++
	}
	return w, i, quoted
}
