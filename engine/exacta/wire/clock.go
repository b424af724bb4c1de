package wire

import "time"

// Clock gives all times that are shown (exacta §6.3). The zero Clock is the real one.
type Clock struct {
	fixed time.Time
}

// FixedClock returns a clock that stands.
func FixedClock(at time.Time) Clock { return Clock{fixed: at.UTC()} }

// Fixed reports whether the clock stands: durations are 0 then, and plans do not expire.
func (c Clock) Fixed() bool { return !c.fixed.IsZero() }

// Now returns the time.
func (c Clock) Now() time.Time {
	if c.Fixed() {
		return c.fixed
	}
	return time.Now().UTC()
}

// Append appends the time in the form of exacta §6.3. It does not allocate.
func (c Clock) Append(dst []byte) []byte { return c.Now().AppendFormat(dst, timeForm) }

const timeForm = "2006-01-02T15:04:05.000Z"

// Text returns the time in the form of exacta §6.3.
func (c Clock) Text() string { return TimeText(c.Now()) }

// TimeText returns a time of a Clock in the form of exacta §6.3.
func TimeText(t time.Time) string { return t.Format(timeForm) }

// Milliseconds returns how long ago start was; 0 where the clock stands.
func (c Clock) Milliseconds(start time.Time) int64 {
	if c.Fixed() {
		return 0
	}
	return max(time.Since(start).Milliseconds(), 0)
}
