package chart

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Sizes of letters in pixels, as in the styles.
const (
	headSize  = 17.0
	titleSize = 14.0
	textSize  = 12.0
)

// advance is how wide a letter is at most in the widest of the fonts that a picture may be shown
// with, as a share of its size.
func advance(r rune) float64 {
	switch {
	case strings.ContainsRune("iljI|.,:;'!·", r):
		return 0.34
	case strings.ContainsRune(" ftr()[]/-", r):
		return 0.42
	case strings.ContainsRune("mwMW@%—…→", r):
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100:
		return 1.4
	case unicode.IsUpper(r):
		return 0.78
	}
	return 0.64
}

// width is how many pixels a text takes at most.
func width(s string, size float64) (w float64) {
	for _, r := range s {
		w += size * advance(r)
	}
	return w
}

// wrap breaks s at spaces into lines of at most so many pixels, and words that are longer within.
func wrap(s string, size, pixels float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && width(line+" "+word, size) <= pixels {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for width(word, size) > pixels {
			n := fitting(word, size, pixels)
			lines, word = append(lines, word[:n]), word[n:]
		}
		line = word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// fitting is how many bytes of s take at most so many pixels: one letter at least.
func fitting(s string, size, pixels float64) int {
	w := 0.0
	for i, r := range s {
		if w += size * advance(r); w > pixels && i > 0 {
			return i
		}
	}
	return len(s)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// num is a place in pixels, to a tenth.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// Figure writes v in short: three significant digits, whole numbers whole, thousands apart.
func Figure(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 99.95 {
		digits = min(12, 2-int(math.Floor(math.Log10(a))))
	}
	s := fixed(v, digits)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// fixed writes v with so many digits behind the point, thousands apart.
func fixed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	point := strings.IndexByte(s, '.')
	if point < 0 {
		point = len(s)
	}
	for i := point - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a size in few letters: 100, 1024, 10k, 1M.
func short(v float64) string {
	switch {
	case v >= 999_500:
		return Figure(v/1e6) + "M"
	case v >= 10_000 || v > 0 && math.Mod(v, 1000) == 0:
		return Figure(v/1e3) + "k"
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return Figure(v)
}

// shortBytes is short for a number of bytes.
func shortBytes(v float64) string {
	switch {
	case v >= 1<<20:
		return Figure(v/(1<<20)) + " MiB"
	case v >= 1<<10:
		return Figure(v/(1<<10)) + " KiB"
	}
	return Figure(v) + " B"
}
