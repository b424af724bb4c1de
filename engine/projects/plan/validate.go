package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/jsonx"
)

// Limits bound a plan (exacta §4.5 PV-8). A project may lower them; 0 stands for the default.
type Limits struct {
	Steps     int // 10
	Files     int // 15
	DiffLines int // 500, of each step
}

// Bounds of every plan.
const (
	maxSteps       = 10
	maxFiles       = 15
	maxDiffLines   = 500
	maxConstraints = 10
	maxTokens      = 100_000
)

// Target is what is at a path now.
type Target struct {
	Unsafe bool   // it is a symbolic link or no regular file, or behind one (PV-4)
	Denied bool   // by the rules of exacta §4.17 (PV-10)
	Exists bool   // PV-9
	Text   bool   // UTF-8 without NUL in its first 8 KiB (PV-11)
	Hash   string // SHA-256 in hex; empty if absent (PD-1)
}

// Tree answers what a plan is compared with.
type Tree interface {
	// Target returns what is at a path that is relative and safe in form.
	Target(path string) Target
	// Defining returns the files that define a name of code.
	Defining(symbol string) []string
}

// Facts is what is true of the project now.
type Facts struct {
	Tree   Tree
	Config string // the fingerprint of the configuration (PD-2)
	Limits Limits
	// Making is set while the plan is made: nothing can have drifted, and PD rules do not apply.
	Making bool
}

// Violation is a rule that a plan breaks (exacta §4.5).
type Violation struct {
	Code    string
	Message string
	StepID  string // empty if it is about the whole plan
	order   int
}

// Drifted reports whether the project changed since the plan was made: a PD rule is broken.
func Drifted(list []Violation) bool {
	return slices.ContainsFunc(list, func(v Violation) bool { return strings.HasPrefix(v.Code, "PD-") })
}

// AppendViolations appends the JSON array of violations to dst.
func AppendViolations(dst []byte, list []Violation) []byte {
	dst = append(dst, '[')
	for i := range list {
		v := &list[i]
		b := jsonx.Build(jsonx.AppendComma(dst)).Text("code", v.Code).Text("message", v.Message)
		dst = texted(b, "step_id", v.StepID).End()
	}
	return append(dst, ']')
}

// Validate returns what is wrong with the plan (exacta §4.5), sorted by code, then by the order of
// the steps. A violation of the whole plan comes before those of steps.
func Validate(p *Plan, facts Facts) []Violation {
	c := check{plan: p, facts: facts, targets: map[string]Target{}}
	c.shape()
	c.size()
	c.fit()
	for i := range p.Steps {
		c.step(&p.Steps[i])
	}
	c.nested()
	c.twice()
	for i := range p.Constraints {
		c.constraint(&p.Constraints[i])
	}
	if !facts.Making && p.ConfigFingerprint != facts.Config {
		c.add("PD-2", nil, "the configuration changed since the plan was made")
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), cmp.Compare(a.order, b.order))
	})
	return c.found
}

// check is one validation.
type check struct {
	plan    *Plan
	facts   Facts
	targets map[string]Target
	found   []Violation
}

// add notes a violation by a step, or by the whole plan.
func (c *check) add(code string, s *Step, format string, args ...any) {
	v := Violation{Code: code, Message: fmt.Sprintf(format, args...)}
	if s != nil {
		v.StepID, v.order = s.ID, s.Order
	}
	c.found = append(c.found, v)
}

// target returns what is at a path now.
func (c *check) target(path string) Target {
	t, ok := c.targets[path]
	if !ok {
		t = c.facts.Tree.Target(path)
		c.targets[path] = t
	}
	return t
}

// shape checks the graph of steps: PV-1, PV-2, PV-3, PV-6, PV-7.
func (c *check) shape() {
	steps := c.plan.Steps
	if len(steps) == 0 {
		c.add("PV-1", nil, "the plan has no step")
	}
	orders := map[string]int{}
	for i := range steps {
		s := &steps[i]
		if _, again := orders[s.ID]; again {
			c.add("PV-6", s, "the id of step %d is that of an earlier step", s.Order)
		} else {
			orders[s.ID] = i
		}
		if s.Order != i+1 {
			c.add("PV-7", s, "step %d has the order %d", i+1, s.Order)
		}
	}
	for i := range steps {
		s := &steps[i]
		for _, id := range s.Dependencies {
			if at, ok := orders[id]; !ok {
				c.add("PV-2", s, "step %d depends on a step that is not in the plan", s.Order)
			} else if at >= i {
				c.add("PV-3", s, "step %d depends on a step that does not come earlier", s.Order)
			}
		}
	}
}

// size checks the limits: PV-5, PV-8.
func (c *check) size() {
	p, l := c.plan, c.facts.Limits
	if p.EstimatedTokens > maxTokens {
		c.add("PV-5", nil, "the plan takes %d tokens; %d are allowed", p.EstimatedTokens, maxTokens)
	}
	if most := bound(l.Steps, maxSteps); len(p.Steps) > most {
		c.add("PV-8", nil, "the plan has %d steps; %d are allowed", len(p.Steps), most)
	}
	if n := len(p.Constraints); n > maxConstraints {
		c.add("PV-8", nil, "the plan has %d constraints; %d are allowed", n, maxConstraints)
	}
	files := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.IsFile() {
			files[s.Target] = true
		}
		most := bound(l.DiffLines, maxDiffLines)
		if n := strings.Count(s.Diff, "\n"); n > most {
			c.add("PV-8", s, "the diff of step %d has %d lines; %d are allowed", s.Order, n, most)
		}
	}
	if most := bound(l.Files, maxFiles); len(files) > most {
		c.add("PV-8", nil, "the plan changes %d files; %d are allowed", len(files), most)
	}
}

// bound returns the lower one of a limit and its default.
func bound(limit, most int) int {
	if limit <= 0 {
		return most
	}
	return min(limit, most)
}
