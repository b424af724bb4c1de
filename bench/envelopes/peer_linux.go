package envelopes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
)

const (
	beginPath  = "/v1/sessions"
	reportPath = "/v1/report"
)

// object is a JSON object.
type object = map[string]any

// text is v if it is a string, else "".
func text(v any) string {
	s, _ := v.(string)
	return s
}

// peer is the server that a team would write first: net/http, encoding/json, and all that it knows
// as maps. It makes the same decisions as a report at trunkline does (envelope §5.2), for sessions
// that go on as those measured do; what would end one is looked for, and refused.
type peer struct {
	mu       sync.RWMutex
	sessions map[string]*session
}

type session struct {
	mu       sync.Mutex
	envelope object
	stages   map[string]object
	edges    map[string]float64 // how often one that is limited may still be taken
}

func newPeer() *peer { return &peer{sessions: map[string]*session{}} }

// ServeHTTP answers both requests with a JSON value.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in object
	status, out := http.StatusBadRequest, []byte(`{"error":"bad request"}`)
	if err := json.NewDecoder(r.Body).Decode(&in); err == nil && r.URL.Path == beginPath {
		status, out = p.begin(in)
	} else if err == nil {
		status, out = p.report(in)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(out)))
	w.WriteHeader(status)
	w.Write(out)
}

// reply encodes a value that is made of JSON.
func reply(status int, v object) (int, []byte) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return status, b
}

func (p *peer) begin(in object) (int, []byte) {
	pipeline, _ := in["pipeline_config"].(object)
	agents, _ := pipeline["agents"].([]any)
	e, _ := in["envelope"].(object)
	if len(agents) == 0 || e == nil {
		return reply(http.StatusBadRequest, object{"error": "no pipeline, or no envelope"})
	}
	s := &session{envelope: e, stages: map[string]object{}, edges: map[string]float64{}}
	var order []any
	for _, a := range agents {
		name := a.(object)["name"]
		s.stages[text(name)], order = a.(object), append(order, name)
	}
	limits, _ := pipeline["edge_limits"].([]any)
	for _, l := range limits {
		l := l.(object)
		s.edges[text(l["from_stage"])+"->"+text(l["to_stage"])] = l["max_count"].(float64)
	}
	for key, value := range (object{
		"stage_order": order, "current_stage": order[0], "iteration": 0.0, "llm_call_count": 0.0, "tool_call_count": 0.0,
		"agent_hop_count": 0.0, "tokens_in": 0.0, "tokens_out": 0.0, "max_iterations": pipeline["max_iterations"],
		"max_llm_calls": pipeline["max_llm_calls"], "max_agent_hops": pipeline["max_agent_hops"], "terminated": false,
		"terminal_reason": nil, "termination_reason": nil, "interrupt_pending": false, "completed_stage_set": object{},
	}) {
		e[key] = value
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[text(in["process_id"])] = s
	return reply(http.StatusOK, object{"process_id": in["process_id"], "current_stage": order[0]})
}

func (p *peer) report(in object) (int, []byte) {
	p.mu.RLock()
	s := p.sessions[text(in["process_id"])]
	p.mu.RUnlock()
	if s == nil {
		return reply(http.StatusNotFound, object{"error": "Unknown process: " + text(in["process_id"])})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if by := text(in["agent_name"]); by != s.agent() && by != s.envelope["current_stage"] {
		return reply(http.StatusConflict, object{"error": "Expected result from agent '" + s.agent() + "', got '" + by + "'"})
	}
	if !s.step(in) {
		return reply(http.StatusConflict, object{"error": "the session ends"})
	}
	return reply(http.StatusOK, object{"kind": "RUN_AGENT", "agent_name": s.agent(), "envelope": s.envelope, "terminal_reason": "",
		"termination_message": "", "interrupt_pending": false, "interrupt": nil})
}

// agent is who works at the current stage.
func (s *session) agent() string {
	at := s.stages[text(s.envelope["current_stage"])]
	return cmp.Or(text(at["agent"]), text(at["name"]))
}

func (s *session) count(counter string, n float64) {
	s.envelope[counter] = s.envelope[counter].(float64) + n
}

// step takes one report in and reports whether the session went on.
func (s *session) step(in object) bool {
	e := s.envelope
	output, _ := in["output"].(object)
	e["outputs"].(object)[text(in["agent_name"])] = output
	metrics, _ := in["metrics"].(object)
	for _, c := range [...][2]string{{"llm_call_count", "llm_calls"}, {"tool_call_count", "tool_calls"}, {"tokens_in", "tokens_in"}, {"tokens_out", "tokens_out"}} {
		n, _ := metrics[c[1]].(float64)
		s.count(c[0], n)
	}
	s.count("iteration", 1)
	from := text(e["current_stage"])
	e["completed_stage_set"].(object)[from] = true
	to := text(s.stages[from]["default_next"])
	rules, _ := s.stages[from]["routing"].([]any)
	for _, r := range rules {
		rule := r.(object)
		condition, conditional := rule["condition"].(string)
		if v, ok := output[condition]; !conditional || ok && reflect.DeepEqual(v, rule["value"]) {
			to = text(rule["target"])
			break
		}
	}
	edge := from + "->" + to
	left, limited := s.edges[edge]
	if s.stages[to] == nil || s.bounded() || limited && left <= 0 {
		return false
	}
	if limited {
		s.edges[edge] = left - 1
	}
	e["current_stage"] = to
	s.count("agent_hop_count", 1)
	return !s.bounded()
}

// bounded reports whether a limit is met.
func (s *session) bounded() bool {
	for _, b := range [...][2]string{{"llm_call_count", "max_llm_calls"}, {"iteration", "max_iterations"}, {"agent_hop_count", "max_agent_hops"}} {
		if s.envelope[b[0]].(float64) >= s.envelope[b[1]].(float64) {
			return true
		}
	}
	return false
}
