package codec

import "bytes"

// ParseVersion checks the form of an ipc_version and returns its first number (exacta §3.2).
func ParseVersion(text []byte) (major []byte, ok bool) {
	major, minor, ok := bytes.Cut(text, []byte("."))
	return major, ok && isCount(major) && isCount(minor)
}

// isCount reports whether text is 0 or a number of up to four digits that does not begin with one.
func isCount(text []byte) bool {
	if len(text) == 0 || len(text) > 4 || text[0] == '0' && len(text) > 1 {
		return false
	}
	return digits(text) == len(text)
}

// digits returns how many digits text begins with.
func digits(text []byte) (n int) {
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	return n
}

// isTime reports whether text is a date and a time of ISO 8601 (exacta §3.2).
func isTime(text []byte) bool {
	if len(text) < len("2006-01-02T15:04") || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' {
		return false
	}
	century, year, month, day := pair(text), pair(text[2:]), pair(text[5:]), pair(text[8:])
	if century > 99 || year > 99 || month < 1 || month > 12 || day < 1 || day > daysOf(100*century+year, month) {
		return false
	}
	if pair(text[11:]) >= 24 || pair(text[14:]) >= 60 {
		return false
	}
	text = text[16:]
	if len(text) > 0 && text[0] == ':' {
		if len(text) < 3 || pair(text[1:]) >= 61 { // a leap second is the 61st
			return false
		}
		if text = text[3:]; len(text) > 0 && text[0] == '.' {
			n := digits(text[1:])
			if n < 1 || n > 9 {
				return false
			}
			text = text[1+n:]
		}
	}
	return isZone(text)
}

// isZone reports whether text is Z, an offset, or nothing.
func isZone(text []byte) bool {
	if len(text) == 0 || string(text) == "Z" {
		return true
	}
	if text[0] != '+' && text[0] != '-' {
		return false
	}
	text = text[1:]
	switch len(text) {
	case 2:
		return pair(text) < 24
	case 4:
		return pair(text) < 24 && pair(text[2:]) < 60
	case 5:
		return pair(text) < 24 && text[2] == ':' && pair(text[3:]) < 60
	}
	return false
}

// pair reads the two digits that text begins with, as 100 if one is none.
func pair(text []byte) int {
	high, low := text[0]-'0', text[1]-'0'
	if high > 9 || low > 9 {
		return 100
	}
	return int(high)*10 + int(low)
}

func daysOf(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && year%100 != 0 || year%400 == 0 {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
