package dsstate

import "bytes"

// sizeDigits is how many digits maxSize has.
const sizeDigits = 16

// truncated returns the number that raw spells, cut towards zero; ok is false if it is above maxSize after that, or below zero before,
// so that -0.5 is no size. It works on the digits: float64 rounds numbers near the limit to beyond it.
func truncated(raw []byte) (n int64, ok bool) {
	raw, negative := bytes.CutPrefix(raw, []byte("-"))
	mantissa, exponent := raw, 0
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		mantissa, exponent = raw[:e], exponentOf(raw[e+1:])
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	zeros, size := leadingZeros(whole), len(whole)
	if zeros == size {
		zeros += leadingZeros(fraction)
	}
	if zeros == size+len(fraction) {
		return 0, true // -0 is as good as 0
	}
	before := size - zeros + exponent // how many digits, the first not zero, are before the point
	if negative || before > sizeDigits {
		return 0, false
	}
	for i := zeros; i < zeros+before; i++ {
		n *= 10
		switch {
		case i < size:
			n += int64(whole[i] - '0')
		case i < size+len(fraction):
			n += int64(fraction[i-size] - '0')
		}
	}
	return n, n <= maxSize
}

// exponentOf returns the exponent that text spells. One that is longer than a number of any line
// could make up for is cut: it decides alone.
func exponentOf(text []byte) (n int) {
	const most = 1 << 30
	for _, c := range bytes.TrimLeft(text, "+-") {
		n = min(10*n+int(c-'0'), most)
	}
	if bytes.HasPrefix(text, []byte("-")) {
		return -n
	}
	return n
}

func leadingZeros(digits []byte) int { return len(digits) - len(bytes.TrimLeft(digits, "0")) }
