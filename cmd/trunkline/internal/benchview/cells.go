package benchview

import (
	"strings"
	"unicode"
)

// ellipsis ends what was cut.
const ellipsis = '…'

// Clean makes a text from outside fit to show: what a terminal would take for a command (control
// characters, escapes), what turns the direction of writing and what is no UTF-8 becomes a
// replacement character; white space becomes a space.
func Clean(s string) string {
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

// Style is the parameter of a terminal's "select graphic rendition"; Plain needs none.
type Style string

// The styles.
const (
	Plain  Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Bad    Style = "31"
	Good   Style = "32"
)

// Span is a text of one style.
type Span struct {
	Text string
	As   Style
}

// Line is one line of the block, before it is cut to a width.
type Line []Span

// Render cuts l to width cells and adds its colours, if asked to. Nothing it returns moves the
// cursor.
func (l Line) Render(width int, color bool) string {
	var b strings.Builder
	for _, s := range l {
		text := clip(s.Text, width)
		width -= cells(text)
		if !color || s.As == Plain || text == "" {
			b.WriteString(text)
			continue
		}
		b.WriteString("\x1b[" + string(s.As) + "m" + text + "\x1b[0m")
	}
	return strings.TrimRight(b.String(), " ")
}

// cells is the width of l before it is cut.
func (l Line) cells() int {
	n := 0
	for _, s := range l {
		n += cells(s.Text)
	}
	return n
}

// labelCells is the width of the labels at the left of the block.
const labelCells = 8

// Labelled is a line of items after a label, two cells apart, as many as fit: those that matter
// most come first, and none is cut but the first.
func Labelled(width int, label string, items ...Span) Line {
	l := Line{{padRight(label, labelCells), Faint}}
	used := labelCells
	for i, it := range items {
		gap := 0
		if i > 0 {
			gap = 2
		}
		n := gap + cells(it.Text)
		if i > 0 && used+n > width {
			break
		}
		l = append(l, Span{blanks(gap), Plain}, it)
		used += n
	}
	return l
}

// The narrowest that the first column of a table is cut to before the table is wider than asked
// for.
const narrowestName = 6

// Column is one column of a table. The first is a name and left-aligned, all others are numbers and
// right-aligned. Where the width does not suffice, the column with the greatest drop goes first; 0
// stays.
type Column struct {
	Head string
	Drop int
}

// Table lays out rows below the heads of cols, two cells apart, within width cells if it can: first
// columns are dropped, then names are cut. The first line are the heads. Cells of a row beyond cols
// are ignored.
func Table(width int, cols []Column, rows [][]string) []string {
	keep := make([]int, len(cols))
	for i := range keep {
		keep[i] = i
	}
	widths := columnWidths(cols, rows)
	for total(widths, keep) > width {
		at := mostDroppable(cols, keep)
		if at < 0 {
			break
		}
		keep = append(keep[:at], keep[at+1:]...)
	}
	if over := total(widths, keep) - width; over > 0 {
		widths[0] = max(widths[0]-over, min(narrowestName, widths[0]))
	}
	heads := make([]string, len(cols))
	for i, c := range cols {
		heads[i] = c.Head
	}
	out := []string{row(heads, widths, keep)}
	for _, r := range rows {
		out = append(out, row(r, widths, keep))
	}
	return out
}

func columnWidths(cols []Column, rows [][]string) []int {
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = cells(c.Head)
		for _, r := range rows {
			if i < len(r) {
				widths[i] = max(widths[i], cells(r[i]))
			}
		}
	}
	return widths
}

func total(widths, keep []int) int {
	n := 2 * (len(keep) - 1)
	for _, i := range keep {
		n += widths[i]
	}
	return n
}

// mostDroppable returns where in keep the column is that goes first, -1 if all must stay.
func mostDroppable(cols []Column, keep []int) int {
	at := -1
	for i, c := range keep {
		if cols[c].Drop > 0 && (at < 0 || cols[c].Drop > cols[keep[at]].Drop) {
			at = i
		}
	}
	return at
}

func row(texts []string, widths, keep []int) string {
	var b strings.Builder
	for n, i := range keep {
		text := ""
		if i < len(texts) {
			text = texts[i]
		}
		if n == 0 {
			b.WriteString(padRight(clip(text, widths[i]), widths[i]))
			continue
		}
		b.WriteString("  " + padLeft(text, widths[i]))
	}
	return strings.TrimRight(b.String(), " ")
}
