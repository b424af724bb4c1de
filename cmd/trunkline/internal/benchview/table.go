package benchview

import "strings"

// The narrowest that the first column of a table is cut to before the table is wider than asked
// for.
const narrowestName = 6

// column is one column of a table. The first is a name and left-aligned, all others are numbers and
// right-aligned. Where the width does not suffice, the column with the greatest drop goes first; 0
// stays.
type column struct {
	head string
	drop int
}

// table lays out rows below the heads of cols, two cells apart, within width cells if it can: first
// columns are dropped, then names are cut. The first line are the heads. Cells of a row beyond cols
// are ignored.
func table(width int, cols []column, rows [][]string) []string {
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
		heads[i] = c.head
	}
	out := []string{row(heads, widths, keep)}
	for _, r := range rows {
		out = append(out, row(r, widths, keep))
	}
	return out
}

func columnWidths(cols []column, rows [][]string) []int {
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = cells(c.head)
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
func mostDroppable(cols []column, keep []int) int {
	at := -1
	for i, c := range keep {
		if cols[c].drop > 0 && (at < 0 || cols[c].drop > cols[keep[at]].drop) {
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
