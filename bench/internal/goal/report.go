package goal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
)

// Known formats v, and is "-" for 0, which was not measured.
func Known(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// NewTable begins a table after an empty line. Its cells end with tabs and stand on the right;
// Flush prints it.
func NewTable(out io.Writer) *tabwriter.Writer {
	fmt.Fprintln(out)
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// Table is what a table of cells has beyond what all of them have.
type Table struct {
	Method          string // what its methods are called in the head
	Via, P999, Peak bool   // columns
}

// column is one column of a table of cells.
type column struct {
	head string
	text func(s Summary) string
}

func (t Table) columns() []column {
	figure := func(head, format string, of func(m Sample) float64) column {
		return column{head, func(s Summary) string { return Known(format, of(s.Median)) }}
	}
	list := []column{{"server", func(s Summary) string { return s.Server }}, {t.Method, func(s Summary) string { return s.Method }}}
	if t.Via {
		list = append(list, column{"via", func(s Summary) string { return s.Via }})
	}
	list = append(list,
		column{"conns", func(s Summary) string { return strconv.Itoa(s.Conns) }},
		column{"in flight", func(s Summary) string { return strconv.Itoa(s.Depth) }},
		figure("requests/s", "%.0f", Rate),
		figure("server CPU µs/req", "%.3f", func(m Sample) float64 { return m.CPU / 1e3 }),
		figure("p50 µs", "%.0f", func(m Sample) float64 { return m.P50 }),
		figure("p99 µs", "%.0f", func(m Sample) float64 { return m.P99 }))
	if t.P999 {
		list = append(list, figure("p99.9 µs", "%.0f", func(m Sample) float64 { return m.P999 }))
	}
	list = append(list, figure("RSS MiB", "%.1f", func(m Sample) float64 { return MiB(m.RSS) }))
	if t.Peak {
		list = append(list, figure("peak MiB", "%.1f", func(m Sample) float64 { return MiB(m.Peak) }))
	}
	return list
}

// Print prints a row of medians for each cell.
func (t Table) Print(out io.Writer, cells []Summary) {
	w, columns := NewTable(out), t.columns()
	for _, c := range columns {
		fmt.Fprint(w, c.head, "\t")
	}
	fmt.Fprintln(w)
	for _, s := range cells {
		for _, c := range columns {
			fmt.Fprint(w, c.text(s), "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// WriteJSON writes a report to the file of that name; an empty name asks for none.
func WriteJSON(name string, report any) error {
	if name == "" {
		return nil
	}
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
