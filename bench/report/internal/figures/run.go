package figures

import "trunkline/bench/internal/goal"

// Run is the JSON file of one measuring command. What a command does not measure is empty.
type Run struct {
	Machine  Machine        `json:"machine"`
	Settings Settings       `json:"settings"`
	Cells    []goal.Summary `json:"cells"`
	Goals    []goal.Goal    `json:"goals"`
	Charts   []goal.Chart   `json:"charts"`
	Tables   []Table        `json:"tables"`

	// Of the peers alone: the rounds of the cells that few goals are about, the address of a server
	// given to the run, and what could not be measured.
	GridRounds int      `json:"grid_rounds"`
	Peer       string   `json:"peer"`
	Missing    []string `json:"missing"`
}

// Machine is where, when and on which revision a run took place, as bench/internal/load writes it.
// That package is for Linux alone, and the page can be generated anywhere.
type Machine struct {
	Date     string `json:"date"`
	Revision string `json:"revision"`
	CPUs     int    `json:"cpus"`
	Arch     string `json:"arch"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Load     string `json:"load_average"`
	Disk     string `json:"filesystem"`
}

// Settings are the flags that the figures of a run depend on, as bench/internal/load writes them.
type Settings struct {
	Rounds int     `json:"rounds"`
	Window float64 `json:"window_seconds"`
	Rows   int     `json:"rows"`
	Loops  int     `json:"loops"`
	Pinned bool    `json:"pinned"`
}

// Table is figures that are no chart.
type Table struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// Samples are all samples of the run's cells, each with its cell, for ratios.
func (r *Run) Samples() (all []goal.Sample) {
	for _, c := range r.Cells {
		for _, s := range c.Rounds {
			s.Cell = c.Cell
			all = append(all, s)
		}
	}
	return all
}
