package benchview

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"trunkline/cmd/trunkline/internal/cli"
)

// Clean makes a text from outside fit to show in one line.
func Clean(s string) string { return cli.Visible(strings.ReplaceAll(s, "\t", " ")) }

// cells is how many columns of a terminal s takes: East Asian wide characters and emoji two, marks
// none.
func cells(s string) int { return ansi.StringWidth(s) }

// clip cuts s to at most n cells and ends it with an ellipsis if something is gone.
func clip(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.Truncate(s, n, "…")
}

// padRight fills s with spaces to n cells.
func padRight(s string, n int) string { return s + blanks(n-cells(s)) }

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

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
	heads := make([]string, len(cols))
	for i, c := range cols {
		heads[i] = c.Head
	}
	rows = append([][]string{heads}, rows...)
	keep, widths, over := make([]int, len(cols)), make([]int, len(cols)), -2-width
	for i := range cols {
		keep[i] = i
		for _, r := range rows {
			if i < len(r) {
				widths[i] = max(widths[i], cells(r[i]))
			}
		}
		over += 2 + widths[i]
	}
	for over > 0 {
		first := slices.MaxFunc(keep, func(a, b int) int { return cols[a].Drop - cols[b].Drop })
		if cols[first].Drop == 0 {
			widths[0] = max(widths[0]-over, min(narrowestName, widths[0]))
			break
		}
		keep = slices.DeleteFunc(keep, func(i int) bool { return i == first })
		over -= 2 + widths[first]
	}
	out := make([]string, len(rows))
	for n, r := range rows {
		line := padRight(clip(r[0], widths[0]), widths[0])
		for _, i := range keep[1:] {
			text := ""
			if i < len(r) {
				text = r[i]
			}
			line += "  " + blanks(widths[i]-cells(text)) + text
		}
		out[n] = strings.TrimRight(line, " ")
	}
	return out
}
