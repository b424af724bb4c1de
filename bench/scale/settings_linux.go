package scale

import (
	"fmt"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// variantRows is the table of every variant: larger than the cache nearest to a core.
const variantRows = 100_000

// variants are compared with the first one, which has the defaults of a machine with two CPUs.
func variants() []way {
	return []way{{name: "1 loop, GOGC 100", loops: 1}, {name: "2 loops", loops: 2}, {name: "1 loop, CPUs of its own", loops: 1, apart: true},
		{name: "GOGC 50", loops: 1, gogc: 50}, {name: "GOGC 200", loops: 1, gogc: 200}, {name: "GOGC 400", loops: 1, gogc: 400}}
}

// settings compares settings of the server under the same load in turns.
func settings(r *part.Run) error {
	rows := min(variantRows, r.Rows)
	get := tapes("GetProcess", load.Deal(0, rows, conns)) // where they stand is all the same to every server
	var all []*server
	var steps []goal.Step
	for _, w := range variants() {
		s, err := w.start(r, rows)
		if err != nil {
			return err
		}
		all = append(all, s)
		steps = append(steps, r.Step(s.cell("GetProcess"), s.Server, s.config(get)), r.Step(s.cell(replace), s.Server, s.config(replaceTapes(conns))))
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	t := goal.Grid{Title: fmt.Sprintf("Settings of the server, %s rows; ratios to %q in the same round", count(rows), all[0].name),
		Head: []string{"setting", "load", "CPU ratio", "requests/s ratio"}}
	for _, method := range []string{"GetProcess", replace} {
		for _, s := range all {
			at, base := s.cell(method), all[0].cell(method)
			t.Add(s.name, method, r.Report.Ratio(at, base, goal.CPU), r.Report.Ratio(at, base, goal.Rate))
		}
	}
	r.Report.Table(t)
	return nil
}
