package workspace

import (
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
)

// The most bytes of a file of .exacta that is read: of a blob, a plan or an answer, of state.json
// and of a manifest, which has a few hundred bytes for each of its files.
const (
	maxStored = 64 << 20
	maxRecord = 1 << 20
)

// State is state.json (exacta §4.18). Empty ids are null.
type State struct {
	ProjectID, State                string
	ActivePlanID, ActiveExecutionID string
	LastUpdatedAt                   string
	Execution                       *Execution
	// Proven is set where this installation wrote the state, for this root. It is of LoadState.
	Proven bool
}

// Execution is the running or paused execution of a State.
type Execution struct {
	ID, PlanID string
	Next       int // order of the next step
	InStep     int // order of the step that was begun, 0 for none
	Entries    int // how many entries its rollback point has of the steps that are done
}

// SaveState writes state.json. It makes .exacta and takes the lock if that is to be done.
func (p *Project) SaveState(s *State) *errcode.Fault {
	d, err := p.store()
	if err != nil {
		return faultOf(err, storeName)
	}
	defer d.close()
	return faultOf(d.replace("state.json", s.encode(func(o []byte) string { return p.proof("state", o) })),
		storeName+"/state.json")
}

// LoadState reads state.json: nil if there is none, ST-002 if it is damaged or cannot be read, and
// then it is renamed state.json.bad (exacta §5.6).
func (p *Project) LoadState() (*State, *errcode.Fault) {
	s, problem, f := p.readState()
	if problem != "" {
		f = p.RejectState(problem)
	}
	return s, f
}

// ReadState is LoadState without a change: a damaged state.json stays.
func (p *Project) ReadState() (*State, *errcode.Fault) {
	s, problem, f := p.readState()
	if problem != "" {
		f = damaged("state.json: " + problem)
	}
	return s, f
}

func (p *Project) readState() (s *State, problem string, f *errcode.Fault) {
	d, err := p.existingStore()
	if err == unix.ENOENT {
		p.see("")
		return nil, "", nil
	}
	if err != nil {
		return nil, "", faultOf(err, storeName)
	}
	defer d.close()
	text, _, err := d.read("state.json", maxRecord)
	if err == unix.ENOENT {
		p.see("")
		return nil, "", nil
	}
	if err != nil {
		return nil, "unreadable", nil
	}
	p.see(Sum(text))
	if s, problem = parseState(text); problem != "" {
		return nil, problem, nil
	}
	s.Proven = p.proves("state", text)
	return s, "", nil
}

// see notes the state.json that was read.
func (p *Project) see(sum string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read, p.seen = true, sum
}

// RejectState renames state.json to state.json.bad and returns the fault of a damaged state, with
// what is wrong about it (exacta §5.6).
func (p *Project) RejectState(problem string) *errcode.Fault {
	if locked, err := p.store(); err == nil {
		if locked.rename("state.json", "state.json.bad") == nil {
			_ = locked.sync()
		}
		locked.close()
	}
	return damaged("state.json: " + problem)
}

// encode returns state.json (exacta §4.18). mac, which may be nil, returns the MAC of the object: a
// member beside what the contract names, which the checksum is of too.
func (s *State) encode(mac func(object []byte) string) []byte {
	b := jsonx.Build(nil).Int("schema_version", 1).Text("project_id", s.ProjectID).Text("state", s.State)
	b = orNull(b, "active_plan_id", s.ActivePlanID)
	b = orNull(b, "active_execution_id", s.ActiveExecutionID)
	b = b.Text("last_updated_at", s.LastUpdatedAt)
	if x := s.Execution; x == nil {
		b = b.Raw("execution", []byte("null"))
	} else {
		e := jsonx.Build(nil).Text("id", x.ID).Text("plan_id", x.PlanID).Int("next", int64(x.Next))
		if x.InStep == 0 {
			e = e.Raw("in_step", []byte("null"))
		} else {
			e = e.Int("in_step", int64(x.InStep))
		}
		b = b.Raw("execution", e.Int("entries", int64(x.Entries)).End())
	}
	if mac != nil {
		b = b.Text("mac", mac(jsonx.Builder(append([]byte(nil), b...)).End()))
	}
	sum := Sum(Canonical(nil, jsonx.Builder(append([]byte(nil), b...)).End()))
	return append(b.Text("checksum", sum).End(), '\n')
}

// orNull appends a text, null if it is empty.
func orNull(b jsonx.Builder, name, value string) jsonx.Builder {
	if value == "" {
		return b.Raw(name, []byte("null"))
	}
	return b.Text(name, value)
}

// parseState returns what is wrong with the text, if something is.
func parseState(text []byte) (s *State, problem string) {
	r := reader{}
	top, problem := document(&r, text)
	if problem != "" {
		return nil, problem
	}
	if top.text("checksum") != Sum(canonicalWithout(nil, jsonx.ValueOf(text).Raw, "checksum")) {
		return nil, "checksum"
	}
	s = &State{
		ProjectID: top.text("project_id"), State: top.text("state"),
		ActivePlanID: top.textOrNull("active_plan_id"), ActiveExecutionID: top.textOrNull("active_execution_id"),
		LastUpdatedAt: top.text("last_updated_at"),
	}
	if x := top.get("execution"); x.Kind == jsonx.ObjectStart {
		e := section{&r, "execution.", x.Raw}
		s.Execution = &Execution{
			ID: e.text("id"), PlanID: e.text("plan_id"), Next: e.integer("next", 0, 1<<30, 0),
			Entries: e.integer("entries", 0, 1<<30, 0),
		}
		if e.get("in_step").Kind != jsonx.Null {
			s.Execution.InStep = e.integer("in_step", 1, 1<<30, 0)
		}
	} else if x.Kind != jsonx.Null {
		r.bad("execution")
	}
	return s, r.setting
}

// document checks the form of a file of .exacta and its schema_version.
func document(r *reader, text []byte) (top section, problem string) {
	var strict jsonx.Strict
	if problem := strict.Check(text, maxDepth); !problem.OK() {
		return top, problem.String()
	}
	if jsonx.ValueOf(text).Kind != jsonx.ObjectStart {
		return top, "not an object"
	}
	top = r.object("", jsonx.ValueOf(text).Raw)
	if top.integer("schema_version", 1, 1, 0) != 1 {
		return top, "schema_version"
	}
	return top, ""
}

func (s section) textOrNull(name string) string {
	if s.get(name).Kind == jsonx.Null {
		return ""
	}
	return s.text(name)
}

// isID reports whether id can be the name of a file of .exacta: letters, digits and hyphens, at
// most 64.
func isID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
	})
}

// SavePlan writes plan/<id>.json. The bytes are the caller's, with a fingerprint of its own.
func (p *Project) SavePlan(id string, plan []byte) *errcode.Fault {
	return p.saveIn([]string{"plan"}, id, p.sign("plan/"+id, plan))
}

// LoadPlan reads plan/<id>.json; ST-002 if that is not possible.
func (p *Project) LoadPlan(id string) ([]byte, *errcode.Fault) {
	b, err := p.loadIn([]string{"plan"}, id)
	if err != nil {
		return nil, damaged("plan/" + printable(id) + ".json: " + faultOf(err, storeName+"/plan").Detail)
	}
	return b, nil
}

// saveIn writes a file <id>.json in a directory of the storage.
func (p *Project) saveIn(path []string, id string, data []byte) *errcode.Fault {
	rel := storeName + "/" + strings.Join(path, "/")
	if !isID(id) {
		return damaged("no id: " + printable(id))
	}
	d, err := p.store()
	for _, c := range path {
		if err != nil {
			return faultOf(err, rel)
		}
		var next dir
		next, err = d.sub(c)
		d.close()
		d = next
	}
	if err != nil {
		return faultOf(err, rel)
	}
	defer d.close()
	return faultOf(d.replace(id+".json", data), rel)
}

func (p *Project) loadIn(path []string, id string) ([]byte, error) {
	if !isID(id) {
		return nil, unix.ENOENT
	}
	d, err := p.folder(path...)
	if err != nil {
		return nil, err
	}
	defer d.close()
	b, _, err := d.read(id+".json", maxStored)
	return b, err
}

// folder opens a directory of the storage.
func (p *Project) folder(path ...string) (dir, error) {
	d, err := p.existingStore()
	for _, c := range path {
		if err != nil {
			return d, err
		}
		var next dir
		next, err = d.open(c)
		d.close()
		d = next
	}
	return d, err
}
