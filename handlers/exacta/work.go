package exacta

import (
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/external"
	"trunkline/handlers/exacta/workspace"
)

// job is a work that runs.
type job struct {
	p    *project
	w    *projects.Work
	stop chan struct{} // closed when the project does not want the result any more
	acts atomic.Bool   // it may do more than read, or it was aborted before
}

// act is called before the first effect of a job. It refuses one that was aborted: then it was
// answered, and must have none.
func (j *job) act() *errcode.Fault {
	if !j.acts.CompareAndSwap(false, true) {
		return errcode.New("IPC-010", "")
	}
	return nil
}

// stopped reports whether the job was aborted.
func (j *job) stopped() bool {
	select {
	case <-j.stop:
		return true
	default:
		return false
	}
}

// run does the work of a job. A defect is a failure of its request only (exacta §8).
func (j *job) run() {
	defer func() {
		if v := recover(); v != nil {
			j.p.srv.cfg.Logger.Error("cannot finish work", "project", j.p.id.String(), "panic", v, "stack", string(debug.Stack()))
			j.w.Fault, j.w.Planner = errcode.New("ST-002", "an internal failure"), true
		}
	}()
	switch {
	case j.w.Step >= 0:
		j.w.Fault = j.step()
	case j.w.Request.Command == codec.ExtractIntent:
		j.extract()
	case j.w.Request.Command == codec.GeneratePlan:
		j.w.Fault = j.generate()
	case j.w.Request.Command == codec.ApplyDiffSet:
		j.w.Fault = j.apply()
	case j.w.Request.Command == codec.Build:
		j.w.Fault = j.build(j.w.Request.Args.Configuration, j.w.Request.Args.Seconds)
	case j.w.Request.Command == codec.Preview:
		j.w.Fault = j.preview(j.w.Request.Args.Seconds)
	case j.w.Request.Command == codec.ExportDiagnostics:
		j.w.Fault = j.export()
	}
}

// source reads the tree and the configuration for the planner.
func (j *job) source() (*source, *errcode.Fault) {
	ws := j.p.disk.ws
	config, err := j.p.disk.config()
	if err != nil {
		return nil, err
	}
	t, err := newTree(ws, j.p.disk.rules.Load(), j.stopped)
	if err != nil {
		return nil, err
	}
	j.w.Cut = len(t.files) == workspace.MaxIndexed
	c := &planner.Config{Configuration: configurationOf(config), Toolchain: toolOf(config, t.markers), RootName: filepath.Base(ws.Root())}
	s := &source{tree: t, config: config, planner: c}
	if config.Provider != external.Builtin {
		s.outside = &external.Project{Disk: ws, Config: config, Tree: t, Size: func(path string) int64 { return t.sizes[path] }, Planner: c}
	}
	return s, j.p.srv.planner.Ready(config)
}

// extract runs the planner for an ExtractIntent (exacta §4.3).
func (j *job) extract() {
	s, err := j.source()
	if err != nil {
		j.w.Fault, j.w.Planner = err, true
		return
	}
	var in planner.Intent
	if s.outside != nil {
		in, err = j.extractOutside(s)
	} else {
		in, err = planner.Extract(j.w.Request.Args.UserInput, s.tree, s.planner)
	}
	if err != nil {
		j.w.Fault = err
		return
	}
	j.w.Extracted = &in
}

// generate runs the planner for a GeneratePlan and fixes the facts of the plan (exacta §4.4).
func (j *job) generate() *errcode.Fault {
	s, err := j.source()
	if err != nil {
		j.w.Planner = true
		return err
	}
	var doc *plan.Plan
	if s.outside != nil {
		doc, err = j.planOutside(s)
	} else {
		doc, err = j.planInside(s)
	}
	if err != nil {
		return err
	}
	for k := range doc.Constraints {
		if c := &doc.Constraints[k]; !plan.Enforceable(c, s.tree) {
			j.w.Loose = append(j.w.Loose, c.Description)
		}
	}
	j.w.Planned = projects.NewPlan(doc)
	return nil
}

// planInside has the built-in planner make a plan.
func (j *job) planInside(s *source) (*plan.Plan, *errcode.Fault) {
	steps, err := planner.Plan(&j.w.Intent.Intent, s.tree, s.planner)
	if err != nil {
		return nil, err
	}
	doc := j.document(s.config)
	for n := range steps {
		step, err := stepOf(n+1, &steps[n])
		if err != nil {
			return nil, err
		}
		doc.Steps = append(doc.Steps, step)
	}
	j.estimate(doc)
	return doc, nil
}

// document begins the plan of a GeneratePlan.
func (j *job) document(config *workspace.Config) *plan.Plan {
	i := j.w.Intent
	return &plan.Plan{Version: i.Version(), Status: plan.Pending, CreatedAt: j.p.srv.cfg.Clock.Text(),
		Intent:      plan.Intent{ID: i.ID.String(), Type: i.Type, Description: i.Description},
		Constraints: i.Constraints, ConfigFingerprint: config.Fingerprint}
}

func (j *job) estimate(doc *plan.Plan) {
	doc.EstimatedTokens = plan.Estimate(j.w.Intent.RawInput, doc.Steps)
}

// stepOf returns the step of a plan. Until the project gives it an id, its order stands for it: see
// projects.Work.
func stepOf(order int, s *planner.Step) (plan.Step, *errcode.Fault) {
	step := plan.Step{ID: strconv.Itoa(order), Order: order, Type: s.Type, Target: s.Target, Description: s.Description, Configuration: s.Configuration}
	for _, d := range s.Dependencies {
		step.Dependencies = append(step.Dependencies, strconv.Itoa(d))
	}
	if !step.IsFile() {
		return step, nil
	}
	err := facts(&step, s)
	return step, err
}

// facts makes the diff and the hashes of a file step.
func facts(step *plan.Step, s *planner.Step) *errcode.Fault {
	step.Diff = diff.Make(s.Target, s.Old, s.New)
	if secret.Find([]byte(step.Diff)) {
		return errcode.New("SEC-003", "plan: "+s.Target)
	}
	patch, bad := diff.Parse(step.Diff)
	if bad == nil {
		_, bad = patch.Apply(s.Old)
	}
	if bad != nil {
		return errcode.New("VAL-004", "diff of "+s.Target+": "+bad.Token, "the change of "+s.Target+" cannot be shown as a diff")
	}
	if s.Old != nil {
		step.Pre = workspace.Sum(s.Old)
	}
	if s.New != nil {
		step.Post = workspace.Sum(s.New)
	}
	return nil
}

// opOf returns what a patch does in the words of the workspace.
func opOf(o diff.Op) workspace.Op {
	switch o {
	case diff.Create:
		return workspace.Create
	case diff.Delete:
		return workspace.Delete
	}
	return workspace.Modify
}

// step does one step of an execution (exacta §4.8).
func (j *job) step() *errcode.Fault {
	s := &j.w.Plan.Steps[j.w.Step]
	if !s.IsFile() {
		if err := j.build(s.Configuration, 0); err != nil {
			return err
		}
		if b := &j.w.Build; b.ExitCode != 0 {
			return b.Fault()
		}
		return j.p.disk.end(j.w)
	}
	patch, bad := diff.Parse(s.Diff)
	if bad != nil {
		return errcode.New("ST-002", "step "+strconv.Itoa(s.Order)+": "+bad.Token)
	}
	old, err := j.read(s.Target, patch.Op)
	if err != nil {
		return err
	}
	if sum := sumOf(old); sum != s.Pre {
		return errcode.New("VAL-005", "drift: "+s.Target)
	}
	data, bad := patch.Apply(old)
	if bad != nil {
		return bad.Fault("")
	}
	if sumOf(data) != s.Post {
		return errcode.New("VAL-005", "result: "+s.Target)
	}
	disk := j.p.disk
	if err := disk.begin(j.w, workspace.Change{Path: s.Target, Op: opOf(patch.Op), Data: data, Pre: s.Pre}); err != nil {
		return err
	}
	err = disk.point.Commit(nil)
	if j.w.Lost, disk.point.Lost = disk.point.Lost, nil; err != nil {
		return err
	}
	return disk.end(j.w)
}

// sumOf returns the hash of a file, "" of none.
func sumOf(content []byte) string {
	if content == nil {
		return ""
	}
	return workspace.Sum(content)
}

// read returns the content of a target, nil if there is none.
func (j *job) read(path string, op diff.Op) ([]byte, *errcode.Fault) {
	b, _, err := j.p.disk.ws.Read(path)
	switch {
	case err == nil && b == nil:
		return []byte{}, nil
	case err == nil:
		return b, nil
	case err.Code == "FS-001" && j.p.disk.ws.IsDir(path):
		return nil, errcode.New("SEC-002", "not_regular: "+path, path)
	case err.Code == "FS-001":
		return nil, nil
	}
	return nil, err
}
