package envelopes

import (
	"encoding/json"
	"fmt"
	"net"
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

// peer is the server that a team would write first: net/http, encoding/json, and all that it knows
// as maps. It makes the same decisions as a report at trunkline does (envelope §5.2) for pipelines
// like the one measured here.
type peer struct {
	mu       sync.RWMutex
	sessions map[string]*session
}

type session struct {
	mu       sync.Mutex
	envelope object
	stages   []object
	at       int // the stage
	limits   map[string]float64
	edges    map[string]float64
}

// servePeer serves on a free port until the process is ended.
func servePeer([]string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	fmt.Println("listening", ln.Addr())
	return http.Serve(ln, newPeer())
}

func newPeer() *peer { return &peer{sessions: map[string]*session{}} }

// ServeHTTP answers the two requests with a status and a JSON value.
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

// encode is the reply with a value that is made of JSON.
func encode(status int, v object) (int, []byte) {
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
		return encode(http.StatusBadRequest, object{"error": "no pipeline, or no envelope"})
	}
	s := &session{envelope: e, limits: map[string]float64{}, edges: map[string]float64{}}
	var order []any
	for _, a := range agents {
		s.stages = append(s.stages, a.(object))
		order = append(order, a.(object)["name"])
	}
	limits, _ := pipeline["edge_limits"].([]any)
	for _, l := range limits {
		l := l.(object)
		s.limits[l["from_stage"].(string)+"->"+l["to_stage"].(string)] = l["max_count"].(float64)
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
	p.sessions[in["process_id"].(string)] = s
	return encode(http.StatusOK, object{"process_id": in["process_id"], "current_stage": order[0]})
}

func (p *peer) report(in object) (int, []byte) {
	pid, _ := in["process_id"].(string)
	p.mu.RLock()
	s := p.sessions[pid]
	p.mu.RUnlock()
	if s == nil {
		return encode(http.StatusNotFound, object{"error": "Unknown process: " + pid})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var text any = "Session already terminated"
	if s.envelope["terminated"] == false {
		agent, _ := in["agent_name"].(string)
		if agent != s.agent() && agent != s.stages[s.at]["name"] {
			return encode(http.StatusConflict, object{"error": "Expected result from agent '" + s.agent() + "', got '" + agent + "'"})
		}
		s.step(agent, in)
		text = s.envelope["termination_reason"]
	}
	m := object{"kind": "RUN_AGENT", "agent_name": s.agent(), "envelope": s.envelope, "terminal_reason": "",
		"termination_message": "", "interrupt_pending": false, "interrupt": nil}
	if s.envelope["terminated"] == true {
		m["kind"], m["agent_name"], m["terminal_reason"], m["termination_message"] = "TERMINATE", "", s.envelope["terminal_reason"], text
	}
	return encode(http.StatusOK, m)
}

// agent is who works at the stage: an agent, or the one of the stage's name.
func (s *session) agent() string {
	if agent, ok := s.stages[s.at]["agent"].(string); ok {
		return agent
	}
	return s.stages[s.at]["name"].(string)
}

// step takes one report in and moves the session on.
func (s *session) step(agent string, in object) {
	output, _ := in["output"].(object)
	s.envelope["outputs"].(object)[agent] = output
	metrics, _ := in["metrics"].(object)
	for _, c := range [...][2]string{{"llm_call_count", "llm_calls"}, {"tool_call_count", "tool_calls"}, {"tokens_in", "tokens_in"}, {"tokens_out", "tokens_out"}} {
		n, _ := metrics[c[1]].(float64)
		s.count(c[0], n)
	}
	s.count("iteration", 1)
	from := s.stages[s.at]
	s.envelope["completed_stage_set"].(object)[from["name"].(string)] = true
	next, to := follow(from, output), -1
	for i, stage := range s.stages {
		if stage["name"] == next {
			to = i
		}
	}
	if to < 0 {
		s.end("COMPLETED", "Pipeline completed")
		return
	}
	if s.bounds() {
		return
	}
	edge := from["name"].(string) + "->" + next.(string)
	if most, limited := s.limits[edge]; limited && s.edges[edge] >= most {
		s.end("MAX_AGENT_HOPS_EXCEEDED", "Edge limit exceeded: "+edge)
		return
	}
	s.edges[edge]++
	s.at, s.envelope["current_stage"] = to, next
	s.count("agent_hop_count", 1)
	s.bounds()
}

func (s *session) count(counter string, n float64) {
	s.envelope[counter] = s.envelope[counter].(float64) + n
}

// follow is the stage after one, nil where the pipeline ends.
func follow(stage, output object) any {
	rules, _ := stage["routing"].([]any)
	for _, r := range rules {
		rule := r.(object)
		condition, conditional := rule["condition"].(string)
		if v, ok := output[condition]; !conditional || ok && reflect.DeepEqual(v, rule["value"]) {
			return rule["target"]
		}
	}
	return stage["default_next"]
}

// bounds ends the session when a limit is met and reports whether it did.
func (s *session) bounds() bool {
	for _, b := range [...][3]string{
		{"llm_call_count", "max_llm_calls", "MAX_LLM_CALLS_EXCEEDED"}, {"iteration", "max_iterations", "MAX_ITERATIONS_EXCEEDED"},
		{"agent_hop_count", "max_agent_hops", "MAX_AGENT_HOPS_EXCEEDED"},
	} {
		if s.envelope[b[0]].(float64) >= s.envelope[b[1]].(float64) {
			s.end(b[2], "Bounds exceeded: "+b[2])
			return true
		}
	}
	return false
}

func (s *session) end(reason, text string) {
	s.envelope["terminated"], s.envelope["terminal_reason"], s.envelope["termination_reason"] = true, reason, text
}
