package benchview

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline/loadgen"
)

func TestLatencyText(t *testing.T) {
	f := func(ns int64, want string) {
		t.Helper()
		if got := LatencyText(ns); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
	f(-1, "0 µs")
	f(0, "0 µs")
	f(1, "0.00 µs")
	f(850, "0.85 µs")
	f(9_994, "9.99 µs")
	f(9_995, "10.0 µs")
	f(99_949, "99.9 µs")
	f(99_950, "100 µs")
	f(412_345, "412 µs")
	f(999_499, "999 µs")
	f(999_500, "1.00 ms")
	f(999_499_999, "999 ms")
	f(999_500_000, "1.00 s")
	f(loadgen.HighestLatency, "3,600 s")
}

func TestCountText(t *testing.T) {
	f := func(n int64, want string) {
		t.Helper()
		if got := CountText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	f(0, "0")
	f(999, "999")
	f(1000, "1,000")
	f(-1000, "-1,000")
	f(1e9, "1,000,000,000")
	f(math.MinInt64, "-9,223,372,036,854,775,808")
}

func TestRateText(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := RateText(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	f(0, "0")
	f(0.5, "0.50")
	f(12.34, "12.3")
	f(99.96, "100")
	f(100, "100")
	f(1234.5, "1,235")
	f(loadgen.MaxRate, "10,000,000")
}

func TestShareText(t *testing.T) {
	f := func(part, total int64, want string) {
		t.Helper()
		if got := shareText(part, total); got != want {
			t.Errorf("%d of %d: %q, want %q", part, total, got, want)
		}
	}
	f(0, 0, "0 %")
	f(0, 10, "0 %")
	f(1, 0, "0 %")
	f(1, 1e9, "<0.001 %")
	f(1, 20_000, "0.005 %")
	f(1, 3, "33.3 %")
	f(1e9-1, 1e9, ">99.9 %")
	f(10, 10, "100 %")
	f(11, 10, "100 %")
}

func TestTimesAsText(t *testing.T) {
	f := func(d time.Duration, span string) {
		t.Helper()
		if got := spanText(d); got != span {
			t.Errorf("span %d: %q, want %q", d, got, span)
		}
	}
	f(0, "0s")
	f(1500*time.Millisecond, "1.5s")
	f(time.Minute, "1m")
	f(59_960*time.Millisecond, "59.96s")
	f(90*time.Second, "1m30s")
	f(10*time.Minute, "10m")
	f(24*time.Hour, "24h")
}

// FuzzNumbers: no number is shown wider than its column or further from its value than its last
// digit.
func FuzzNumbers(f *testing.F) {
	for _, n := range []int64{0, 1, 999, 9_995, 999_499, 999_500, 999_500_000, loadgen.HighestLatency, math.MaxInt64, math.MinInt64} {
		f.Add(n)
	}
	units := map[string]float64{"µs": 1e3, "ms": 1e6, "s": 1e9}
	f.Fuzz(func(t *testing.T, n int64) {
		if got, err := strconv.ParseInt(strings.ReplaceAll(CountText(n), ",", ""), 10, 64); err != nil || got != n {
			t.Errorf("count %d: %q", n, CountText(n))
		}
		text := LatencyText(n)
		digits, unit, _ := strings.Cut(text, " ")
		v, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		if err != nil || units[unit] == 0 {
			t.Fatalf("latency %d: %q", n, text)
		}
		if n <= loadgen.HighestLatency && cells(text) > 8 {
			t.Errorf("latency %d: %q is wider than 8", n, text)
		}
		if got, want := v*units[unit], float64(max(n, 0)); math.Abs(got-want) > max(want*0.0051, 5) {
			t.Errorf("latency %d: %q is %v", n, text, got)
		}
		if s := RateText(float64(n) / 7); strings.ContainsAny(s, "eE+") {
			t.Errorf("rate %d/7: %q", n, s)
		}
	})
}
