package benchview

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// nothing stands where there is no number: nothing answered, so there is no latency.
const nothing = "-"

// latencyText is a latency for people: three digits in µs, ms or s, at most 8 cells for all that a
// histogram can hold.
func latencyText(ns int64) string {
	v, unit := scaled(ns)
	if ns <= 0 {
		return "0 " + unit
	}
	return threeDigits(v) + " " + unit
}

// scaled returns ns in the greatest unit in which it does not round to less than 1.
func scaled(ns int64) (v float64, unit string) {
	v = float64(ns) / 1e3
	switch {
	case v < 999.5:
		return v, "µs"
	case v < 999.5e3:
		return v / 1e3, "ms"
	}
	return v / 1e6, "s"
}

func threeDigits(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return countText(whole(v))
}

// whole rounds v to an int64 and holds it at the ends of the range; what is no number is 0.
func whole(v float64) int64 {
	v = math.Round(v)
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

// countText is a count with its thousands apart: 1,234,567.
func countText(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// perSecond is how many of n there were in each second of d; 0 if d is not positive.
func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// rateText is a number per second, without its unit. Small rates keep three digits, whole ones no
// fraction.
func rateText(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 99.95 || math.IsNaN(v) {
		return countText(whole(v))
	}
	return threeDigits(v)
}

// shareText is part of total in percent, never rounded to nothing or to all.
func shareText(part, total int64) string {
	if part <= 0 || total <= 0 {
		return "0 %"
	}
	v := 100 * float64(part) / float64(total)
	switch {
	case part >= total:
		return "100 %"
	case v < 0.001:
		return "<0.001 %"
	case v < 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64) + " %"
	case v > 99.9:
		return ">99.9 %"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " %"
}

// spanText is a duration as flags take it: 90s is 1m30s, and a minute is 1m and not 1m0s.
func spanText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// passedText is a duration that grows while one looks at it: always with one decimal, so that it
// does not jump.
func passedText(d time.Duration) string {
	d = max(d, 0).Round(100 * time.Millisecond)
	secs := strconv.FormatFloat((d%time.Minute).Seconds(), 'f', 1, 64) + "s"
	switch m := int64(d / time.Minute); {
	case m >= 60:
		return strconv.FormatInt(m/60, 10) + "h" + strconv.FormatInt(m%60, 10) + "m" + secs
	case m > 0:
		return strconv.FormatInt(m, 10) + "m" + secs
	}
	return secs
}

// quantiles are what the tables, the lines and the charts show of a histogram, its maximum aside.
var (
	quantileNames = [...]string{"p50", "p90", "p99", "p99.9", "max"}
	quantilesOf   = [...]float64{50, 90, 99, 99.9}
)

// The places of what is drawn over time in what latencies returns.
const (
	atP50, atP99, atP999, atMax = 0, 2, 3, 4
)

// latencies returns the quantiles of h in the order of quantileNames, in nanoseconds; ok is false
// if nothing was recorded.
func latencies(h *hdrhistogram.Histogram) (ns [len(quantileNames)]int64, ok bool) {
	if recorded(h) == 0 {
		return ns, false
	}
	copy(ns[:], h.ValueAtPercentilesSlice(quantilesOf[:]))
	ns[len(ns)-1] = h.Max()
	return ns, true
}

// recorded is how many latencies h holds; nil holds none.
func recorded(h *hdrhistogram.Histogram) int64 {
	if h == nil {
		return 0
	}
	return h.TotalCount()
}

// latencyTexts are the cells of a table for h, in the order of quantileNames.
func latencyTexts(h *hdrhistogram.Histogram) []string {
	out := make([]string, len(quantileNames))
	ns, ok := latencies(h)
	for i := range out {
		out[i] = nothing
		if ok {
			out[i] = latencyText(ns[i])
		}
	}
	return out
}
