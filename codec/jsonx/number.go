package jsonx

import (
	"math"
	"strconv"
)

// NumberKind says which field of a NumberValue holds the number.
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
	// Overflow is set when the magnitude is above the float64 range: Float is then ±Inf, which has no meaning in JSON or
	// in MessagePack from this server, so the caller refuses it or sends nil.
	Overflow bool
}

// ParseNumber reads raw, a checked number (Token.Raw). A number without fraction and exponent that fits 64 bits is an integer
// ("-0" is the integer 0); every other one is the nearest float64. It allocates only when the number overflows.
func ParseNumber(raw []byte) NumberValue {
	if magnitude, negative, ok := parseInteger(raw); ok {
		switch {
		case !negative && magnitude > math.MaxInt64:
			return NumberValue{Kind: Uint, Uint: magnitude}
		case !negative:
			return NumberValue{Kind: Int, Int: int64(magnitude)}
		case magnitude <= 1<<63:
			return NumberValue{Kind: Int, Int: -int64(magnitude)}
		}
	}
	f, err := strconv.ParseFloat(asString(raw), 64)
	return NumberValue{Kind: Float, Float: f, Overflow: err != nil}
}

// parseInteger returns the magnitude and sign of a number that consists of digits only and fits 64 bits.
func parseInteger(raw []byte) (magnitude uint64, negative, ok bool) {
	digits := raw
	if len(raw) > 0 && raw[0] == '-' {
		digits, negative = raw[1:], true
	}
	if len(digits) == 0 || len(digits) > len("18446744073709551615") {
		return 0, negative, false
	}
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 || magnitude > (math.MaxUint64-d)/10 {
			return 0, negative, false
		}
		magnitude = magnitude*10 + d
	}
	return magnitude, negative, true
}
