package benchview

import "strings"

// style is the parameter of a terminal's "select graphic rendition"; plain needs none.
type style string

const (
	plain  style = ""
	strong style = "1"
	faint  style = "2"
	bad    style = "31"
	good   style = "32"
)

// span is a text of one style.
type span struct {
	text string
	as   style
}

// line is one line of the block, before it is cut to a width.
type line []span

// render cuts l to width cells and adds its colours, if asked to. Nothing it returns moves the
// cursor.
func (l line) render(width int, color bool) string {
	var b strings.Builder
	for _, s := range l {
		text := clip(s.text, width)
		width -= cells(text)
		if !color || s.as == plain || text == "" {
			b.WriteString(text)
			continue
		}
		b.WriteString("\x1b[" + string(s.as) + "m" + text + "\x1b[0m")
	}
	return strings.TrimRight(b.String(), " ")
}

// cells is the width of l before it is cut.
func (l line) cells() int {
	n := 0
	for _, s := range l {
		n += cells(s.text)
	}
	return n
}

// labelCells is the width of the labels at the left of the block.
const labelCells = 8

// labelled is a line of items after a label, two cells apart, as many as fit: those that matter
// most come first, and none is cut but the first.
func labelled(width int, label string, items ...span) line {
	l := line{{padRight(label, labelCells), faint}}
	used := labelCells
	for i, it := range items {
		gap := 0
		if i > 0 {
			gap = 2
		}
		n := gap + cells(it.text)
		if i > 0 && used+n > width {
			break
		}
		l = append(l, span{blanks(gap), plain}, it)
		used += n
	}
	return l
}
