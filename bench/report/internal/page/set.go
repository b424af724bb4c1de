package page

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
)

// partNames are the parts that the page knows, in its order. Others come after them.
var partNames = []string{"peers", "scale", "questions", "store", "restart", "threads", "projects", "tools", "envelopes", "sessions", "soak", "hostile", "cluster"}

// Set is the reports of all parts that were measured, by name.
type Set map[string]*goal.Report

// Read takes all reports of a folder of figures. A folder that is not there holds none; a file that
// is not the report of the part that it is named after is none.
func Read(dir fs.FS) (Set, error) {
	files, err := fs.ReadDir(dir, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the figures: %w", err)
	}
	set := Set{}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || f.IsDir() {
			continue
		}
		b, err := fs.ReadFile(dir, f.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read figures: %w", err)
		}
		r := new(goal.Report)
		if err := json.Unmarshal(b, r); err != nil {
			return nil, fmt.Errorf("cannot read the figures in %s: %w", f.Name(), err)
		}
		if r.Part != name {
			continue
		}
		for _, c := range r.Cells {
			for _, s := range c.Rounds {
				s.Cell = c.Cell // which is not written for each
				r.Samples = append(r.Samples, s)
			}
		}
		set[name] = r
	}
	return set, nil
}

// names are all parts, measured or not, in the order of the page.
func (s Set) names() []string {
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool { return slices.Contains(partNames, name) })
	return append(slices.Clone(partNames), rest...)
}

// all are the reports in the order of the page.
func (s Set) all() (list []*goal.Report) {
	for _, name := range s.names() {
		if r := s[name]; r != nil {
			list = append(list, r)
		}
	}
	return list
}

// problems are what keeps the reports from being published, each behind the names of its parts.
// isPast reports whether a revision is in the history.
func (s Set) problems(isPast func(revision string) bool) []string {
	var order []string
	parts := map[string][]string{}
	for _, r := range s.all() {
		add := func(problem string) {
			if parts[problem] == nil {
				order = append(order, problem)
			}
			parts[problem] = append(parts[problem], r.Part)
		}
		switch rev := r.Machine.Revision; {
		case rev == "" || rev == "unknown":
			add("of an unknown revision")
		case strings.HasSuffix(rev, "-dirty"):
			add("of sources that were not committed, " + rev)
		case !isPast(rev):
			add("of revision " + rev + ", which is not in the history")
		}
		if r.Settings.Quick || r.Settings.Only != "" {
			add("of a quick or partial run")
		}
		if first := s.all()[0]; machine(r.Machine) != machine(first.Machine) {
			add("of another machine than " + first.Part + ": " + machine(r.Machine))
		}
	}
	for i, problem := range order {
		order[i] = strings.Join(parts[problem], ", ") + ": " + problem
	}
	return order
}

// machine describes what has to be the same for all figures.
func machine(m goal.Machine) string {
	return fmt.Sprintf("%d × %s, %s/%s %s, %s", m.CPUs, cmp.Or(m.Model, "processor"), m.OS, m.Arch, m.Kernel, m.Go)
}
