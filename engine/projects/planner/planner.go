// Package planner is the built-in planner of projects (exacta §4.19): it turns a typed request into
// an intent, and an intent into steps.
//
//	input → tokens   spans in quotes, backticks and fences; the rest is split at white space
//	tokens → clauses  ends of sentences, "then", "and" before a verb
//	clause → constraint, or the first form of a table that it matches
//	forms → steps     the edits of one file are one step
//
// It is a pure function of the input, the tree and the configuration: no clock, no I/O of its own.
// The input is untrusted. Any input costs time linear in its length, beside what is read from the
// tree.
package planner

import (
	"slices"
	"strings"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// Tree is the project as the planner sees it. Paths are relative, with slashes. A Tree does not
// change during a call.
type Tree interface {
	// Files returns the index (exacta §4.17), sorted by bytes. It is not written.
	Files() []string
	// Exists reports whether anything is at the path, in the index or not.
	Exists(path string) bool
	// Read returns a file. The bytes are not written.
	Read(path string) ([]byte, error)
	// Scan is Read of a file of the index whose content may be searched: one of at most
	// MaxScan bytes.
	Scan(path string) ([]byte, error)
	// Markers returns the markers of the root (exacta §4.1).
	Markers() []string
}

// Config is what the planner knows about the project beside its files.
type Config struct {
	Configuration string // of builds that name none: Debug or Release
	Toolchain     string // go, npm, cargo, make or dotnet; empty if none is detected
	RootName      string // base name of the root: the name of a new project that has none
}

// Intent is what a request wants (exacta §4.3), without its id and time.
type Intent struct {
	Type        string
	Confidence  float64 // 0 to 1, in hundredths
	RawInput    string
	Files       []string
	Symbols     []string
	Description string
	Constraints []plan.Constraint
}

// Step is one step of a plan before it has an id and a diff.
type Step struct {
	Type          string // plan.FileCreate, plan.FileModify, plan.FileDelete or plan.Build
	Target        string // "." for a build
	Description   string
	Configuration string // of a build
	Dependencies  []int  // orders of earlier steps; the built-in planner needs none
	Old, New      []byte // the file before and after; Old is nil for a create, New for a delete
}

// Extract returns the intent of an input (exacta §4.3). The fault is SEC-001 or FS-003 for an
// unsafe path that would be edited, VAL-002 for constraints that contradict each other.
func Extract(input string, t Tree, c *Config) (Intent, *errcode.Fault) {
	r, f := parse(input, t)
	if f != nil {
		return Intent{}, f
	}
	in := Intent{RawInput: input, Description: describe(input), Constraints: r.constraints}
	in.Files = r.paths()
	in.Symbols = r.symbols()
	s := findSymbols(in.Symbols, t)
	for _, path := range s.files {
		if !slices.Contains(in.Files, path) {
			in.Files = append(in.Files, path)
		}
	}
	in.Type, in.Confidence = r.intent(c, &s)
	return in, nil
}

// describe returns the input with its white space collapsed, at most 200 characters.
func describe(input string) string {
	s := strings.Join(strings.Fields(input), " ")
	n := 0
	for i := range s {
		if n == 200 {
			return s[:i]
		}
		n++
	}
	return s
}

// request is an input that was parsed.
type request struct {
	tree        Tree
	clauses     []clause // without those that are constraints
	constraints []plan.Constraint
	forms       []form // in the order of their clauses
}

// parse splits an input into clauses, constraints and forms.
func parse(input string, t Tree) (*request, *errcode.Fault) {
	r := &request{tree: t}
	x := newLexer(t)
	for _, c := range split(x.tokens(input)) {
		if k, ok := c.constraint(); ok {
			r.constraints = append(r.constraints, k)
			continue
		}
		x.nameRuntimes(c)
		r.clauses = append(r.clauses, c)
		f, ok, unsafe := match(c)
		if unsafe != nil {
			return nil, unsafe
		}
		if ok {
			r.forms = append(r.forms, f)
		}
	}
	return r, Contradiction(r.constraints)
}

// paths returns the paths that the request names, each once.
func (r *request) paths() []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range r.clauses {
		for i := range c {
			if c[i].kind == pathKind && !seen[c[i].value] {
				seen[c[i].value] = true
				out = append(out, c[i].value)
			}
		}
	}
	return out
}

// maxSymbols is how many symbols of a request count (exacta §4.19).
const maxSymbols = 20

// symbols returns the first symbols that the request names, each once.
func (r *request) symbols() []string {
	var out []string
	for _, c := range r.clauses {
		for i := range c {
			if len(out) == maxSymbols {
				return out
			}
			if c[i].isSymbol() && !slices.Contains(out, c[i].value) {
				out = append(out, c[i].value)
			}
		}
	}
	return out
}

// Contradiction finds a description that is demanded and forbidden, whatever its case and space:
// VAL-002 (exacta §4.3).
func Contradiction(list []plan.Constraint) *errcode.Fault {
	types := map[string]string{}
	for i := range list {
		k := &list[i]
		if k.Type == plan.Prefer {
			continue
		}
		key := strings.Join(strings.Fields(strings.ToLower(k.Description)), "")
		if t, ok := types[key]; ok && t != k.Type {
			return errcode.New("VAL-002", "both MUST and MUST_NOT: "+k.Description, k.Description)
		}
		types[key] = k.Type
	}
	return nil
}
