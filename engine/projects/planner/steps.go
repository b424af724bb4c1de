package planner

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// Plan returns the steps of an intent in their order (exacta §4.19). It reads the input of the
// intent again, so that the steps fit the tree as it is now. What it returns is still to be
// validated: a file to create may be there. The fault is VAL-004 for a request that has no concrete
// edit or one that cannot be made, else one of Extract.
func Plan(in *Intent, t Tree, c *Config) ([]Step, *errcode.Fault) {
	r, f := parse(in.RawInput, t)
	if f != nil {
		return nil, f
	}
	d := draft{tree: t, config: c, at: map[string]int{}}
	if _, known := r.kind(); !known {
		return nil, invalid("no concrete edit", "a new project and other edits in one request")
	}
	for i := range r.forms {
		if f := d.add(&r.forms[i]); f != nil {
			return nil, f
		}
	}
	if len(r.forms) == 0 && in.Type == addFeature && len(in.Files) == 0 {
		d.addFeature(r)
	}
	if len(d.steps) == 0 {
		return nil, invalid("no concrete edit", in.Type+" names no edit that can be made without a question")
	}
	return d.finish()
}

// invalid is a request that cannot be planned.
func invalid(reason, detail string) *errcode.Fault { return errcode.New("VAL-004", detail, reason) }

// draft is a plan in the making.
type draft struct {
	tree   Tree
	config *Config
	steps  []Step
	at     map[string]int // the step of each file
}

// add appends the steps of a form, or merges its edits into the step of the file.
func (d *draft) add(f *form) *errcode.Fault {
	switch f.do {
	case runBuild:
		d.build(f.clause)
		return nil
	case newProject:
		list := f.files(d.config)
		if list == nil {
			return invalid("no template is stated", "go, npm, cargo, dotnet and make have one")
		}
		for i := range list {
			if bad := d.create(list[i].path, []byte(list[i].content)); bad != nil {
				return bad
			}
		}
		return nil
	case deleteFile:
		return d.each(f.paths, d.remove)
	case createFile:
		return d.each(f.paths, func(path string) *errcode.Fault { return d.create(path, f.content(path)) })
	}
	return d.modify(f)
}

func (d *draft) each(paths []string, do func(string) *errcode.Fault) *errcode.Fault {
	for _, path := range paths {
		if f := do(path); f != nil {
			return f
		}
	}
	return nil
}

// put appends the step of a file.
func (d *draft) put(s Step) {
	d.at[s.Target] = len(d.steps)
	d.steps = append(d.steps, s)
}

// build appends a build. A clause that speaks of a product is about a release.
func (d *draft) build(c clause) {
	conf := d.config.Configuration
	conf = cmp.Or(conf, "Debug")
	if c.findWord(0, " release installer msi nsis production package bundle publish ") >= 0 {
		conf = "Release"
	}
	d.steps = append(d.steps, Step{
		Type: plan.Build, Target: ".", Configuration: conf, Description: "Build (" + conf + ")",
	})
}

// create appends a step that writes a new file.
func (d *draft) create(path string, content []byte) *errcode.Fault {
	if i, ok := d.at[path]; ok {
		if d.steps[i].Type == plan.FileDelete {
			return invalid("a file is deleted and edited", path)
		}
		return invalid("a file is created and is there already", path)
	}
	d.put(Step{Type: plan.FileCreate, Target: path, Description: "Create " + path, New: content})
	return nil
}

// remove appends a step that deletes a file.
func (d *draft) remove(path string) *errcode.Fault {
	if i, ok := d.at[path]; ok {
		if d.steps[i].Type == plan.FileDelete {
			return nil
		}
		return invalid("a file is deleted and edited", path)
	}
	old, f := d.read(path)
	if f != nil {
		return f
	}
	d.put(Step{Type: plan.FileDelete, Target: path, Description: "Delete " + path, Old: old})
	return nil
}

// read returns the text of a file.
func (d *draft) read(path string) ([]byte, *errcode.Fault) {
	if !d.tree.Exists(path) {
		return nil, invalid("a target is missing", path)
	}
	b, err := d.tree.Read(path)
	if f := (*errcode.Fault)(nil); errors.As(err, &f) && strings.HasPrefix(f.Detail, "denied: ") {
		return nil, invalid("a target is denied by the rules for files", path)
	}
	if err != nil {
		return nil, invalid("a target cannot be read", path)
	}
	if !isText(b) {
		return nil, invalid("a target is not text", path)
	}
	return b, nil
}

// modify edits a file, and appends its step unless it has one.
func (d *draft) modify(f *form) *errcode.Fault {
	path := f.paths[0]
	i, ok := d.at[path]
	if !ok {
		old, bad := d.read(path)
		if bad != nil {
			return bad
		}
		i = len(d.steps)
		d.put(Step{
			Type: plan.FileModify, Target: path, Description: "Modify " + path + ": ", Old: old, New: old,
		})
	}
	s := &d.steps[i]
	if s.Type == plan.FileDelete {
		return invalid("a file is deleted and edited", path)
	}
	out, reason := f.edit(s.New)
	if reason != "" {
		return invalid(reason, path)
	}
	if bytes.Equal(out, s.New) {
		return invalid("nothing would change", path)
	}
	if len(out) > len(s.Old)+maxGrowth {
		return invalid("the file would grow too much", path)
	}
	s.New = out
	if s.Type == plan.FileModify {
		s.describe(f.do.part())
	}
	return nil
}

// describe adds a part to the description of a step that modifies, unless it has it.
func (s *Step) describe(part string) {
	head := "Modify " + s.Target + ": "
	parts := strings.TrimPrefix(s.Description, head)
	switch {
	case parts == "":
		s.Description = head + part
	case !slices.Contains(strings.Split(parts, "; "), part):
		s.Description += "; " + part
	}
}

// finish refuses steps whose edits undo each other.
func (d *draft) finish() ([]Step, *errcode.Fault) {
	for i := range d.steps {
		s := &d.steps[i]
		if s.Type == plan.FileModify && bytes.Equal(s.Old, s.New) {
			return nil, invalid("nothing would change", s.Target)
		}
	}
	return d.steps, nil
}
