package sessionstate

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSize(t *testing.T) {
	f := func(text string, want int64) {
		t.Helper()
		var s State
		next, why := s.Apply([]byte(`{"slots":{"0":{"size_bytes":` + text + `}}}`))
		if want < 0 {
			if why != "slot 0: size_bytes" {
				t.Errorf("%.80s: %q", text, why)
			}
			return
		}
		if a, ok := next.Get(0); why != "" || !ok || a.Size != want {
			t.Errorf("%.80s: %+v %q, want %d", text, a, why, want)
		}
	}
	const most, no = maxSize, -1
	for _, text := range []string{"9007199254740991", "9007199254740991e0", "9007199254740991.0", "9007199254740991.5", "9007199254740991.999999999999999999", "9007199254740991.5e0",
		"90071992547409915e-1", "90071992547409919e-1", "9.0071992547409915e15", "9.0071992547409915E+15", "900719925474099.15e1",
		"0.90071992547409919e16", "0.0090071992547409919e18", "9007199254740991" + strings.Repeat("9", 400) + "e-400"} {
		f(text, most)
	}
	for _, text := range []string{"9007199254740992", "9007199254740992.0", "9007199254740991.5e1", "90071992547409920e-1", "9.007199254740992e15", "1e16", "1e400",
		"0.1e999999999999999999999", "9223372036854775807", "9223372036854775808", "1e99999999999999999999999999", "12345678901234567890.5",
		"18446744073709551616", "1e308", `"5"`, "null", "true", "[1]"} {
		f(text, no)
	}
	for _, text := range []string{"-1", "-0.5", "-1e-400", "-1e400", "-0.0000001"} {
		f(text, no)
	}
	for _, text := range []string{"0", "-0", "0.0", "-0.0", "-0e5", "0e99999999999999999999", "0.99", "0.9999999999999999999", "1e-400", "9e-1", "123e-99999999999999999999999"} {
		f(text, 0)
	}
	f("1", 1)
	f("7.9", 7)
	f("12e2", 1200)
	f("9007199254740990", most-1)
	f("1.9", 1)
	f("19e-1", 1)
	f("10.0e-1", 1)
	f("5e0", 5)
	f("1.23e1", 12)
	f("1.23e5", 123000)
	f("0.00012e4", 1)
	f("0."+strings.Repeat("0", 5000)+"7e5002", 70)
	f("42"+strings.Repeat("0", 5000)+"e-5000", 42)
}

// TestSizeIsExact compares with exact arithmetic.
func TestSizeIsExact(t *testing.T) {
	limit := new(big.Int).SetInt64(maxSize)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		if rapid.Bool().Draw(t, "near the limit") {
			text = strconv.FormatInt(maxSize+rapid.Int64Range(-2, 2).Draw(t, "off"), 10) + rapid.StringMatching(`(\.[0-9]{1,5})?([eE][+-]?[01])?`).Draw(t, "end")
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		whole := new(big.Int).Quo(exact.Num(), exact.Denom())
		want := exact.Sign() >= 0 && whole.Cmp(limit) <= 0
		if n, ok := truncated([]byte(text)); ok != want || ok && n != whole.Int64() {
			t.Fatalf("%s: %d %v, want %v %v", text, n, ok, whole, want)
		}
	})
}
