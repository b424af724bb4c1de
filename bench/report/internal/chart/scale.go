package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// upright sets a from zero to the first round number at or above top, with about five marks.
func upright(a *plot.Axis, top float64) {
	step := roundStep(top / 5)
	a.Min, a.Max = 0, step*math.Max(1, math.Ceil(top/step-1e-9))
	var marks []plot.Tick
	for i := 0; float64(i)*step <= a.Max*(1+1e-9); i++ {
		v := float64(i) * step
		marks = append(marks, plot.Tick{Value: v, Label: Short(v)})
	}
	a.Tick.Marker = plot.ConstantTicks(marks)
}

// roundStep is the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if f*power >= v*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// Short writes a figure in few letters: 0.25, 10, 1.5k, 10M.
func Short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 999_500:
		return digits(v/1e6) + "M"
	case a >= 10_000:
		return digits(v/1e3) + "k"
	}
	return digits(v)
}

// bytesShort is Short for a number of bytes.
func bytesShort(v float64) string {
	switch {
	case v >= 1<<20:
		return digits(v/(1<<20)) + " MiB"
	case v >= 1<<10:
		return digits(v/(1<<10)) + " KiB"
	}
	return digits(v) + " B"
}

// digits writes v with three significant digits, and whole numbers whole.
func digits(v float64) string {
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	s := strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))), 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// decades reports whether sorted values grow so far that a linear axis would crowd the first ones.
func decades(x []float64) bool {
	return len(x) > 1 && x[0] >= 0 && x[len(x)-1] >= 10*math.Max(x[0], 1)
}

// wrap breaks s at spaces into lines of at most so many letters; a longer word has a line of its
// own.
func wrap(s string, letters int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= letters:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
