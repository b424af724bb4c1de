package jsonx

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// NumberKind is which field of a NumberValue holds the number.
type NumberKind uint8

// The kinds of NumberValue.
const (
	Int   NumberKind = iota // fits int64
	Uint                    // an integer above the int64 range that fits uint64
	Float                   // anything else
)

// NumberValue is a parsed JSON number.
type NumberValue struct {
	Kind  NumberKind
	Int   int64   // set for kind Int
	Uint  uint64  // set for kind Uint
	Float float64 // set for kind Float
	// Overflow is set when the magnitude is above the float64 range: Float is then ±Inf, which has
	// no meaning in JSON or in MessagePack from this server, so the caller refuses it or sends nil.
	Overflow bool
}

// ParseNumber reads raw, a checked number (Token.Raw). A number without fraction and exponent that
// fits 64 bits is an integer ("-0" is the integer 0); any other is the nearest float64. It
// allocates only when the number overflows.
func ParseNumber(raw []byte) NumberValue {
	if magnitude, negative, ok := parseInteger(raw); ok {
		if n, ok := signed(magnitude, negative); ok {
			return NumberValue{Kind: Int, Int: n}
		}
		if !negative {
			return NumberValue{Kind: Uint, Uint: magnitude}
		}
	}
	f, err := strconv.ParseFloat(asString(raw), 64)
	return NumberValue{Kind: Float, Float: f, Overflow: err != nil}
}

// ParseInt reads raw, a checked number, as ParseNumber does, and reports whether it is of kind Int.
// It is the fast path for common numbers, and does not allocate.
func ParseInt(raw []byte) (n int64, ok bool) {
	magnitude, negative, ok := parseInteger(raw)
	if !ok {
		return 0, false
	}
	return signed(magnitude, negative)
}

// signed returns the integer of that magnitude and sign if int64 holds it.
func signed(magnitude uint64, negative bool) (n int64, ok bool) {
	switch {
	case magnitude <= math.MaxInt64 && !negative:
		return int64(magnitude), true
	case magnitude <= 1<<63 && negative:
		return -int64(magnitude), true
	}
	return 0, false
}

// parseInteger returns the magnitude and sign of a number of digits only that fits 64 bits.
func parseInteger(raw []byte) (magnitude uint64, negative, ok bool) {
	digits := raw
	if len(raw) > 0 && raw[0] == '-' {
		digits, negative = raw[1:], true
	}
	const most = len("18446744073709551615")
	if len(digits) == 0 || len(digits) > most {
		return 0, negative, false
	}
	last := uint64(0) // what only the twentieth digit can carry beyond 64 bits
	n := len(digits)
	for len(digits) >= 8 {
		eight, ok := eightDigits(binary.LittleEndian.Uint64(digits))
		if !ok {
			return 0, negative, false
		}
		magnitude, digits = magnitude*1e8+eight, digits[8:]
	}
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 {
			return 0, negative, false
		}
		last, magnitude = magnitude, magnitude*10+d
	}
	if n == most && (last > math.MaxUint64/10 || magnitude < last) {
		return 0, negative, false
	}
	return magnitude, negative, true
}

// eightDigits returns the number that eight digits spell, the first one in the lowest byte. Pairs
// of digits become numbers below 100, and pairs of those numbers below 10,000.
func eightDigits(w uint64) (n uint64, ok bool) {
	w ^= ones * '0'
	if (w+ones*(0x7f-9)|w)&highs != 0 {
		return 0, false
	}
	w = w*10 + w>>8
	const low = 0x000000ff_000000ff
	return (w&low*(100+1_000_000<<32) + w>>16&low*(1+10_000<<32)) >> 32, true
}

// number writes raw, a checked number, as an exact decimal.
func (c *Canonical) number(raw []byte) {
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	mantissa := raw
	if n := bytes.IndexAny(raw, "eE"); n >= 0 {
		mantissa = raw[:n]
	}
	exponent, _ := parseExponent(raw[len(mantissa):])
	point := bytes.IndexByte(mantissa, '.')
	if point < 0 {
		point = len(mantissa)
	}
	first, last := 0, len(mantissa)-1 // the digits that are no leading or trailing zeros
	for first <= last && (mantissa[first] == '0' || first == point) {
		first++
	}
	for first <= last && (mantissa[last] == '0' || last == point) {
		last--
	}
	if first > last {
		c.put('0')
		return
	}
	if exponent += point - last; last < point { // the point itself is no digit
		exponent--
	}
	if negative {
		c.put('-')
	}
	c.verbatim(mantissa[first:max(first, min(point, last+1))])
	c.verbatim(mantissa[min(max(first, point+1), last+1) : last+1])
	if exponent != 0 {
		c.put('e')
		c.verbatim(strconv.AppendInt(c.escape[:0], int64(exponent), 10))
	}
}

// Integral returns the mathematical value of raw, a checked number, if that is an integer in the
// int64 range, in any spelling: 3, 3.0, 3e0, 30e-1 and -0 are integers, 2.5 and 1e30 are not
// (envelope §2.3). It is exact, without floating point, linear in len(raw), and does not allocate.
func Integral(raw []byte) (n int64, ok bool) {
	magnitude, negative, ok := parseInteger(raw)
	if !ok {
		if negative {
			raw = raw[1:]
		}
		if magnitude, ok = parseDecimal(raw); !ok {
			return 0, false
		}
	}
	return signed(magnitude, negative)
}

// parseDecimal returns the value of a number without sign if it is an integer that fits 64 bits. It
// reads it as significant · 10^scale, where significant ends in no zero: then a negative scale is
// no integer.
func parseDecimal(raw []byte) (value uint64, ok bool) {
	var significant uint64
	zeros, fraction := 0, 0 // zeros read behind significant, digits read behind the point
	i, point := 0, false
	for ; i < len(raw) && raw[i]|0x20 != 'e'; i++ {
		digit := uint64(raw[i] - '0')
		if raw[i] == '.' && !point {
			point = true
			continue
		}
		if point {
			fraction++
		}
		if zeros++; digit == 0 {
			continue
		}
		// More digits than 64 bits hold, and the last is no zero: too large or a fraction, for any
		// exponent.
		m, ok := times10(significant, zeros)
		if !ok || digit > 9 || m > math.MaxUint64-digit {
			return 0, false
		}
		significant, zeros = m+digit, 0
	}
	exponent, ok := parseExponent(raw[i:])
	scale := zeros - fraction + exponent
	if !ok || i == 0 || significant != 0 && scale < 0 {
		return 0, false
	}
	return times10(significant, scale)
}

// farExponent is where parseExponent stops: beyond it the exponent outweighs the digits of any
// text.
const farExponent = 1 << 40

// parseExponent reads the exponent raw, 0 if empty. A far one becomes a number beyond ±farExponent.
func parseExponent(raw []byte) (n int, ok bool) {
	if len(raw) == 0 {
		return 0, true
	}
	digits, sign := raw[1:], 1
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		if n <= farExponent {
			n = n*10 + int(c-'0')
		}
	}
	return sign * n, len(digits) > 0
}

// times10 returns m · 10^n if it fits 64 bits.
func times10(m uint64, n int) (uint64, bool) {
	for ; n > 0 && m != 0; n-- {
		if m > math.MaxUint64/10 {
			return 0, false
		}
		m *= 10
	}
	return m, true
}
