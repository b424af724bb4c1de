package prompt

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the most bytes of a sanitised prompt (threads §4.9).
const MaxBytes = 8192

// Fits reports whether a sanitised prompt has an accepted length.
func Fits(sanitized []byte) bool { return 1 <= len(sanitized) && len(sanitized) <= MaxBytes }

// The marks of an envelope.
var (
	head = []byte("[BRIDGE_TRIGGER")
	tail = []byte("[/BRIDGE_TRIGGER")
)

// Sanitize appends text in sanitised form: CRLF and CR become LF, control characters but TAB and LF
// are dropped, and a line that starts with a mark of an envelope gets "> " in front. Bytes that are
// not UTF-8 become U+FFFD: some terminals obey the bytes 0x80 to 0x9F. It does not change what is
// sanitised.
//
// Marks are looked for after dropping, behind white space and characters that are not seen, and
// behind the line ends of Unicode as well: a reader may take these for the start of a line.
func Sanitize(dst, text []byte) []byte {
	start := len(dst)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; r == '\r' {
			if r = '\n'; len(text) > 0 && text[0] == '\n' {
				continue
			}
		}
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			continue
		}
		dst = utf8.AppendRune(dst, r)
		if r == '\n' || r == '\u2028' || r == '\u2029' {
			dst = quote(dst, start)
			start = len(dst)
		}
	}
	return quote(dst, start)
}

// quote puts "> " in front of the line at start if a mark is the first that is seen of it.
func quote(dst []byte, start int) []byte {
	line := bytes.TrimLeftFunc(dst[start:], unseen)
	if bytes.HasPrefix(line, head) || bytes.HasPrefix(line, tail) {
		return slices.Insert(dst, start, '>', ' ')
	}
	return dst
}

// unseen reports whether r may stand in front of a mark: white space and format characters, such as
// U+200B and U+FEFF.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
