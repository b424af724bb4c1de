package jsonx

import (
	"math"
	"strings"
	"testing"
)

func TestParseNumber(t *testing.T) {
	f := func(raw string, want NumberValue) {
		t.Helper()
		if got := ParseNumber([]byte(raw)); got != want {
			t.Errorf("ParseNumber(%s) = %+v, want %+v", raw, got, want)
		}
		if n, ok := ParseInt([]byte(raw)); ok != (want.Kind == Int) || n != want.Int {
			t.Errorf("ParseInt(%s) = %d, %v, want %+v", raw, n, ok, want)
		}
	}
	integer := func(v int64) NumberValue { return NumberValue{Kind: Int, Int: v} }
	float := func(v float64) NumberValue { return NumberValue{Kind: Float, Float: v} }
	f("0", integer(0))
	f("-0", integer(0))
	f("7", integer(7))
	f("-2147483649", integer(-2147483649))
	f("9223372036854775807", integer(math.MaxInt64))
	f("9223372036854775808", NumberValue{Kind: Uint, Uint: 1 << 63})
	f("18446744073709551615", NumberValue{Kind: Uint, Uint: math.MaxUint64})
	f("18446744073709551616", float(18446744073709551616))
	f("27670116110564327424", float(27670116110564327424)) // wraps around to more than its first digits
	f("99999999999999999999", float(99999999999999999999))
	f("-9223372036854775808", integer(math.MinInt64))
	f("-9223372036854775809", float(-9223372036854775809))
	f("5.0", float(5))
	f("1e2", float(100))
	f("-1.5E-3", float(-0.0015))
	f("-0.0", float(math.Copysign(0, -1)))
	f("1e-400", float(0))
	f(strings.Repeat("9", 300), float(1e300))
	f("1.7976931348623157e308", float(math.MaxFloat64))
	f("1e309", NumberValue{Kind: Float, Float: math.Inf(1), Overflow: true})
	f("-1e309", NumberValue{Kind: Float, Float: math.Inf(-1), Overflow: true})
	f(strings.Repeat("9", 400), NumberValue{Kind: Float, Float: math.Inf(1), Overflow: true})
}
