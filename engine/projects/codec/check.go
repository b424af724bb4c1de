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
	year, ok1 := number(text[:4])
	month, ok2 := number(text[5:7])
	day, ok3 := number(text[8:10])
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) {
		return false
	}
	if !below(text[11:13], 24) || !below(text[14:16], 60) {
		return false
	}
	text = text[16:]
	if len(text) > 0 && text[0] == ':' {
		if len(text) < 3 || !below(text[1:3], 61) { // a leap second is the 61st
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
		return below(text, 24)
	case 4:
		return below(text[:2], 24) && below(text[2:], 60)
	case 5:
		return below(text[:2], 24) && text[2] == ':' && below(text[3:], 60)
	}
	return false
}

// number reads digits only.
func number(text []byte) (n int, ok bool) {
	if digits(text) != len(text) {
		return 0, false
	}
	for _, c := range text {
		n = n*10 + int(c-'0')
	}
	return n, true
}

func below(text []byte, limit int) bool {
	n, ok := number(text)
	return ok && n < limit
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
