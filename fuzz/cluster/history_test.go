package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/kernel"
)

// opKind is what an operation does.
type opKind int

// Those on a process, and those on a session of orchestration.
const (
	opCreate opKind = iota
	opGet
	opAdd  // adds one call, and a part of a sum that no other operation adds
	opMove // to another state
	opNext // takes the process that is next, whichever that is
	opBegin
	opReport // takes one hop of its pipeline
	opLook
)

// operation is on one process or session.
type operation struct {
	kind opKind
	part int64        // of opAdd: a power of two
	to   kernel.State // of opMove
}

func (op *operation) changes() bool { return op.kind != opGet && op.kind != opLook }

// pipeline goes from one stage to itself, without an end that a world could reach.
const pipeline = `{"name":"loop","agents":[{"name":"a","default_next":"a"}],"max_iterations":100000,"max_llm_calls":100000,"max_agent_hops":100000}`

// frame returns an operation as a request.
func (op *operation) frame(id, pid string) []byte {
	service, method, body := "kernel", "", ""
	switch op.kind {
	case opCreate:
		method, body = "CreateProcess", fmt.Sprintf(`{"pid":%q,"user_id":%[1]q,"session_id":%[1]q,"request_id":%q}`, pid, id)
	case opGet:
		method, body = "GetProcess", fmt.Sprintf(`{"pid":%q}`, pid)
	case opAdd:
		method, body = "RecordUsage", fmt.Sprintf(`{"pid":%q,"llm_calls":1,"tokens_in":%d}`, pid, op.part)
	case opMove:
		method, body = "TransitionState", fmt.Sprintf(`{"pid":%q,"new_state":%q}`, pid, op.to)
	case opNext:
		method, body = "GetNextRunnable", `{"start":true}`
	default:
		service, body = "orchestration", fmt.Sprintf(`{"process_id":%q}`, pid)
	}
	switch op.kind {
	case opBegin:
		method, body = "InitializeSession", fmt.Sprintf(`{"process_id":%q,"pipeline_config":%s,"envelope":{"envelope_id":%[1]q}}`, pid, pipeline)
	case opReport:
		method, body = "ReportAgentResult", fmt.Sprintf(`{"process_id":%q,"agent_name":"a","success":true,"metrics":{"llm_calls":0,"tool_calls":0,"duration_ms":1}}`, pid)
	case opLook:
		method = "GetSessionState"
	}
	encoded, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		panic(err) // the texts above are no JSON
	}
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, id, service, method, string(encoded)), nil)
}

// Codes of errors that belong to the state of a process or session.
const (
	codeMissing = "NOT_FOUND"
	codeState   = "FAILED_PRECONDITION"
	codeExists  = "INVALID_ARGUMENT" // of a session
)

// done reports whether an answer belongs to the history: others mean that nothing was done.
func (op *operation) done(a *answer) bool {
	switch a.code {
	case "":
		return true
	case codeMissing, codeState:
		return op.kind != opNext // with nothing to take, it is about no process
	}
	return a.code == codeExists && op.kind == opBegin
}

// state is that of a process or session.
type state struct {
	known bool
	at    kernel.State
	counters
	hops int64
}

// model is a process of the kernel or a session. What an operation gives is an answer, nil where
// there was none: then it takes effect if it may.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		s, op := before.(state), input.(operation)
		a, heard := output.(answer)
		next, code := s.apply(&op)
		return !heard || code == a.code && (code != "" || next.shows(&op, &a)), next
	},
}

// apply returns the state after an operation, and the code of its error.
func (s state) apply(op *operation) (state, string) {
	switch {
	case op.kind == opCreate && s.known:
		return s, codeState
	case op.kind == opBegin && s.known:
		return s, codeExists
	case op.kind == opCreate || op.kind == opBegin:
		return state{known: true, at: kernel.Ready}, ""
	case !s.known:
		return s, codeMissing
	case op.kind == opAdd:
		s.Calls++
		s.Sum += op.part
	case op.kind == opReport:
		s.hops++
	case op.kind == opNext && s.at == kernel.Ready:
		s.at = kernel.Running
	case op.kind == opNext, op.kind == opMove && !s.at.CanBecome(op.to):
		return s, codeState
	case op.kind == opMove:
		s.at = op.to
	}
	return s, ""
}

// shows reports whether an answer is that of an operation after which the state is s.
func (s state) shows(op *operation, a *answer) bool {
	switch op.kind {
	case opAdd:
		return s.counters == a.counters
	case opBegin, opLook:
		return s.hops == a.hops
	case opCreate, opReport: // the answers are how it was made, and what to do next
		return true
	}
	return s.at.String() == a.state && s.counters == a.counters
}

// Bounds of a process in a world: a history with many operations of which the outcome is not known
// takes long to check, and a sum has so many parts.
const (
	maxUnknown = 4
	maxParts   = 50
	inUse      = 8
)

// process is one of the kernel, or a session of orchestration.
type process struct {
	pid       string
	partition int
	session   bool
	part      uint // the last one
	unknown   int
	history   []porcupine.Operation
}

// choose returns what to do next. The caller holds mu of the processes.
func (p *process) choose(d *dice, reads bool) operation {
	if reads {
		return p.read()
	}
	p.part++
	k := d.below(100)
	switch {
	case p.session && (p.part == 1 || k < 4):
		return operation{kind: opBegin}
	case p.session && k < 50:
		return operation{kind: opReport}
	case p.part == 1 || k < 4:
		return operation{kind: opCreate}
	case p.session || k < 55:
		return p.read()
	case k < 84:
		return operation{kind: opAdd, part: 1 << p.part}
	case k < 88:
		return operation{kind: opNext}
	}
	return operation{kind: opMove, to: kernel.Ready + kernel.State(d.below(int(kernel.Terminated-kernel.Ready)))}
}

// read returns what shows it.
func (p *process) read() operation {
	if p.session {
		return operation{kind: opLook}
	}
	return operation{kind: opGet}
}

// processes are those of a world.
type processes struct {
	w    *world
	mu   sync.Mutex
	list []*process
	// took are the operations that have taken any process of a partition, or none.
	took [maxPartitions][]porcupine.Operation
}

// choose returns one of the latest, and what to do with it next; reads changes nothing.
func (h *processes) choose(d *dice, reads bool) (*process, operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.list) < inUse {
		h.add()
	}
	p := h.list[len(h.list)-1-d.below(inUse)]
	if p.unknown >= maxUnknown || p.part >= maxParts {
		p = h.add()
	}
	op := p.choose(d, reads)
	if op.kind == opNext && len(h.took[p.partition]) >= maxUnknown {
		op = p.read()
	}
	return p, op
}

// add makes one. The caller holds mu.
func (h *processes) add() *process {
	n := len(h.list)
	p := &process{pid: fmt.Sprint("p", n), session: n%4 == 0}
	p.partition = h.w.of(p.pid, nil)
	if !p.session {
		p.history = slices.Clone(h.took[p.partition])
	}
	h.list = append(h.list, p)
	return p
}

func (h *processes) all() []*process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// find returns the process that a partition has.
func (h *processes) find(pid string, partition int) *process {
	for _, p := range h.all() {
		if p.pid == pid && p.partition == partition {
			return p
		}
	}
	h.w.fail("partition %d has a process %q, which no client has made there", partition, pid)
	return &process{}
}

// note adds to the history of a process.
func (h *processes) note(p *process, op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.history = append(p.history, op)
	if op.Output == nil {
		p.unknown++
	}
}

// noteAll adds to all histories of a partition, also of later processes, an operation that may have
// taken any of them.
func (h *processes) noteAll(partition int, op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took[partition] = append(h.took[partition], op)
	for _, p := range h.list {
		if p.partition == partition && !p.session {
			p.history = append(p.history, op)
		}
	}
}

// checkWithin bounds the search for an order of one history.
const checkWithin = 10 * time.Second

// check looks for an order of each history that explains it. It returns how many it could not
// decide in time.
func (h *processes) check() (undecided int) {
	for _, p := range h.list {
		switch porcupine.CheckOperationsTimeout(model, p.history, checkWithin) {
		case porcupine.Illegal:
			h.w.fail("no order explains the history of %s: %+v", p.pid, p.history)
		case porcupine.Unknown:
			undecided++
		}
	}
	return undecided
}
