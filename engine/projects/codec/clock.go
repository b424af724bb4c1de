package codec

import "time"

// Clock gives all times that are shown (exacta §6.3). The zero Clock is the real one.
type Clock struct {
	fixed time.Time
	at    int64               // Unix time in milliseconds, if it was made by At
	shown [len(timeForm)]byte // what Append appends then
}

const timeForm = "2006-01-02T15:04:05.000Z"

// At returns a clock that shows a reading of the real one, in Unix milliseconds: what it appends is
// made once. A clock that stands shows what it did. With a reading of 0 it shows the time of the
// call.
func (c Clock) At(wall int64) Clock {
	if !c.Fixed() && wall != 0 {
		c.at = wall
		appendTime(c.shown[:0], c.Now())
	}
	return c
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
	if c.at != 0 {
		return time.UnixMilli(c.at).UTC()
	}
	return time.Now().UTC()
}

// Append appends the time in the form of exacta §6.3. It does not allocate.
func (c Clock) Append(dst []byte) []byte {
	if c.at != 0 {
		return append(dst, c.shown[:]...)
	}
	return appendTime(dst, c.Now())
}

func appendTime(dst []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = two(two(dst, year/100), year%100)
	dst = two(append(dst, '-'), int(month))
	dst = two(append(dst, '-'), day)
	dst = two(append(dst, 'T'), hour)
	dst = two(append(dst, ':'), minute)
	dst = two(append(dst, ':'), second)
	ms := t.Nanosecond() / 1e6
	return append(two(append(dst, '.'), ms/10), byte('0'+ms%10), 'Z')
}

// two appends a number of two digits.
func two(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// Text returns the time in the form of exacta §6.3.
func (c Clock) Text() string { return string(c.Append(nil)) }

// TimeText returns a time of a Clock in the form of exacta §6.3.
func TimeText(t time.Time) string { return string(appendTime(nil, t)) }

// Milliseconds returns how long ago start was; 0 where the clock stands.
func (c Clock) Milliseconds(start time.Time) int64 {
	if c.Fixed() {
		return 0
	}
	return max(time.Since(start).Milliseconds(), 0)
}
