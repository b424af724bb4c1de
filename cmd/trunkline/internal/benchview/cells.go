package benchview

import (
	"strings"
	"unicode"
)

// ellipsis ends what was cut.
const ellipsis = '…'

// clean makes a text from outside fit to show: what a terminal would take for a command (control
// characters, escapes), what turns the direction of writing and what is no UTF-8 becomes a
// replacement character; white space becomes a space.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u200d': // joins emoji
			return r
		case r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.Z, r):
			return ' '
		case unicode.Is(unicode.C, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// cells is how many columns of a terminal s takes at most: East Asian wide characters and emoji
// two, marks none. Joined emoji count each for itself, as terminals that do not join them show
// them, so the true width may be less and is never more.
func cells(s string) int {
	n, last := 0, 0
	for _, r := range s {
		w := runeCells(r, last)
		n += w
		last = w
	}
	return n
}

// runeCells is the width of r after a character that was last wide.
func runeCells(r rune, last int) int {
	switch {
	case r == '\ufe0f' && last == 1: // asks for the emoji form, which is wide
		return 1
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// clip cuts s to at most n cells and ends it with an ellipsis if something is gone. Marks stay with
// what they belong to.
func clip(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	used, last := 0, 0
	for i, r := range s {
		w := runeCells(r, last)
		if used+w > n-1 {
			return s[:i] + string(ellipsis)
		}
		used += w
		last = w
	}
	return s
}

// padRight fills s with spaces to n cells, padLeft puts them before it.
func padRight(s string, n int) string { return s + blanks(n-cells(s)) }

func padLeft(s string, n int) string { return blanks(n-cells(s)) + s }

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

// wide are the characters of two columns: East_Asian_Width W and F of Unicode 16. Blocks that are
// nearly all wide are taken whole: an overestimate leaves a gap, an underestimate would break a
// line.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f0, 1}, {0x23f3, 0x23f3, 1},
		{0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1}, {0x2630, 0x2637, 1}, {0x2648, 0x2653, 1}, {0x267f, 0x267f, 1}, {0x268a, 0x268f, 1},
		{0x2693, 0x2693, 1}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1}, {0x26ce, 0x26ce, 1},
		{0x26d4, 0x26d4, 1}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26f5, 1}, {0x26fa, 0x26fa, 1}, {0x26fd, 0x26fd, 1},
		{0x2705, 0x2705, 1}, {0x270a, 0x270b, 1}, {0x2728, 0x2728, 1}, {0x274c, 0x274c, 1}, {0x274e, 0x274e, 1}, {0x2753, 0x2755, 1},
		{0x2757, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27b0, 0x27b0, 1}, {0x27bf, 0x27bf, 1}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b50, 1},
		{0x2b55, 0x2b55, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1},
		{0xfe10, 0xfe1f, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18dff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1d300, 0x1d376, 1}, {0x1f000, 0x1faff, 1}, {0x20000, 0x3fffd, 1},
	},
}
