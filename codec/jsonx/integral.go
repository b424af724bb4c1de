package jsonx

import "math"

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
