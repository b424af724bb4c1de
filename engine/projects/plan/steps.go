package plan

import (
	"path"
	"strings"

	"trunkline/engine/projects/relpath"
)

// Types of intents that have a rule of their own (exacta §4.5 PC-1).
const (
	createProject = "CreateProject"
	addFeature    = "AddFeature"
	fixBug        = "FixBug"
	buildPackage  = "BuildPackage"
)

// fit checks that the steps are those of the intent: PC-1.
func (c *check) fit() {
	files, builds, creates, projects := 0, 0, 0, 0
	for i := range c.plan.Steps {
		s := &c.plan.Steps[i]
		switch {
		case !s.IsFile():
			builds++
			continue
		case s.Type == FileCreate:
			creates++
			if isProjectFile(s.Target) {
				projects++
			}
		}
		files++
	}
	switch c.plan.Intent.Type {
	case createProject:
		if projects == 0 || creates < 2 {
			c.add("PC-1", nil, "a new project needs a project file and another file")
		}
	case addFeature, fixBug:
		if files == 0 {
			c.add("PC-1", nil, "the plan changes no file")
		}
	case buildPackage:
		if files > 0 || builds == 0 {
			c.add("PC-1", nil, "a build has build steps only")
		}
	}
}

// projectFiles are what makes a directory a project (exacta §4.1).
const projectFiles = " go.mod package.json Cargo.toml CMakeLists.txt Makefile makefile GNUmakefile" +
	" pyproject.toml pom.xml build.gradle build.gradle.kts "

func isProjectFile(target string) bool {
	base := path.Base(target)
	switch path.Ext(base) {
	case ".sln", ".csproj", ".fsproj", ".vbproj":
		return true
	}
	return listed(projectFiles, base)
}

// listed reports whether a list, words with a space on both sides, has a word.
func listed(list, w string) bool { return w != "" && strings.Contains(list, " "+w+" ") }

// step checks the target of one step: PV-4, PV-9, PV-10, PV-11, PD-1.
func (c *check) step(s *Step) {
	if s.Type == Build {
		if s.Target != "." {
			c.add("PV-4", s, "the target of a build is the project, not %s", s.Target)
		}
		return
	}
	if !relpath.Valid(s.Target) {
		c.add("PV-4", s, "%q is not a path inside the project", s.Target)
		return
	}
	t := c.target(s.Target)
	if t.Denied {
		c.add("PV-10", s, "%s is denied by the rules for files", s.Target)
		return // nothing else is known about it
	}
	switch {
	case t.Unsafe:
		c.add("PV-4", s, "%s is a symbolic link or no regular file, or is behind one", s.Target)
	case s.Type == FileCreate && t.Exists:
		c.add("PV-9", s, "%s is there already", s.Target)
	case s.Type == FileCreate:
	case !t.Exists:
		c.add("PV-9", s, "%s is missing", s.Target)
	case !t.Text:
		c.add("PV-11", s, "%s is not UTF-8 text", s.Target)
	}
	if !c.facts.Making && t.Hash != s.Pre {
		c.add("PD-1", s, "%s changed since the plan was made", s.Target)
	}
}

// nested checks that no target is to be the directory of another one: PV-4. A plan with more steps
// than are allowed is not valid anyway.
func (c *check) nested() {
	if len(c.plan.Steps) > maxSteps {
		return
	}
	for i := range c.plan.Steps {
		s := &c.plan.Steps[i]
		for k := range c.plan.Steps[:i] {
			f := &c.plan.Steps[k]
			if s.IsFile() && f.IsFile() && s.Target != f.Target && (s.under(f.Target) || f.under(s.Target)) {
				c.add("PV-4", s, "of %s and %s one cannot be the directory of the other", f.Target, s.Target)
			}
		}
	}
}

// twice checks that no target has two steps: PS-2, PS-3. A project may be built more than once.
func (c *check) twice() {
	first := map[string]*Step{}
	for i := range c.plan.Steps {
		s := &c.plan.Steps[i]
		if !s.IsFile() {
			continue
		}
		f, again := first[s.Target]
		if !again {
			first[s.Target] = s
			continue
		}
		c.add("PS-2", s, "%s has more than one step", s.Target)
		if (f.Type == FileDelete) != (s.Type == FileDelete) {
			c.add("PS-3", s, "%s is deleted and edited", s.Target)
		}
	}
}
