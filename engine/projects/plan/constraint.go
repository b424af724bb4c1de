package plan

import (
	"path"
	"slices"
	"strings"

	"trunkline/engine/projects/relpath"
)

// Lists of words of PS-1.
const (
	touching = " touch modify change edit delete remove create update alter rename "
	packages = " dependency dependencies package packages third-party library libraries "
	// plainNames are paths without an extension (exacta §4.19).
	plainNames = " Makefile makefile GNUmakefile Dockerfile LICENSE README CHANGELOG "
	manifests  = " go.mod go.sum package.json package-lock.json Cargo.toml Cargo.lock pyproject.toml" +
		" requirements.txt pom.xml "
)

// around is what may surround a path in a description.
const around = "\"'`()[]{}<>,;:!?"

// rule is one thing that a constraint forbids.
type rule struct {
	broken func(*Step) bool
	what   string
}

// constraint checks one constraint: PS-1.
func (c *check) constraint(k *Constraint) {
	for _, r := range rules(k, c.facts.Tree) {
		for i := range c.plan.Steps {
			if s := &c.plan.Steps[i]; r.broken(s) {
				c.add("PS-1", s, "step %d %s: %s %s", s.Order, r.what, k.Type, k.Description)
			}
		}
	}
}

// Enforceable reports whether a plan can be checked against the constraint. Others are recorded
// only (exacta §4.5).
func Enforceable(k *Constraint, t Tree) bool { return len(rules(k, t)) > 0 }

// rules returns what a constraint forbids, sentence by sentence of PS-1.
func rules(k *Constraint, t Tree) []rule {
	w := words(k.Description)
	says := func(list string) bool {
		return slices.ContainsFunc(w, func(s string) bool { return listed(list, s) })
	}
	var out []rule
	if k.Type == Must {
		if len(w) > 0 && w[0] == "only" && isPath(k, t) {
			paths := append(paths(k.Description), k.Scope)
			out = append(out, rule{func(s *Step) bool {
				return s.IsFile() && !slices.ContainsFunc(paths, s.under)
			}, "is elsewhere"})
		}
		return out
	}
	if k.Type != MustNot {
		return nil
	}
	if k.Scope != Global && says(touching) {
		if broken := scoped(k, t); broken != nil {
			out = append(out, rule{broken, "changes " + k.Scope})
		}
	}
	if k.Scope == Global && says(" delete remove ") {
		out = append(out, rule{func(s *Step) bool { return s.Type == FileDelete }, "deletes a file"})
	}
	if says(packages) {
		out = append(out, rule{func(s *Step) bool { return s.IsFile() && isManifest(s.Target) }, "changes a manifest"})
	}
	if says(" build compile ") {
		out = append(out, rule{func(s *Step) bool { return s.Type == Build }, "builds"})
	}
	if k.Scope == Global && says(" create add new ") && says(" file files ") {
		out = append(out, rule{func(s *Step) bool { return s.Type == FileCreate }, "creates a file"})
	}
	return out
}

// scoped returns the test of a step for what is in the scope: at or under a path, or a file that
// defines a name. It is nil for a name that no file defines.
func scoped(k *Constraint, t Tree) func(*Step) bool {
	if isPath(k, t) {
		return func(s *Step) bool { return s.IsFile() && s.under(k.Scope) }
	}
	files := t.Defining(k.Scope)
	if len(files) == 0 {
		return nil
	}
	return func(s *Step) bool { return s.IsFile() && slices.Contains(files, s.Target) }
}

// under reports whether the target is a path or below it.
func (s *Step) under(p string) bool {
	rest, ok := strings.CutPrefix(s.Target, p)
	return ok && (rest == "" || rest[0] == '/')
}

// isPath reports whether the scope of a constraint is a path, and not a name of code.
func isPath(k *Constraint, t Tree) bool {
	if k.Scope == Global {
		return false
	}
	return pathForm(k.Scope) || slices.Contains(paths(k.Description), k.Scope) ||
		relpath.Valid(k.Scope) && t.Target(k.Scope).Exists
}

// pathForm reports whether a word can only be a path.
func pathForm(w string) bool { return strings.ContainsAny(w, "/.") || listed(plainNames, path.Base(w)) }

// paths returns the paths that a description names, without a slash at their end.
func paths(description string) []string {
	var out []string
	for w := range strings.FieldsSeq(description) {
		w = strings.TrimLeft(strings.TrimRight(w, around+"."), around)
		if p := strings.TrimSuffix(w, "/"); pathForm(w) && relpath.Valid(p) {
			out = append(out, p)
		}
	}
	return out
}

// isManifest reports whether a file lists dependencies.
func isManifest(target string) bool {
	base := path.Base(target)
	return listed(manifests, base) || path.Ext(base) == ".csproj"
}

// words returns the runs of a-z, 0-9, apostrophe and hyphen in the lower-case text.
func words(text string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(text), "’", "'"), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\'' && r != '-'
	})
}
