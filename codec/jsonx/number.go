package jsonx

import (
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
