package benchview

import (
	"math"
	"strconv"
	"time"
)

// axis is linear and begins at zero: its ticks are multiples of step up to top, in unit; one unit
// is per of what is drawn.
type axis struct {
	per, step, top float64
	unit           string
}

// newAxis returns an axis that holds values up to most, in some ticks steps of 1, 2 or 5 times a
// power of ten.
func newAxis(most, per float64, unit string, ticks int) axis {
	most /= per
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	raw := most / float64(ticks)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw*(1-1e-9) {
			step *= m
			break
		}
	}
	return axis{per: per, step: step, top: step * math.Ceil(most/step*(1-1e-9)), unit: unit}
}

// latencyAxis holds latencies up to most nanoseconds, in the unit in which most is short.
func latencyAxis(most float64) axis {
	switch {
	case most < 1e6:
		return newAxis(most, 1e3, "microseconds", 4)
	case most < 1e9:
		return newAxis(most, 1e6, "milliseconds", 4)
	}
	return newAxis(most, 1e9, "seconds", 4)
}

// timeAxis goes to the end of a run exactly, so that the last point stands at the edge; its ticks
// are round.
func timeAxis(end time.Duration) axis {
	per, unit := time.Second, "seconds"
	switch {
	case end > 5*time.Hour:
		per, unit = time.Hour, "hours"
	case end > 5*time.Minute:
		per, unit = time.Minute, "minutes"
	}
	a := newAxis(float64(end), float64(per), unit, 8)
	if end > 0 {
		a.top = float64(end) / float64(per)
	}
	return a
}

// at is where v lies between 0 and top, as a share of the length of the axis.
func (a axis) at(v float64) float64 { return v / a.per / a.top }

// ticks are the multiples of step from 0 to top, in unit.
func (a axis) ticks() []float64 {
	var out []float64
	for i := 0; float64(i)*a.step <= a.top*(1+1e-9) && i <= 20; i++ {
		out = append(out, float64(i)*a.step)
	}
	return out
}

// label is a tick as text: no more decimals than the step has, thousands apart.
func (a axis) label(v float64) string {
	if a.step >= 1 {
		return countText(whole(v))
	}
	digits := int(math.Ceil(-math.Log10(a.step) - 1e-9))
	return strconv.FormatFloat(v, 'f', digits, 64)
}
