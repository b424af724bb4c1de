package goal

import (
	"fmt"
	"io"
)

// Step is one turn within a round. It may leave no sample, or one each of several cells.
type Step struct {
	Name    string // in the message when it fails
	Measure func() ([]Sample, error)
}

// One is the step that measures one cell. The sample need not name the cell.
func One(c Cell, measure func() (Sample, error)) Step {
	return Step{c.String(), func() ([]Sample, error) {
		s, err := measure()
		s.Cell = c
		return []Sample{s}, err
	}}
}

// Rounds takes all steps n times, each second time in the opposite order, and returns what they
// left, by round. It reports on progress when a round is done. It ends at the first error.
func Rounds(n int, steps []Step, progress io.Writer) (all []Sample, err error) {
	for round := range n {
		for i := range steps {
			step := steps[i]
			if round%2 == 1 {
				step = steps[len(steps)-1-i]
			}
			got, err := step.Measure()
			if err != nil {
				return nil, fmt.Errorf("cannot measure %s: %w", step.Name, err)
			}
			for _, s := range got {
				s.Round = round
				all = append(all, s)
			}
		}
		fmt.Fprintf(progress, "round %d of %d done\n", round+1, n)
	}
	return all, nil
}
