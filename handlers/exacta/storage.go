package exacta

import (
	"bytes"
	"strconv"
	"sync/atomic"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/relpath"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/external"
	"trunkline/handlers/exacta/workspace"
)

// storage is the disk of one project. Its methods are called by the queue of the project, and those
// of works by one work at a time.
type storage struct {
	ws    *workspace.Project
	id    codec.ID
	clock codec.Clock

	planner *external.Planner
	rules   atomic.Pointer[relpath.Rules] // those of the configuration that was read last

	point *workspace.Point // of the execution
	step  int              // order of the step that was begun, 0 for none
	empty *workspace.Point // was undone, and is dropped once the state does not name it
	saved projects.Saved
}

// Save implements projects.Disk.
func (s *storage) Save(saved *projects.Saved) *errcode.Fault {
	s.saved = *saved
	if saved.State == projects.Completed { // a crash may have come before the seal of the last step
		_ = s.seal()
	}
	if saved.Execution != nil && s.point != nil && s.point.ID != saved.Execution.ID.String() {
		s.point = nil
	}
	err := s.write()
	if err == nil && saved.Execution == nil && s.empty != nil {
		_ = s.empty.Drop() // a point without entries is of no use
		s.empty = nil
	}
	return err
}

// write writes state.json.
func (s *storage) write() *errcode.Fault {
	st := &workspace.State{ProjectID: s.id.String(), State: s.saved.State.String(), ActivePlanID: s.saved.Plan, LastUpdatedAt: s.clock.Text()}
	if e := s.saved.Execution; e != nil {
		st.ActiveExecutionID = e.ID.String()
		st.Execution = &workspace.Execution{ID: e.ID.String(), PlanID: e.Plan.ID, Next: e.Next + 1, InStep: s.step}
		if s.point != nil {
			st.Execution.Entries = len(s.point.Entries)
			if s.step > 0 {
				st.Execution.Entries--
			}
		}
	}
	return s.ws.SaveState(st)
}

// config reads the configuration. Its rules for paths hold from now on.
func (s *storage) config() (*workspace.Config, *errcode.Fault) {
	c, err := s.ws.LoadConfig()
	if err == nil {
		s.rules.Store(rulesOf(c, s.ws.Markers()))
	}
	return c, err
}

// ready reports why the planner that the project selects cannot be asked (exacta §4.20).
func (s *storage) ready() *errcode.Fault {
	c, err := s.ws.LoadConfig()
	if err == nil {
		err = s.planner.Ready(c)
	}
	return err
}

// used reports whether there is a rollback point of the id, damaged or not. Where no point can be
// read, none is: to make one fails then.
func (s *storage) used(id codec.ID) bool {
	_, err := s.ws.LoadPoint(id.String())
	return err == nil || err.Code == "ST-002"
}

// Keep implements projects.Disk.
func (s *storage) Keep(p *projects.Plan) *errcode.Fault {
	err := s.ws.SavePlan(p.ID, p.Append(nil))
	if err == nil {
		_ = s.ws.PrunePlans(p.ID, s.saved.Plan) // older plans may stay
	}
	return err
}

// Check implements projects.Disk.
func (s *storage) Check(p *projects.Plan, making bool) []plan.Violation {
	facts, err := s.facts(making)
	if err != nil {
		return []plan.Violation{{Code: "PD-2", Message: err.Detail}}
	}
	return plan.Validate(p.Plan, *facts)
}

func (s *storage) facts(making bool) (*plan.Facts, *errcode.Fault) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	t, err := newTree(s.ws, s.rules.Load(), func() bool { return false })
	if err != nil {
		return nil, err
	}
	return &plan.Facts{Tree: t, Config: config.Fingerprint, Making: making,
		Limits: plan.Limits{Steps: config.MaxSteps, Files: config.MaxFiles, DiffLines: config.MaxDiffLines}}, nil
}

// Resumable implements projects.Disk.
func (s *storage) Resumable(e *projects.Execution) *errcode.Fault {
	doc, err := s.ws.LoadPlan(e.Plan.ID)
	if err != nil {
		return err
	}
	kept, bad := plan.Parse(doc)
	if bad != nil {
		return errcode.New("ST-002", "plan: "+bad.Error())
	}
	kept.Status, kept.ApprovedAt = e.Plan.Status, e.Plan.ApprovedAt
	if !bytes.Equal(kept.Append(nil), e.Plan.Append(nil)) { // the next open would go on with it
		return errcode.New("ST-002", "plan: not the one that was approved")
	}
	if err := s.loadPoint(e); err != nil {
		return err
	}
	if s.point != nil {
		if err := s.point.Verify(); err != nil {
			return err
		}
	}
	config, err := s.ws.LoadConfig()
	if err != nil || config.Fingerprint != e.Plan.ConfigFingerprint {
		return errcode.New("VAL-005", "drift: the configuration changed")
	}
	for i := range e.Plan.Steps {
		step := &e.Plan.Steps[i]
		if !step.IsFile() {
			continue
		}
		want := step.Pre
		if i < e.Next {
			want = step.Post
		}
		if sum, err := s.ws.Hash(step.Target); err != nil || sum != want {
			return errcode.New("VAL-005", "drift: "+step.Target)
		}
	}
	return nil
}

// loadPoint reads the rollback point of an execution that has one, and compares it with the plan
// before anything is restored by it.
func (s *storage) loadPoint(e *projects.Execution) (err *errcode.Fault) {
	pt, err := s.ws.LoadPoint(e.ID.String())
	switch {
	case err == nil && (!pt.Proven || !follows(pt.Entries, e.Plan.Steps)):
		return errcode.New("ST-002", "rollback/"+pt.ID+"/manifest.json: not what this installation made for the plan")
	case err == nil && s.point == nil:
		s.point = pt
		return nil
	case err == nil || err.Code != "FS-001" || s.point != nil:
		return err
	}
	for i := range e.Next {
		if e.Plan.Steps[i].IsFile() {
			return errcode.New("ST-002", err.Detail)
		}
	}
	return nil
}

// follows reports whether each entry of a rollback point is of a step of the plan, in their order.
// A step that was interrupted may have two.
func follows(entries []workspace.Entry, steps []plan.Step) bool {
	k := 0
	for _, e := range entries {
		for k < len(steps) && !(steps[k].Target == e.Path && steps[k].Type == "file_"+string(e.Op) && steps[k].Pre == e.Pre && steps[k].Post == e.Post) {
			k++
		}
		if k == len(steps) {
			return false
		}
	}
	return true
}

// Undo implements projects.Disk.
func (s *storage) Undo(e *projects.Execution) (conflicts int, err *errcode.Fault) {
	if s.point == nil {
		if err := s.loadPoint(e); err != nil || s.point == nil {
			return 0, err
		}
	}
	err = s.point.Undo(0)
	conflicts = s.point.Conflicts
	s.step = 0
	if err == nil {
		s.empty = s.point
	}
	s.point = nil
	return conflicts, err
}

// begin saves that a step has begun, behind the entry of its rollback point (exacta §4.8).
func (s *storage) begin(e *projects.Work, change workspace.Change) *errcode.Fault {
	if s.point == nil {
		var err *errcode.Fault
		if s.point, err = s.ws.NewPoint(e.Point.String(), workspace.PlanPoint, s.clock.Text()); err != nil {
			return err
		}
	}
	if err := s.point.Add(change); err != nil {
		return err
	}
	s.step = e.Step + 1
	return s.write()
}

// seal notes that the rollback point of the execution, if it has one, is complete.
func (s *storage) seal() *errcode.Fault {
	if s.point == nil || s.point.Sealed {
		return nil
	}
	err := s.point.Seal()
	_ = s.ws.Prune(s.point.ID) // older points may stay
	return err
}

// end saves that a step is done. Behind the last one the rollback point is complete.
func (s *storage) end(w *projects.Work) *errcode.Fault {
	s.step = 0
	e := s.saved.Execution // the queue may be writing to its other fields
	s.saved.Execution = &projects.Execution{ID: e.ID, Plan: e.Plan, Next: w.Step + 1}
	err := s.write()
	if err == nil && w.Step+1 == len(w.Plan.Steps) {
		err = s.seal()
	}
	return err
}

// found reads what an earlier session left (exacta §5.6). Each rollback point that is damaged or
// that nothing accounts for is named: files may be as it left them.
func (s *storage) found() *projects.Found {
	out := &projects.Found{}
	recovered, err := s.ws.Recover()
	if err != nil {
		out.Kept = append(out.Kept, err)
	}
	s.foundState(out)
	foreign := 0
	for _, r := range recovered {
		if r.Foreign {
			foreign++
		}
		switch {
		case r.Fault == nil && r.Foreign:
		case r.Fault == nil:
			out.Undone = append(out.Undone, r.ID)
		case out.Execution != nil && r.ID == out.Execution.ID.String():
		case r.ID == "" && out.Execution == nil && out.Damaged == nil:
			out.Damaged = r.Fault
		default:
			out.Kept = append(out.Kept, r.Fault)
		}
	}
	if foreign > 0 {
		out.Foreign = append(out.Foreign, strconv.Itoa(foreign)+" of the rollback points")
	}
	return out
}

// foundState reads the state that an earlier session saved, and its execution.
func (s *storage) foundState(out *projects.Found) {
	st, err := s.ws.LoadState()
	if err != nil {
		out.Damaged = err
		return
	}
	if st == nil {
		return
	}
	state, ok := projects.ParseState(st.State)
	if !ok {
		out.Damaged = s.ws.RejectState("state")
		return
	}
	if st.ProjectID != s.id.String() && state != projects.Idle { // it was copied from another root
		out.Damaged = s.ws.RejectState("project_id")
		return
	}
	if !st.Proven && st.Execution != nil { // it was not approved here
		out.Damaged = s.ws.RejectState("an execution that is not of this installation: " + st.Execution.ID)
		return
	}
	if !st.Proven {
		out.Foreign = append(out.Foreign, "state.json")
	}
	out.State = state
	if state == projects.Executing || state == projects.Paused || state == projects.Cancelling || state == projects.Failed && st.Execution != nil {
		out.Execution, out.Damaged = s.restore(st)
	}
	if out.Execution != nil && (state == projects.Executing || state == projects.Paused) && s.point != nil && len(s.point.Entries) > st.Execution.Entries {
		if err := s.point.Undo(st.Execution.Entries); err != nil {
			out.Kept = append(out.Kept, err) // Resume and Cancel find the same
		}
	}
}

// restore reads an interrupted execution.
func (s *storage) restore(st *workspace.State) (*projects.Execution, *errcode.Fault) {
	if st.Execution == nil {
		return nil, errcode.New("ST-002", "state.json: execution")
	}
	doc, err := s.ws.LoadPlan(st.Execution.PlanID)
	if err != nil {
		return nil, err
	}
	p, bad := plan.Parse(doc)
	id, ok := codec.ParseID([]byte(st.Execution.ID))
	if bad != nil || !ok || st.Execution.Next < 1 || st.Execution.Next > len(p.Steps)+1 {
		return nil, errcode.New("ST-002", "plan/"+st.Execution.PlanID+".json")
	}
	if !s.ws.ProvesPlan(p.ID, doc) {
		return nil, errcode.New("ST-002", "plan/"+st.Execution.PlanID+".json: not of this installation")
	}
	if p.ID != st.Execution.PlanID || p.Status != plan.Executed && p.Status != plan.Approved {
		return nil, errcode.New("ST-002", "plan/"+st.Execution.PlanID+".json: not approved")
	}
	if !wellMade(p) {
		return nil, errcode.New("ST-002", "plan/"+st.Execution.PlanID+".json: no plan of this program")
	}
	e := &projects.Execution{ID: id, Plan: projects.NewPlan(p), Next: st.Execution.Next - 1}
	if err := s.loadPoint(e); err != nil {
		return nil, errcode.New("ST-002", err.Detail)
	}
	return e, nil
}

// wellMade reports whether a plan that was read has the form of those that were proposed. Its file
// lies in the project, and events have its ids and diffs.
func wellMade(p *plan.Plan) bool {
	_, ok := codec.ParseID([]byte(p.ID))
	for i := range p.Steps {
		s := &p.Steps[i]
		_, named := codec.ParseID([]byte(s.ID))
		ok = ok && named && s.Order == i+1 && i < maxPlanned && (s.IsFile() && wellMadeFile(s) || !s.IsFile() && s.Target == "." && s.Diff == "")
	}
	return ok
}

// maxPlanned is the most steps of a plan (exacta §4.5, PV-8).
const maxPlanned = 10

// wellMadeFile is wellMade of a step that changes a file.
func wellMadeFile(s *plan.Step) bool {
	patch, bad := diff.Parse(s.Diff)
	return bad == nil && patch.Op != diff.None && s.Type == "file_"+patch.Op.String() && patch.Path == s.Target && !secret.Find([]byte(s.Diff))
}
