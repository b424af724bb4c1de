package jsonx

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Eight bytes are tested in one word (SWAR). Each mask below has bit 7 set in the bytes that match.
// Bytes above the lowest match may be set wrongly by a borrow, so only the lowest set bit is ever
// used.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// markSpecial marks the bytes that end a run of plain string bytes: quote, backslash, below 0x20,
// above 0x7f. Those above 0x7f are marked by themselves, so the other tests may be wrong about
// them. Flipping bit 1 puts the quote right behind the control characters: one test finds both.
func markSpecial(w uint64) uint64 {
	control := (w ^ ones*0x02) - ones*0x21
	slash := (w ^ ones*'\\') - ones
	return (control | slash | w) & highs
}

// markQuote marks the bytes that matter inside a string that was checked: quote and backslash.
func markQuote(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// plainRun returns the offset of the first special byte at or after i, or len(b).
func plainRun(b []byte, i int) int {
	for len(b)-i >= 8 {
		if m := markSpecial(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && !special(b[i]) {
		i++
	}
	return i
}

func special(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf }

// escapes is which escapes a string has.
type escapes uint8

const (
	anyEscape     escapes = 1 << iota
	unicodeEscape         // \uXXXX
)

// scanString checks the string whose opening quote is before i and returns the offset behind its
// closing quote, and which escapes it has. On a fault it returns the fault's offset and kind. It is
// plainRun and what follows a run in one loop: most strings are a few bytes long.
func scanString(b []byte, i int) (next int, esc escapes, kind Kind) {
	for uint(i) < uint(len(b)) {
		rest := b[i:]
		if len(rest) >= 16 {
			m := markSpecial(binary.LittleEndian.Uint64(rest))
			if m == 0 {
				i += 8
				if m = markSpecial(binary.LittleEndian.Uint64(rest[8:])); m == 0 {
					i += 8
					continue
				}
			}
			i += bits.TrailingZeros64(m) >> 3
		} else if i = plainRun(b, i); i >= len(b) {
			break
		}
		c := b[i]
		if c == '"' {
			return i + 1, esc, Fine
		}
		// JSON inside a string has a quote behind most backslashes.
		if c == '\\' {
			esc |= anyEscape
			if i+1 < len(b) && b[i+1] == '"' {
				i += 2
				continue
			}
			if i+1 < len(b) && b[i+1] == 'u' {
				esc |= unicodeEscape
			}
		}
		if i, kind = scanSpecial(b, i); kind != Fine {
			return i, esc, kind
		}
	}
	return len(b), esc, UnexpectedEnd
}

// scanSpecial checks what begins at a special byte other than a quote.
func scanSpecial(b []byte, i int) (int, Kind) {
	switch c := b[i]; {
	case c == '\\':
		return scanEscape(b, i+1)
	case c < ' ':
		return i, ControlChar
	}
	return scanMultibyte(b, i)
}

// scanMultibyte checks a run of non-ASCII characters. Text in such a script rarely has eight ASCII
// bytes in a row, so the run is followed here rather than through plainRun.
func scanMultibyte(b []byte, i int) (int, Kind) {
	for i < len(b) && b[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i, InvalidUTF8
		}
		i += size
	}
	return i, Fine
}

// scanEscape checks the escape whose backslash is before i.
func scanEscape(b []byte, i int) (int, Kind) {
	if i >= len(b) {
		return len(b), UnexpectedEnd
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, Fine
	case 'u':
	default:
		return i, BadEscape
	}
	for end := i + 4; i < end; {
		i++
		if i >= len(b) {
			return len(b), UnexpectedEnd
		}
		if hexValue(b[i]) < 0 {
			return i, BadEscape
		}
	}
	return i + 1, Fine
}

// hexValue returns the value of a hexadecimal digit, -1 for any other byte.
func hexValue(c byte) int32 {
	switch {
	case c >= '0' && c <= '9':
		return int32(c - '0')
	case c >= 'a' && c <= 'f':
		return int32(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int32(c-'A') + 10
	}
	return -1
}

// scanNumber checks the number at i (a minus sign or a digit) and returns the offset behind it.
func scanNumber(b []byte, i int) (int, Kind) {
	i, kind := scanMantissa(b, i)
	if kind != Fine || i >= len(b) || b[i]|0x20 != 'e' {
		return i, kind
	}
	return scanExponent(b, i+1)
}

// scanMantissa checks the number at i up to its exponent.
func scanMantissa(b []byte, i int) (int, Kind) {
	if b[i] == '-' {
		i++
	}
	ok := true
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, ok = scanDigits(b, i); !ok {
		return fault(b, i)
	}
	if i < len(b) && b[i] == '.' {
		if i, ok = scanDigits(b, i+1); !ok {
			return fault(b, i)
		}
	}
	return i, Fine
}

// scanExponent checks the exponent whose letter is before i.
func scanExponent(b []byte, i int) (int, Kind) {
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	i, ok := scanDigits(b, i)
	if !ok {
		return fault(b, i)
	}
	return i, Fine
}

// scanDigits returns the offset behind the digits at i; ok is false if there is none.
func scanDigits(b []byte, i int) (end int, ok bool) {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i, i > start
}

// scanLiteral checks that word stands at i.
func scanLiteral(b []byte, i int, word string) (int, Kind) {
	for k := 0; k < len(word); k++ {
		if i >= len(b) || b[i] != word[k] {
			return fault(b, i)
		}
		i++
	}
	return i, Fine
}

// fault is the answer for a byte that must not stand at i, or for a text that ends there.
func fault(b []byte, i int) (int, Kind) {
	if i >= len(b) {
		return len(b), UnexpectedEnd
	}
	return i, UnexpectedChar
}

// skipSpace returns the offset of the first byte at or after i that is not JSON whitespace.
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

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
