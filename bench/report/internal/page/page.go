// Package page builds the benchmark page of the reports that the parts of ./bench left.
//
// The layout and the prose are in page.md.tmpl; why a goal is missed stands in missed.md of the
// notes, a line for each goal or part. Everything else comes from the reports.
package page

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
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
		"goals": b.goals, "misses": b.misses, "peers": b.peers, "first": b.first, "scaling": b.scaling, "questions": b.questions,
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
