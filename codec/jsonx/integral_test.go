package jsonx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestIntegral(t *testing.T) {
	f := func(raw string, want int64) {
		t.Helper()
		if n, ok := Integral([]byte(raw)); !ok || n != want {
			t.Errorf("Integral(%s) = %d, %v, want %d", raw, n, ok, want)
		}
	}
	f("0", 0)
	f("-0", 0)
	f("-0.0e5", 0)
	f("0e999999999999999999999", 0)
	f("0.000e-99999999999999999999", 0)
	f("3", 3)
	f("3.0", 3)
	f("3e0", 3)
	f("30e-1", 3)
	f("-2.50E+1", -25)
	f("0.003e3", 3)
	f("0.003e+0005", 300)
	f("1e18", 1e18)
	f("9223372036854775807", math.MaxInt64)
	f("-9223372036854775808", math.MinInt64)
	f("-9223372036854775808.000", math.MinInt64)
	f("9.223372036854775807e18", math.MaxInt64)
	f("-0.9223372036854775808e19", math.MinInt64)
	f("9223372036854775807"+strings.Repeat("0", 50)+"e-50", math.MaxInt64)
	f("0."+strings.Repeat("0", 99)+"7e100", 7)
	f("7"+strings.Repeat("0", 100)+".0e-100", 7)
}

func TestNotIntegral(t *testing.T) {
	f := func(raw string) {
		t.Helper()
		if n, ok := Integral([]byte(raw)); ok {
			t.Errorf("Integral(%q) = %d, want none", raw, n)
		}
	}
	f("2.5")
	f("-0.1")
	f("1e-1")
	f("25e-1")
	f("1e30")
	f("1e19")
	f("9223372036854775808")
	f("-9223372036854775809")
	f("18446744073709551615")
	f("18446744073709551616")
	f("9223372036854775807.5")
	f("9223372036854775807.0000000000000000000000000001")
	f("123456789012345678901234567890e-12")
	f("1e999999999999999999999")
	f("1e-999999999999999999999")
	// Not numbers.
	f("")
	f("-")
	f("e")
	f("a")
	f("1e")
	f("1e+")
	f("1ex")
	f("1.2.3")
	f(`"3"`)
	f("null")
}

// compareIntegral holds Integral to exact rational arithmetic.
func compareIntegral(t *testing.T, raw string) {
	t.Helper()
	want, ok := new(big.Rat).SetString(raw)
	if !ok {
		t.Fatalf("math/big refuses %q", raw)
	}
	wantOK := want.IsInt() && want.Num().IsInt64()
	n, ok := Integral([]byte(raw))
	if ok != wantOK || ok && n != want.Num().Int64() {
		t.Fatalf("Integral(%s) = %d, %v, want %v, %v", raw, n, ok, want, wantOK)
	}
}

func TestIntegralAgreesWithRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	digits := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = '0' + byte(r.IntN(10)*(r.IntN(3)/2)) // two of three are zeros
		}
		return string(out)
	}
	for range 20000 {
		raw := strconv.FormatInt(int64(r.Uint64()>>r.IntN(64)), 10)
		if r.IntN(3) > 0 {
			raw += "." + digits(1+r.IntN(8))
		}
		if r.IntN(3) > 0 {
			raw += "e" + strconv.Itoa(r.IntN(50)-25)
		}
		compareIntegral(t, raw)
	}
}

func FuzzIntegral(f *testing.F) {
	for _, raw := range []string{"3", "-3.0", "30e-1", "9223372036854775808", "1e30", "0.5E+1"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		Integral([]byte(raw))
		v := ValueOf([]byte(raw))
		if v.Kind != Number || len(v.Raw) != len(raw) || !Check(v.Raw, 0).OK() {
			return
		}
		if e := strings.IndexAny(raw, "eE"); e < 0 || len(raw)-e < 6 { // math/big writes the digits of far exponents out
			compareIntegral(t, raw)
		}
	})
}
