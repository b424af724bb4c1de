package page

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"trunkline/bench/report/internal/figures"
)

//go:embed page.md.tmpl
var layout string

// Page is the benchmark page.
type Page struct {
	Markdown []byte
	Charts   map[string][]byte // SVG by the name of its file
}

// builder is what the template asks for its parts. The first part that fails ends the page.
type builder struct {
	set    *figures.Set
	notes  fs.FS
	folder string // of the charts, as the page names it
	charts map[string][]byte
}

// Build makes the page. Its links to charts begin with folder.
func Build(set *figures.Set, notes fs.FS, folder string) (*Page, error) {
	b := &builder{set: set, notes: notes, folder: folder, charts: map[string][]byte{}}
	t, err := template.New("page").Funcs(b.parts()).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the page's template: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return nil, fmt.Errorf("cannot build the page: %w", err)
	}
	return &Page{Markdown: []byte(tidy(out.String())), Charts: b.charts}, nil
}

// parts are the names that the template knows.
func (b *builder) parts() template.FuncMap {
	return template.FuncMap{
		"note":      b.note,
		"runs":      b.runs,
		"goals":     b.goals,
		"misses":    b.misses,
		"peers":     b.peers,
		"scaling":   b.scaling,
		"questions": b.questions,
		"tuning":    b.tuning,
		"printed":   b.printed,
	}
}

// note is the text of a note, empty if there is none.
func (b *builder) note(name string) (string, error) {
	text, err := fs.ReadFile(b.notes, path.Clean(name)+".md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read a note: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// notMeasured is what stands in place of figures that are not there.
func notMeasured(command string) string {
	return "Not measured: `" + command + "` has left no figures."
}

// tidy leaves one empty line where the parts left several, outside of fences, and one line end at
// the end.
func tidy(text string) string {
	var out strings.Builder
	fenced, empty := false, true
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		blank := strings.TrimSpace(line) == ""
		if fenced || !blank || !empty {
			out.WriteString(line)
		}
		empty = blank && !fenced
	}
	return out.String()
}
