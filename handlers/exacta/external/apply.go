package external

import (
	"bytes"
	"strconv"

	"trunkline/engine/exacta/diff"
	"trunkline/engine/exacta/plan"
	"trunkline/engine/exacta/planner"
)

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
