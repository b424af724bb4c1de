package projects

import (
	"strconv"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
)

// Plan is a plan and what became of it (exacta §5.4).
type Plan struct {
	*plan.Plan

	flow   *Flow
	intent *Intent
	fate   string // why it expired or was rejected
	born   time.Time
}

// expire lets a plan expire whose time is over (exacta §3.6, step 18).
func (p *Project) expire() {
	if !p.expired() {
		return
	}
	pl := p.active
	p.retire(pl, "ttl")
	p.settle(Idle, "PlanExpired", nil, pl.flow)
}

// expired reports whether the time of the plan that waits is over.
func (p *Project) expired() bool {
	return p.state == AwaitingApproval && !p.Clock.Fixed() && time.Since(p.active.born) >= p.PlanValidity
}

// retire ends the life of the plan that waits, for a reason.
func (p *Project) retire(pl *Plan, why string) {
	next := plan.Expired
	if why == "rejected" || why == "cancelled" {
		next = plan.Rejected
	}
	if pl.Status.Can(next) {
		pl.Status, pl.fate = next, why
	}
	if p.active == pl {
		p.active = nil
	}
	_ = p.Disk.Keep(pl) // no plan of an earlier session is used, whatever its status
	pl.forget()
}

// forget keeps of a plan what is known of it when it is over: many of them are remembered.
func (pl *Plan) forget() {
	pl.Plan, pl.intent = &plan.Plan{ID: pl.ID, Version: pl.Version, Status: pl.Status}, nil
}

// generate begins a GeneratePlan (exacta §4.4).
func (p *Project) generate(r *Request) {
	i := p.intents[r.Args.Handle]
	switch {
	case p.state == AwaitingApproval && i != p.active.intent:
		p.fail(r, refuse(r.Command, p.state))
		return
	case i == nil:
		p.fail(r, errcode.New("VAL-001", "unknown intent_id"))
		return
	case !i.usable():
		p.fail(r, errcode.New("VAL-001", "the intent was rejected"))
		return
	}
	if err := p.Ready(); err != nil {
		p.fail(r, err)
		return
	}
	if p.state == Completed && !p.acknowledge(r) {
		return
	}
	before := p.active
	p.active = nil
	if err := p.enter(Planning, "GeneratePlan", r, r.flow); err != nil {
		p.active = before
		p.raise(r, r.flow, err)
		p.fail(r, err)
		return
	}
	if before != nil {
		p.retire(before, "superseded")
	}
	if i.Confidence < sureConfidence {
		p.log(r, r.flow, "WARN", "Orchestrator", "the intent has a confidence of "+confidence(i.Confidence)+"; the request confirms it")
	}
	p.progress(r, r.flow, "planning", 1, 3)
	p.activity = &Work{Request: r, Step: -1, Intent: i, Started: time.Now()}
	p.Host.Run(p.activity)
}

// generated ends a GeneratePlan.
func (p *Project) generated(w *Work) {
	r := w.Request
	err := w.Fault
	if err == nil {
		p.name(w.Planned)
		if violations := p.Disk.Check(w.Planned, true); len(violations) > 0 {
			err = Invalid(violations)
		}
	}
	if err == nil {
		pl := w.Planned
		pl.flow, pl.intent, pl.born = r.flow, w.Intent, time.Now()
		err = p.Disk.Keep(pl)
	}
	if err != nil {
		trigger := "PlanInvalid"
		if w.Planner {
			trigger = "PlannerError"
		}
		p.raise(r, r.flow, err)
		p.settle(Failed, trigger, r, r.flow)
		p.fail(r, err)
		return
	}
	pl := w.Planned
	w.Intent.plans++
	p.progress(r, r.flow, "planning", 2, 3)
	p.progress(r, r.flow, "planning", 3, 3)
	p.active = pl
	p.settle(AwaitingApproval, "PlanReady", r, r.flow)
	p.keep(pl)
	for _, text := range w.Loose {
		p.logAbout(r, r.flow, "WARN", "Orchestrator", "a constraint cannot be enforced", ": "+text)
	}
	p.propose(r, r.flow, pl.Plan)
	p.log(r, r.flow, "INFO", "AIInterface", "plan proposed: version "+strconv.Itoa(pl.Version)+", steps: "+strconv.Itoa(len(pl.Steps)))
	p.done(r, appendStatus(pl, true))
}

// propose shows a plan with its diffs. Its status is then pending, whatever became of it: the state
// of the project has more (exacta §3.4).
func (p *Project) propose(r *Request, f *Flow, pl *plan.Plan) {
	shown := *pl
	shown.Status = plan.Pending
	p.emit("PlanProposed", r, f, AppendPlanProposed(p.buf[:0], &shown))
	for i := range pl.Steps {
		if s := &pl.Steps[i]; s.Type != plan.Build {
			p.emit("DiffProposed", r, f, codec.AppendDiffProposed(p.buf[:0], s.ID, s.Diff))
		}
	}
}

// name gives a plan and its steps their ids. Until then dependencies are the orders of steps.
func (p *Project) name(pl *Plan) {
	pl.ID = p.IDs.Next(codec.Plan).String()
	for i := range pl.Steps {
		pl.Steps[i].ID = p.IDs.Next(codec.Step).String()
	}
	for i := range pl.Steps {
		list := pl.Steps[i].Dependencies
		for d, order := range list {
			if n, err := strconv.Atoi(order); err == nil && n > 0 && n <= len(pl.Steps) {
				list[d] = pl.Steps[n-1].ID
			}
		}
	}
}

// keep remembers what becomes of the last plans.
func (p *Project) keep(pl *Plan) {
	id, _ := codec.ParseID([]byte(pl.ID))
	p.plans[id] = pl
	p.planned = append(p.planned, pl)
	if len(p.planned) > maxPlans {
		id, _ := codec.ParseID([]byte(p.planned[0].ID))
		delete(p.plans, id)
		p.planned = append(p.planned[:0], p.planned[1:]...)
	}
}

// waiting returns the plan of a request, if it is the one that waits for approval. Otherwise the
// request is answered (exacta §4.6).
func (p *Project) waiting(r *Request) *Plan {
	pl := p.plans[r.Args.Handle]
	switch {
	case pl == nil:
		p.fail(r, errcode.New("VAL-004", "unknown plan_id", "unknown plan_id"))
		return nil
	case pl != p.active:
		p.fail(r, errcode.New("VAL-005", "plan_expired: "+pl.fate))
		return nil
	}
	return pl
}

// validate answers a ValidatePlan (exacta §4.5).
func (p *Project) validate(r *Request) {
	pl := p.waiting(r)
	if pl == nil {
		return
	}
	violations := p.Disk.Check(pl, false)
	out := strconv.AppendBool([]byte(`{"valid":`), len(violations) == 0)
	out = plan.AppendViolations(append(out, `,"violations":`...), violations)
	p.done(r, append(out, '}'))
}

// stillValid checks a plan once more. If it is not valid it expires, and the request is answered.
func (p *Project) stillValid(r *Request, pl *Plan) bool {
	violations := p.Disk.Check(pl, false)
	if len(violations) == 0 {
		return true
	}
	err := Invalid(violations)
	if plan.Drifted(violations) {
		err = errcode.New("VAL-005", "plan_expired: drift "+err.Detail)
	}
	p.retire(pl, "drift")
	p.raise(r, r.flow, err)
	p.settle(Idle, "PlanExpired", r, r.flow)
	p.fail(r, err)
	return false
}

// approve answers an ApprovePlan (exacta §4.6).
func (p *Project) approve(r *Request) {
	pl := p.waiting(r)
	if pl == nil || !p.stillValid(r, pl) {
		return
	}
	if pl.Status != plan.Approved {
		pl.Status, pl.ApprovedAt = plan.Approved, p.Clock.Text()
		if err := p.Disk.Keep(pl); err != nil {
			pl.Status, pl.ApprovedAt = plan.Pending, ""
			p.raise(r, r.flow, err)
			p.fail(r, err)
			return
		}
		p.log(r, r.flow, "INFO", "Orchestrator", "plan approved: version "+strconv.Itoa(pl.Version))
	}
	p.done(r, appendStatus(pl, false))
}

// reject answers a RejectPlan (exacta §4.7).
func (p *Project) reject(r *Request) {
	pl := p.waiting(r)
	if pl == nil {
		return
	}
	p.retire(pl, "rejected")
	p.settle(Idle, "RejectPlan", r, r.flow)
	p.done(r, appendStatus(pl, false))
}

// Invalid returns the failure of a plan that breaks rules (exacta §4.4).
func Invalid(list []plan.Violation) *errcode.Fault {
	return errcode.New("VAL-004", string(plan.AppendViolations(nil, list)), list[0].Message)
}

// appendStatus appends the result of commands about a plan.
func appendStatus(pl *Plan, version bool) []byte {
	dst := append([]byte(`{"plan_id":"`), pl.ID...)
	dst = append(dst, '"')
	if version {
		dst = strconv.AppendInt(append(dst, `,"version":`...), int64(pl.Version), 10)
	}
	return append(append(append(dst, `,"status":"`...), string(pl.Status)...), `"}`...)
}

// AppendPlanProposed appends the payload of PlanProposed (exacta §3.4).
func AppendPlanProposed(dst []byte, pl *plan.Plan) []byte {
	dst = append(append(dst, `{"plan":{"id":"`...), pl.ID...)
	dst = strconv.AppendInt(append(dst, `","version":`...), int64(pl.Version), 10)
	dst = append(append(dst, `,"status":"`...), pl.Status...)
	dst = strconv.AppendInt(append(dst, `","estimated_tokens":`...), int64(pl.EstimatedTokens), 10)
	dst = appendConstraints(append(dst, `,"constraints":`...), pl.Constraints)
	dst = append(dst, `,"steps":[`...)
	for i := range pl.Steps {
		if i > 0 {
			dst = append(dst, ',')
		}
		s := &pl.Steps[i]
		dst = append(append(dst, `{"id":"`...), s.ID...)
		dst = strconv.AppendInt(append(dst, `","order":`...), int64(s.Order), 10)
		dst = append(append(dst, `,"type":"`...), s.Type...)
		dst = codec.AppendText(append(dst, `","target":`...), s.Target)
		dst = codec.AppendText(append(dst, `,"description":`...), s.Description)
		dst = codec.AppendTexts(append(dst, `,"dependencies":`...), s.Dependencies)
		dst = append(dst, '}')
	}
	return append(dst, "]}}"...)
}
