package envelope

import "time"

// timeLayout is how the engine writes times: UTC, six fraction digits (envelope §3.6).
const timeLayout = "2006-01-02T15:04:05.000000Z"

// maxFraction is the most digits a fraction of a second may have: nanoseconds, which is what
// time.Time holds.
const maxFraction = 9

// appendTime appends t as the engine writes times (envelope §3.6), e.g.
// 2026-01-02T03:04:05.000000Z: UTC, cut to microseconds. It allocates only to grow dst. Years
// outside 0 to 9999 give text that validTime refuses.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, timeLayout)
}

// validTime reports whether s is a time that the exchange accepts (envelope §3.6):
//
//	YYYY-MM-DD (T|t|space) hh:mm[:ss[(.|,)f]] [Z|z|±hh:mm|±hhmm|±hh]      f: 1 to 9 digits
//
// with every field in its range: a day the month has in that year, hours to 23, minutes and seconds
// to 59 (no leap seconds), offsets to ±23:59. It does not allocate.
func validTime(s []byte) bool {
	_, ok := parseClock(s)
	return ok
}

// ParseTime reads what validTime accepts, as UTC. A time without a zone is UTC already. It does not
// allocate.
func ParseTime(s []byte) (t time.Time, ok bool) {
	c, ok := parseClock(s)
	if !ok {
		return time.Time{}, false
	}
	t = time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, c.nano, time.UTC)
	return t.Add(-time.Duration(c.offset) * time.Minute), true
}

// clock is a time as it is written.
type clock struct {
	year, month, day     int
	hour, minute, second int
	nano                 int
	offset               int // minutes east of UTC
}

func parseClock(s []byte) (c clock, ok bool) {
	const shortest = len("2006-01-02T15:04")
	if len(s) < shortest || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
		return c, false
	}
	century, ok0 := twoDigits(s[0:], 0, 99)
	year, ok1 := twoDigits(s[2:], 0, 99)
	month, ok2 := twoDigits(s[5:], 1, 12)
	day, ok3 := twoDigits(s[8:], 1, 31)
	hour, ok4 := twoDigits(s[11:], 0, 23)
	minute, ok5 := twoDigits(s[14:], 0, 59)
	if !(ok0 && ok1 && ok2 && ok3 && ok4 && ok5) {
		return c, false
	}
	c.year, c.month, c.day, c.hour, c.minute = century*100+year, month, day, hour, minute
	if day > 28 && time.Date(c.year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return c, false
	}
	if s, ok = c.parseSeconds(s[shortest:]); !ok {
		return c, false
	}
	c.offset, ok = parseZone(s)
	return c, ok
}

// parseSeconds reads [:ss[.fraction]] and returns what follows it.
func (c *clock) parseSeconds(s []byte) (rest []byte, ok bool) {
	if len(s) == 0 || s[0] != ':' {
		return s, true
	}
	if c.second, ok = twoDigits(s[1:], 0, 59); !ok {
		return nil, false
	}
	s = s[3:]
	if len(s) == 0 || s[0] != '.' && s[0] != ',' {
		return s, true
	}
	digits := 0
	for s = s[1:]; digits < len(s) && s[digits]-'0' <= 9; digits++ {
		if digits == maxFraction {
			return nil, false
		}
		c.nano = c.nano*10 + int(s[digits]-'0')
	}
	for range maxFraction - digits {
		c.nano *= 10
	}
	return s[digits:], digits > 0
}

// parseZone reads the zone, which is all of s, as minutes east of UTC.
func parseZone(s []byte) (minutes int, ok bool) {
	switch {
	case len(s) == 0, len(s) == 1 && s[0]|0x20 == 'z':
		return 0, true
	case s[0] != '+' && s[0] != '-':
		return 0, false
	}
	hours, ok := twoDigits(s[1:], 0, 23)
	switch {
	case !ok:
		return 0, false
	case len(s) == len("+05"):
	case len(s) == len("+0530"):
		minutes, ok = twoDigits(s[3:], 0, 59)
	case len(s) == len("+05:30") && s[3] == ':':
		minutes, ok = twoDigits(s[4:], 0, 59)
	default:
		return 0, false
	}
	minutes += hours * 60
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, ok
}

// twoDigits reads the two digits that s begins with and reports whether they are there and between
// low and high.
func twoDigits(s []byte, low, high int) (n int, ok bool) {
	if len(s) < 2 || s[0]-'0' > 9 || s[1]-'0' > 9 {
		return 0, false
	}
	n = int(s[0]-'0')*10 + int(s[1]-'0')
	return n, low <= n && n <= high
}
