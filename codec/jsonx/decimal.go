package jsonx

import (
	"bytes"
	"strconv"
)

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
