package external

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/relpath"
)

// Bounds of an answer beside its bytes. Those of plans (exacta §4.5 PV-8) are tighter; a plan that
// breaks them is a violation that a planner can correct.
const (
	maxListed      = 1000      // files or symbols of an intent
	maxConstraints = 100       // of an intent
	maxSteps       = 100       // of a plan, and dependencies of a step
	maxText        = 4096      // bytes of a description, a symbol or a scope
	maxIntent      = 256 << 10 // bytes of all texts of an intent: projects keep 256 of them
)

// Step is a step of an answer. Resolve reads its change.
type Step struct {
	planner.Step
	change  *diff.Patch   // nil for a file that is created with its content, for a delete and a build
	problem *diff.Problem // why there is no change
}

// reader decodes an answer and keeps what is wrong with it first.
type reader struct {
	f    *errcode.Fault
	left int // bytes of texts that may still come
}

func (r *reader) bad(detail string) {
	if r.f == nil {
		r.f = unclear(detail)
	}
}

// members returns the members of an object; name is what the object is called.
func (r *reader) members(name string, v jsonx.Value, names ...string) []jsonx.Value {
	out := make([]jsonx.Value, len(names))
	if v.Kind != jsonx.ObjectStart {
		r.bad(name + ": no object")
		return out
	}
	jsonx.Pick(v.Raw, names, out)
	return out
}

// text reads a string of at most most bytes, 0 for any number.
func (r *reader) text(name string, v jsonx.Value, most int) string {
	b, ok := v.Text()
	switch {
	case v.Kind == jsonx.End:
		r.bad(name + ": missing")
	case !ok:
		r.bad(name + ": no string")
	case most > 0 && len(b) > most:
		r.bad(name + ": more than " + strconv.Itoa(most) + " bytes")
	}
	if r.left -= len(b); r.left < 0 && r.f == nil {
		r.f = errcode.New("AI-004", "answer: its texts are too long")
	}
	if r.f != nil {
		return ""
	}
	return string(b)
}

// each calls do with the elements of an array of at most most.
func (r *reader) each(name string, v jsonx.Value, most int, do func(jsonx.Value)) {
	if v.Kind == jsonx.End {
		r.bad(name + ": missing")
	} else if v.Kind != jsonx.ArrayStart {
		r.bad(name + ": no array")
	}
	n := 0
	a := jsonx.OpenArray(v.Raw)
	for e, ok := a.Next(); ok && r.f == nil; e, ok = a.Next() {
		if n++; n > most {
			r.bad(name + ": more than " + strconv.Itoa(most))
			return
		}
		do(e)
	}
}

// path reads a path of the project (exacta §4.16 rule 4).
func (r *reader) path(name string, v jsonx.Value) string {
	path := r.text(name, v, 0)
	if _, token := relpath.Check(path); token != "" {
		r.bad(name + ": " + token)
	}
	return path
}

// decodeIntent reads the answer to an extract_intent, which passed usable.
func decodeIntent(result []byte) (planner.Intent, *errcode.Fault) {
	r := &reader{left: maxIntent}
	m := r.members("result", jsonx.ValueOf(result), "type", "confidence", "target", "constraints")
	in := planner.Intent{Type: r.text("type", m[0], 0), Confidence: r.confidence(m[1])}
	if !planner.IsIntent(in.Type) {
		r.bad("type: not one of the intents")
	}
	t := r.members("target", m[2], "files", "symbols", "description")
	r.each("files", t[0], maxListed, func(v jsonx.Value) { in.Files = append(in.Files, r.path("files", v)) })
	r.each("symbols", t[1], maxListed, func(v jsonx.Value) { in.Symbols = append(in.Symbols, r.text("symbols", v, maxText)) })
	in.Description = r.text("description", t[2], maxText)
	r.each("constraints", m[3], maxConstraints, func(v jsonx.Value) {
		c := r.members("constraints", v, "type", "description", "scope")
		k := plan.Constraint{Type: r.text("constraints.type", c[0], 0), Description: r.text("constraints.description", c[1], maxText),
			Scope: r.text("constraints.scope", c[2], maxText)}
		if k.Type != plan.Must && k.Type != plan.MustNot && k.Type != plan.Prefer {
			r.bad("constraints.type: not one of the types")
		}
		in.Constraints = append(in.Constraints, k)
	})
	if r.f != nil {
		return planner.Intent{}, r.f
	}
	return in, nil
}

// confidence reads a number from 0 to 1. What is beyond hundredths is cut off: no answer becomes
// surer than it is.
func (r *reader) confidence(v jsonx.Value) float64 {
	if v.Kind != jsonx.Number {
		r.bad("confidence: no number")
		return 0
	}
	n := jsonx.ParseNumber(v.Raw)
	c := n.Float
	if n.Kind == jsonx.Int {
		c = float64(n.Int)
	}
	if n.Kind == jsonx.Uint || !(c >= 0 && c <= 1) {
		r.bad("confidence: not from 0 to 1")
		return 0
	}
	const noise = 1e-9 // 0.29 is a little less than 29 hundredths
	return math.Floor(c*100+noise) / 100
}

// decodeSteps reads the answer to a generate_plan, which passed usable.
func decodeSteps(result []byte) (steps []Step, f *errcode.Fault) {
	r := &reader{left: maxAnswer}
	m := r.members("result", jsonx.ValueOf(result), "steps", "estimated_tokens")
	r.each("steps", m[0], maxSteps, func(v jsonx.Value) { steps = append(steps, r.step(v)) })
	if m[1].Kind != jsonx.End { // checked, and not used: exacta §4.4 has the formula
		if n, ok := jsonx.ParseInt(m[1].Raw); m[1].Kind != jsonx.Number || !ok || n < 0 {
			r.bad("estimated_tokens: no number of tokens")
		}
	}
	if r.f != nil {
		return nil, r.f
	}
	return steps, nil
}

func (r *reader) step(v jsonx.Value) Step {
	m := r.members("steps", v, "type", "target", "description", "dependencies", "content", "diff")
	s := Step{Step: planner.Step{Type: r.text("steps.type", m[0], 0), Description: r.text("steps.description", m[2], maxText)}}
	r.each("steps.dependencies", m[3], maxSteps, func(v jsonx.Value) {
		n, ok := jsonx.ParseInt(v.Raw)
		if v.Kind != jsonx.Number || !ok || n < 1 || n > math.MaxInt32 {
			r.bad("steps.dependencies: no order of a step")
		}
		s.Dependencies = append(s.Dependencies, int(n))
	})
	if s.Type == plan.Build {
		if s.Target = r.text("steps.target", m[1], 0); s.Target != "." {
			r.bad("steps.target: that of a build is .")
		}
	} else {
		s.Target = r.path("steps.target", m[1])
	}
	content, change := m[4].Kind != jsonx.End, m[5].Kind != jsonx.End
	switch {
	case !slices.Contains([]string{plan.FileCreate, plan.FileModify, plan.FileDelete, plan.Build}, s.Type):
		r.bad("steps.type: not one of the types")
	case s.Type == plan.FileCreate && content == change:
		r.bad("steps: a file_create has either content or diff")
	case s.Type == plan.FileModify && (content || !change):
		r.bad("steps: a file_modify has a diff")
	case (s.Type == plan.FileDelete || s.Type == plan.Build) && (content || change):
		r.bad("steps: a " + s.Type + " has neither content nor diff")
	case content:
		s.New = append([]byte{}, r.text("steps.content", m[4], 0)...) // an empty file is not nil
	case change:
		r.diff(&s, r.text("steps.diff", m[5], 0))
	}
	return s
}

// diff reads the change of a step. A path that no project may use, and a change of another kind
// than that of the step, make the answer unusable. Any other problem is one that the planner can
// correct.
func (r *reader) diff(s *Step, text string) {
	want := diff.Modify
	if s.Type == plan.FileCreate {
		want = diff.Create
	}
	s.change, s.problem = diff.Parse(text)
	switch {
	case s.problem != nil && s.problem.Code != unfit:
		r.bad("steps.diff: " + s.problem.Token)
	case s.problem != nil:
	case s.change.Op == diff.None && want == diff.Modify:
		s.problem = &diff.Problem{Code: unfit, Token: "no_change", Text: s.Target}
	case s.change.Op != want:
		r.bad("steps.diff: not that of a " + s.Type)
	case s.change.Path != s.Target:
		s.problem = &diff.Problem{Code: unfit, Token: "target", Text: "not a diff of " + s.Target}
	}
}

// unfit is the code of what is wrong with the text of a diff (exacta §4.16).
const unfit = "VAL-003"

// Resolve applies the changes of steps to the files of a tree, in memory. A change that does not
// fit is a violation with the code of its rule in exacta §4.16. A target that cannot be read has
// neither Old nor New: the rules of plans have a violation for it.
func Resolve(steps []Step, t planner.Tree, c *planner.Config) (out []planner.Step, violations []plan.Violation) {
	for i := range steps {
		s := steps[i].Step
		if s.Type == plan.Build {
			s.Configuration = c.Configuration
		}
		if bad := steps[i].resolve(&s, t); bad != nil {
			violations = append(violations, Violation(i+1, bad.Code, bad.Token+": "+bad.Text))
		}
		out = append(out, s)
	}
	return out, violations
}

// Violation returns what is wrong with the step of an order. It is for the planner: the step has no
// id, and is named by its order.
func Violation(order int, code, what string) plan.Violation {
	n := strconv.Itoa(order)
	return plan.Violation{Code: code, Message: "the change of step " + n + " cannot be made: " + what, StepID: n}
}

func (s *Step) resolve(out *planner.Step, t planner.Tree) *diff.Problem {
	if s.problem != nil {
		return s.problem
	}
	switch s.Type {
	case plan.FileDelete, plan.FileModify:
		old, err := t.Read(s.Target)
		if err != nil || diff.Text(old) != nil {
			return nil
		}
		out.Old = append([]byte{}, old...) // an empty file is not nil
	}
	if s.change == nil {
		return nil
	}
	made, bad := s.change.Apply(out.Old)
	if bad == nil && s.Type == plan.FileModify && bytes.Equal(made, out.Old) {
		bad = &diff.Problem{Code: unfit, Token: "no_change", Text: s.Target}
	}
	out.New = made
	return bad
}
