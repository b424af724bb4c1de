package projects

import "time"

var timeZero = time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)

// defaults returns the default limits.
func defaults() *Limits {
	l := Limits{}.WithDefaults()
	return &l
}
