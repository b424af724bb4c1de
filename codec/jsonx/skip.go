package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// behindContainer returns the offset behind the container whose bracket is before i, len(b) if it
// does not end.
//
// It counts brackets outside strings, a word at a time. Only two branches depend on the text, the
// one for backslashes and the one for the end, so the processor mispredicts next to nothing.
func behindContainer(b []byte, i int) int {
	depth, inString, size := 1, uint64(0), 0 // inString: all bits set inside a string
	for len(b)-i >= 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quotes, slashes := markByte(w, '"'), markByte(w, '\\')
		if inString&^(quotes|slashes) == ^uint64(0) { // inside a text
			i += 8
			continue
		}
		within := parity(quotes) ^ inString
		brackets := markBrackets(w) &^ within
		opens, closes := sumMarks(brackets&(w<<6)), sumMarks(brackets&(w<<5))
		if slashes == 0 && closes < depth {
			depth += opens - closes
			inString = uint64(int64(within) >> 63)
			i += 8
			continue
		}
		if size, depth, inString = stepWord(w, depth, inString); depth == 0 {
			return i + size
		}
		i += size
	}
	for ; i < len(b); i += size {
		var last [8]byte // zeros behind the end mean nothing
		copy(last[:], b[i:])
		if size, depth, inString = stepWord(binary.LittleEndian.Uint64(last[:]), depth, inString); depth == 0 {
			return i + size
		}
	}
	return len(b)
}

// parity sets bit 7 of each byte to the parity of the marks up to there; the other bits mean
// nothing. The product is the sum of the marks shifted by all numbers of whole bytes; no carry
// reaches a bit 7.
func parity(marks uint64) uint64 { return marks * ones }

// stepWord reads the bytes of w up to the end of the container, up to a backslash and what it
// escapes, or all of them, and returns how many they were; depth is 0 if the container ended.
func stepWord(w uint64, depth int, inString uint64) (size, newDepth int, newInString uint64) {
	quotes, brackets, size := markByte(w, '"'), markBrackets(w), 8
	if slashes := markByte(w, '\\'); slashes != 0 {
		at := bits.TrailingZeros64(slashes)
		before := uint64(1)<<at - 1
		quotes, brackets, size = quotes&before, brackets&before, at>>3+2
	}
	within := parity(quotes) ^ inString
	for m := brackets &^ within; m != 0; m &= m - 1 {
		if m&-m&(w<<5) == 0 {
			depth++
		} else if depth--; depth == 0 {
			return bits.TrailingZeros64(m)>>3 + 1, 0, 0
		}
	}
	return size, depth, uint64(int64(within) >> 63)
}

// markByte marks the bytes of w that are c, which is ASCII. Unlike markSpecial it is exact.
func markByte(w uint64, c byte) uint64 {
	const low = ones * 0x7f
	return ^((w&low ^ ones*uint64(c)) + low | w) & highs
}

// markBrackets marks the brackets among the bytes of w that stand outside strings; about others it
// may be wrong. Of all the characters that can stand there only brackets have the bits 6, 4 and 3
// set: { is 0x7b, [ 0x5b, } 0x7d, ] 0x5d. Bit 1 then means an opening one and bit 2 a closing one.
func markBrackets(w uint64) uint64 { return w << 1 & (w << 3) & (w << 4) & highs }

// sumMarks returns how many bytes of m are marked; nothing but bit 7 of each may be set.
func sumMarks(m uint64) int { return int(m >> 7 * ones >> 56) }
