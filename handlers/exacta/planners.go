package exacta

import (
	"cmp"
	"context"
	"slices"

	"trunkline/engine/projects"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/handlers/exacta/external"
	"trunkline/handlers/exacta/workspace"
)

// maxFeedback is how often a planner gets to know what is wrong with its plan (exacta §4.20).
const maxFeedback = 2

// source is what a plan or an intent is made of. outside is nil for the built-in planner.
type source struct {
	tree    *tree
	config  *workspace.Config
	planner *planner.Config
	outside *external.Project
}

// context returns one that ends when the job is aborted. release frees it.
func (j *job) context() (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-j.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// extractOutside asks an external planner for the intent of an ExtractIntent.
func (j *job) extractOutside(s *source) (planner.Intent, *errcode.Fault) {
	ctx, release := j.context()
	defer release()
	in, err := j.p.srv.planner.Extract(ctx, s.outside, j.w.Request.Args.UserInput)
	j.p.srv.counts.asked(err)
	j.w.Planner = err != nil && err.Code != "VAL-002" // that is a fault of the input
	return in, err
}

// planOutside asks an external planner for a plan, and gives it what is wrong with a plan, twice at
// most (exacta §4.20). The answers that led to a valid plan are kept together: a replay asks for
// each of them.
func (j *job) planOutside(s *source) (*plan.Plan, *errcode.Fault) {
	ctx, release := j.context()
	defer release()
	var answers []*external.Answer
	var violations []plan.Violation
	for range 1 + maxFeedback {
		steps, answer, err := j.p.srv.planner.Plan(ctx, s.outside, &j.w.Intent.Intent, violations)
		j.p.srv.counts.asked(err)
		if err != nil {
			j.w.Planner = true
			return nil, err
		}
		answers = append(answers, answer)
		var doc *plan.Plan
		if doc, violations, err = j.outsidePlan(steps, s); err != nil {
			return nil, err
		}
		if len(violations) == 0 {
			j.p.srv.planner.Keep(s.outside, answers...)
			return doc, nil
		}
	}
	for i := range violations {
		violations[i].StepID = "" // the steps have no ids
	}
	return nil, projects.Invalid(violations)
}

// outsidePlan makes a plan of the steps of a planner and returns what is wrong with it. Steps are
// named by their orders.
func (j *job) outsidePlan(steps []external.Step, s *source) (*plan.Plan, []plan.Violation, *errcode.Fault) {
	made, violations := external.Resolve(steps, s.tree, s.planner)
	if len(violations) > 0 {
		return nil, violations, nil
	}
	doc := j.document(s.config)
	for i := range made {
		step, err := stepOf(i+1, &made[i])
		switch {
		case err == nil:
		case err.Code != "VAL-004":
			return nil, nil, err
		case made[i].Old != nil || made[i].New != nil: // else there is a rule that has it as a violation
			violations = append(violations, external.Violation(i+1, err.Code, err.Detail))
		}
		doc.Steps = append(doc.Steps, step)
	}
	j.estimate(doc)
	violations = append(violations, j.p.disk.Check(projects.NewPlan(doc), true)...)
	slices.SortStableFunc(violations, func(a, b plan.Violation) int { return cmp.Compare(a.Code, b.Code) })
	if len(violations) == 0 {
		for i := range made {
			if made[i].Type != plan.Build && doc.Steps[i].Diff == "" {
				violations = append(violations, external.Violation(i+1, "VAL-004", "the target cannot be read"))
			}
		}
	}
	return doc, violations, nil
}
