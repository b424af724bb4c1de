package tools

import (
	"fmt"
	"path/filepath"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
)

const (
	// fieldScan is the kind of the cells that bench/peers/jsonscan measures.
	fieldScan = "field scan"
	// unchecked is the library of the field scan that does not check the whole line, as trunkline
	// and the others do.
	unchecked = "sonic-searcher"
	// scansPerWindow is how many rows of the field scan take as long as another cell.
	scansPerWindow = 10
)

// scan measures the field scan. Its benchmark is built once, so that no round waits for a compiler.
func (b *bench) scan() error {
	test, err := gobench.Build("bench/peers", "jsonscan", filepath.Join(b.Rig.Dir, "jsonscan.test"))
	if err != nil {
		return err
	}
	err = b.Rounds([]goal.Step{{Name: fieldScan, Measure: func() ([]goal.Sample, error) {
		rows, err := test.Run("Find", b.Window/scansPerWindow, 1)
		if err != nil {
			return nil, err
		}
		return scanSamples(rows)
	}}})
	for _, g := range scanGoals(b.Report.Samples) {
		b.Report.Goal(g)
	}
	return err
}

// scanSamples makes samples of Find/LINE/LIBRARY.
func scanSamples(rows []gobench.Result) (all []goal.Sample, err error) {
	for _, r := range rows {
		parts := strings.Split(r.Name, "/")
		ns := r.Values[gobench.Processor]
		if len(parts) != 3 || ns <= 0 {
			return nil, fmt.Errorf("cannot take %s with %g %s as a row of the field scan", r.Name, ns, gobench.Processor)
		}
		all = append(all, goal.Sample{Cell: scanCell(parts[2], parts[1]), Requests: uint64(r.N), CPU: ns, PerSec: 1e9 / ns})
	}
	return all, nil
}

func scanCell(library, line string) goal.Cell {
	return goal.Cell{Server: library, Method: fieldScan, Via: line}
}

// scanGoals compares the field scan with the libraries that check the line, and with the one that
// does not, which is reported.
func scanGoals(all []goal.Sample) []goal.Goal {
	scan := goal.Goal{What: "field scan / libraries that check the line", Must: mustScan, AtLeast: true}
	free := goal.Goal{What: "field scan / " + unchecked + ", which does not", AtLeast: true}
	for _, c := range goal.Summarize(all) {
		peer := c.Cell
		if g := &scan; peer.Method == fieldScan && peer.Server != trunkline {
			if peer.Server == unchecked {
				g = &free
			}
			g.Add(peer.Via+" "+peer.Server, goal.Ratio(all, scanCell(trunkline, peer.Via), peer, goal.Rate))
		}
	}
	return []goal.Goal{scan, free}
}
