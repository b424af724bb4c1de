package jsonx

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendUnescaped appends the meaning of raw, the contents of a checked string (Token.Raw), to dst.
// A lone surrogate escape becomes U+FFFD, so that the output is valid UTF-8 (kernel-ipc §3.3). The
// output is never longer than raw. It allocates only if dst has no room.
func AppendUnescaped(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := 0
		if len(raw) < 8 || markByte(binary.LittleEndian.Uint64(raw), '\\') != 0 {
			dst, n = appendShortMeaning(dst, raw)
			raw = raw[n:]
		} else if n = bytes.IndexByte(raw[8:], '\\'); n < 0 {
			return append(dst, raw...)
		} else {
			n += 8
			dst, raw = append(dst, raw[:n]...), raw[n:]
		}
		if n == 0 {
			dst, raw = appendEscape(dst, raw)
		}
	}
	return dst
}

// appendShortMeaning appends the meaning of the first bytes of raw, at most eight, up to an escape
// of another character than a quote, and returns how many they were.
func appendShortMeaning(dst, raw []byte) (out []byte, n int) {
	at, k := len(dst), 0
	if cap(dst)-at < 8 {
		if n = bytes.IndexByte(raw, '\\'); n < 0 {
			n = len(raw)
		}
		return append(dst, raw[:n]...), n
	}
	room := dst[at : at+8]
	for ; n < len(raw) && k < 8; n++ {
		c := raw[n]
		if c == '\\' {
			if n+1 >= len(raw) || raw[n+1] != '"' {
				break
			}
			n++
			c = '"'
		}
		room[k&7] = c
		k++
	}
	return dst[:at+k], n
}

// appendEscape appends the meaning of the escape that raw begins with and returns what follows it.
func appendEscape(dst, raw []byte) (out, rest []byte) {
	if len(raw) < 2 {
		return utf8.AppendRune(dst, utf8.RuneError), nil
	}
	c := raw[1]
	switch c {
	case 'u':
		r, size := unescapeRune(raw)
		return utf8.AppendRune(dst, r), raw[size:]
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	}
	return append(dst, c), raw[2:]
}

// unescapeRune returns the character of the \uXXXX escape or pair at the front of raw, and its
// length.
func unescapeRune(raw []byte) (r rune, size int) {
	r = hexRune(raw)
	if r < 0 {
		return utf8.RuneError, 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, hexRune(raw[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return utf8.RuneError, 6
}

// loneSurrogate returns the offset of the first escape of half a character in raw, the contents of
// a checked string; -1 if there is none.
func loneSurrogate(raw []byte) int {
	for i := 0; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		half := utf16.IsSurrogate(hexRune(raw[i:]))
		if !half {
			i += 2
			continue
		}
		r, size := unescapeRune(raw[i:])
		if r == utf8.RuneError {
			return i
		}
		i += size
	}
	return -1
}

// hexRune returns the value of the \uXXXX escape that raw begins with, -1 if there is none.
func hexRune(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	a, b, c, d := hexValue(raw[2]), hexValue(raw[3]), hexValue(raw[4]), hexValue(raw[5])
	if a|b|c|d < 0 {
		return -1
	}
	return a<<12 | b<<8 | c<<4 | d
}

// AppendString appends s to dst as a quoted JSON string and returns the result: quote, backslash
// and control characters are escaped, other UTF-8 stands as it is, and bytes that are not UTF-8
// become U+FFFD, so that the result always passes Check. It allocates only if dst has no room.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	return appendQuoted(dst, lend(s))
}

// AppendText is AppendString without the quotes.
func AppendText[T ~string | ~[]byte](dst []byte, s T) []byte { return appendText(dst, lend(s)) }

// Plain reports whether s is printable ASCII without quotes and backslashes: then it stands as it
// is between the quotes of a JSON string.
func Plain(s string) bool { return plainRun(lend(s), 0) == len(s) }

func appendQuoted(dst, s []byte) []byte {
	return append(appendText(append(dst, '"'), s), '"')
}

// appendText is appendQuoted without the quotes.
func appendText(dst, s []byte) []byte {
	for len(s) > 0 {
		n := 0
		if len(s) < 8 || markSpecial(binary.LittleEndian.Uint64(s)) != 0 {
			dst, n = appendShort(dst, s)
			s = s[n:]
		} else {
			n = plainRun(s, 8)
			dst, s = append(dst, s[:n]...), s[n:]
		}
		switch {
		case n > 0 || len(s) == 0:
		case s[0] < utf8.RuneSelf:
			dst, s = appendEscaped(dst, s[0]), s[1:]
		default:
			dst, s = appendMultibyte(dst, s)
		}
	}
	return dst
}

// shortRun is how many bytes appendShort takes, each as up to two.
const shortRun = 16

// appendShort appends the first bytes of s, at most shortRun, up to one that is neither printable
// ASCII nor fits, and returns how many they were. JSON in a string has a quote every few bytes:
// there bytes are faster than words.
func appendShort(dst, s []byte) (out []byte, n int) {
	at, k := len(dst), 0
	if cap(dst)-at < 2*shortRun {
		n = plainRun(s, 0)
		return append(dst, s[:n]...), n
	}
	room := dst[at : at+2*shortRun]
	s = s[:min(len(s), shortRun)]
	for ; n < len(s); n++ {
		c := s[n]
		e := escapeBytes[c]
		if e > 1 {
			break
		}
		room[k&(2*shortRun-1)] = '\\'
		k += int(e)
		room[k&(2*shortRun-1)] = c
		k++
	}
	return dst[:at+k], n
}

// appendMultibyte copies the run of non-ASCII characters at the front of s, and returns the rest.
func appendMultibyte(dst, s []byte) (out, rest []byte) {
	n, kind := scanMultibyte(s, 0)
	dst, s = append(dst, s[:n]...), s[n:]
	if kind == InvalidUTF8 {
		return utf8.AppendRune(dst, utf8.RuneError), s[1:]
	}
	return dst, s
}

// escapeBytes is how many bytes stand before a character in a string: a backslash or none. It is 2
// for bytes that need more than that.
var escapeBytes = func() (n [256]uint8) {
	for c := range n {
		switch {
		case c == '"' || c == '\\':
			n[c] = 1
		case c < ' ' || c >= utf8.RuneSelf:
			n[c] = 2
		}
	}
	return n
}()

const lowerHex = "0123456789abcdef"

// appendEscaped appends the escape of a quote, a backslash or a control character.
func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
}
