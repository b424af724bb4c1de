package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table is a Markdown table under construction.
type table struct {
	out strings.Builder
}

// newTable begins a table. A head that begins with ">" stands to the right, as figures do.
func newTable(heads ...string) *table {
	t := new(table)
	rules := make([]string, len(heads))
	for i, h := range heads {
		rules[i] = "---"
		if name, ok := strings.CutPrefix(h, ">"); ok {
			heads[i], rules[i] = name, "---:"
		}
	}
	t.row(heads...)
	t.out.WriteString("|" + strings.Join(rules, "|") + "|\n")
	return t
}

// row adds a row.
func (t *table) row(cells ...string) {
	for _, c := range cells {
		t.out.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	t.out.WriteString("|\n")
}

func (t *table) String() string { return t.out.String() }

// figure writes v with three significant digits, whole from a hundred on and with commas, and "-"
// for 0, which was not measured.
func figure(v float64) string {
	if v == 0 {
		return "-"
	}
	a := math.Abs(v)
	if a >= 99.95 {
		return commas(strconv.FormatFloat(math.Round(v), 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'f', min(12, max(0, 2-int(math.Floor(math.Log10(a))))), 64)
}

// exact is figure for bounds and counts: 0 is 0, and what a number can do without is left away.
func exact(v float64) string {
	if v == 0 {
		return "0"
	}
	s := figure(v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// commas parts the digits of a whole number in threes.
func commas(s string) string {
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// times writes a ratio.
func times(v float64) string { return fmt.Sprintf("%.2f", v) }

// or is s, or instead of an empty one what stands for it.
func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// fence shows text as it was printed.
func fence(text string) string { return "```\n" + text + "\n```" }
