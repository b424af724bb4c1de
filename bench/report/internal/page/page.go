// Package page builds the benchmark page of the reports that the parts of ./bench left.
//
// The layout and the prose are in page.md.tmpl; why a goal is missed stands in missed.md of the
// notes, a line for each goal or part. Everything else comes from the reports.
package page

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"trunkline/bench/internal/goal"
)

//go:embed page.md.tmpl
var layout string

// mostLines is how long the page may be.
const mostLines = 200

// severalEmpty are line ends that leave empty lines, where the parts left one or several.
var severalEmpty = regexp.MustCompile(`\n([ \t]*\n)+`)

// Page is the benchmark page.
type Page struct {
	Markdown []byte
	Charts   map[string][]byte // SVG by the name of its file
	Problems []string          // what keeps the page from being published, which it shows
}

// builder is what the template asks for its parts.
type builder struct {
	Set
	missed string // the note of that name
	folder string // of the charts, as the page names it
	page   Page
}

// Build makes the page. Its links to charts begin with folder; isPast reports whether a revision is
// in the history.
func Build(set Set, notes fs.FS, folder string, isPast func(revision string) bool) (*Page, error) {
	missed, err := fs.ReadFile(notes, "missed.md")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read a note: %w", err)
	}
	b := &builder{Set: set, missed: string(missed), folder: folder, page: Page{Charts: map[string][]byte{}, Problems: set.problems(isPast)}}
	t, err := template.New("page").Funcs(template.FuncMap{
		"problems": func() string { return strings.Join(b.page.Problems, "; ") }, "runs": b.runs, "remarks": b.remarks,
		"goals": b.goals, "misses": b.misses, "peers": b.peers, "tables": b.tables, "scaling": b.scaling, "questions": b.questions,
		"notMeasured": notMeasured,
	}).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the page's template: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return nil, fmt.Errorf("cannot build the page: %w", err)
	}
	text := severalEmpty.ReplaceAllString(strings.TrimSpace(out.String())+"\n", "\n\n")
	b.page.Markdown = []byte(text)
	if n := strings.Count(text, "\n"); n > mostLines {
		b.page.Problems = append(b.page.Problems, fmt.Sprintf("%d lines, at most %d", n, mostLines))
	}
	return &b.page, nil
}

// runs is the machine, and the table of what was measured when, on which revision and how often.
func (b *builder) runs() string {
	t := goal.Grid{Head: []string{"part", "date", "revision", "rounds", "load average", "outcome"}}
	for _, name := range b.names() {
		command, r := "`go run ./bench "+name+"`", b.Set[name]
		if r == nil {
			t.Add(command, "not measured", "", "", "", "")
			continue
		}
		t.Add(command, r.Machine.Date, "`"+r.Machine.Revision+"`",
			fmt.Sprintf("%d of %.2g s", r.Settings.Rounds, r.Settings.Window), r.Machine.Load, outcome(r))
	}
	all := b.all()
	if len(all) == 0 {
		return t.Markdown()
	}
	about := "Machine: " + machine(all[0].Machine)
	if i := slices.IndexFunc(all, func(r *goal.Report) bool { return r.Machine.Disk != "" }); i >= 0 {
		about += "; stores on " + all[i].Machine.Disk
	}
	return about + ".\n\n" + t.Markdown()
}

// remarks are the notes of the parts that fit on a line.
func (b *builder) remarks() string {
	var list []string
	for _, r := range b.all() {
		var notes []string
		for _, note := range r.Notes {
			if !strings.Contains(note, "\n") {
				notes = append(notes, strings.TrimSuffix(note, "."))
			}
		}
		if len(notes) > 0 {
			list = append(list, r.Part+": "+strings.Join(notes, ". ")+".")
		}
	}
	return strings.Join(list, " ")
}

// notMeasured stands in place of the figures of a part.
func notMeasured(name string) string {
	return "Not measured: `go run ./bench " + name + "` has left no figures."
}

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
