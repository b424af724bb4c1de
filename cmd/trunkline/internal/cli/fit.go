package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// columnGap is the space between two columns of a table, in characters.
const columnGap = 2

// Columns is the width of the terminal that w is, 0 if it is none or has no known width.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// fit breaks cells at their spaces, those of the widest columns first, so that rows take no more
// than width characters, and behind / and _ where that is not enough. Rows whose words are wider
// than that stay as they are: a terminal breaks them no worse.
func fit(rows [][]string, width int) [][]string {
	const joiner = "\u2060" // no cell has it: Visible writes it as an escape
	fitted, ok := fitWords(rows, width)
	if !ok {
		if fitted, ok = fitWords(replaced(rows, "/", "/"+joiner+" ", "_", "_"+joiner+" "), width); !ok {
			return rows
		}
	}
	return replaced(fitted, joiner+" ", "", joiner, "")
}

// replaced returns rows with some texts for others.
func replaced(rows [][]string, texts ...string) [][]string {
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for j := range row {
			rows[i][j] = strings.NewReplacer(texts...).Replace(row[j])
		}
	}
	return rows
}

func fitWords(rows [][]string, width int) (fitted [][]string, ok bool) {
	var widths, words []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, words = append(widths, 0), append(words, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	total := columnGap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for ; total > width; total-- {
		widest := -1
		for i, n := range widths {
			if n > words[i] && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil, false
		}
		widths[widest]--
	}
	for _, row := range rows {
		fitted = append(fitted, wrapRow(row, widths)...)
	}
	return fitted, true
}

// wrapRow is one row as the lines that its cells take.
func wrapRow(row []string, widths []int) [][]string {
	lines := [][]string{slices.Clone(row)}
	for i, cell := range row {
		if utf8.RuneCountInString(cell) <= widths[i] {
			continue
		}
		for j, part := range Wrap(cell, widths[i]) {
			if j == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[j][i] = part
		}
	}
	return lines
}
