package scale

import (
	"fmt"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
)

// variantRows is the table of every variant: larger than the cache nearest to a core.
const variantRows = 100_000

// variants are compared with the first one, which has the defaults of a machine with two CPUs.
func variants(rows int) []way {
	return []way{{"1 loop, GOGC 100", rows, 1, 100, false, nil}, {"2 loops", rows, 2, 100, false, nil}, {"1 loop, CPUs of its own", rows, 1, 100, true, nil},
		{"GOGC 50", rows, 1, 50, false, nil}, {"GOGC 200", rows, 1, 200, false, nil}, {"GOGC 400", rows, 1, 400, false, nil}}
}

// settings compares settings of the server.
func settings(r *part.Run) error {
	methods := []string{"GetProcess", replace}
	all, err := compare(r, methods, variants(min(variantRows, r.Rows)))
	if err != nil {
		return err
	}
	t := goal.Grid{Title: fmt.Sprintf("Settings of the server, %s rows; ratios to %q in the same round", count(all[0].rows), all[0].name),
		Head: []string{"setting", "load", "CPU ratio", "requests/s ratio"}}
	for _, method := range methods {
		for _, s := range all {
			at, base := s.cell(method), all[0].cell(method)
			t.Add(s.name, method, r.Report.Ratio(at, base, goal.CPU), r.Report.Ratio(at, base, goal.Rate))
		}
	}
	r.Report.Table(t)
	return nil
}
