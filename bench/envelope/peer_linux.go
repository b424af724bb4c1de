package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"
)

// The peer is the server that a team would write first: net/http, encoding/json, and the session's
// envelope as a map. It makes the same decisions as a report at trunkline does (envelope §5.2) for
// pipelines like the one measured here.

const (
	beginPath  = "/v1/sessions"
	reportPath = "/v1/report"
)

// servePeer serves on a free port until SIGTERM.
func servePeer() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	fmt.Println("listening", ln.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	srv := &http.Server{Handler: newPeer()}
	go func() {
		<-stop
		srv.Close()
	}()
	if err := srv.Serve(ln); err != http.ErrServerClosed {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// peer is all sessions.
type peer struct {
	http.ServeMux
	mu       sync.RWMutex
	sessions map[string]*peerSession
}

// peerPipeline is a pipeline as encoding/json reads it.
type peerPipeline struct {
	Agents        []peerStage `json:"agents"`
	MaxIterations float64     `json:"max_iterations"`
	MaxLLMCalls   float64     `json:"max_llm_calls"`
	MaxAgentHops  float64     `json:"max_agent_hops"`
	EdgeLimits    []struct {
		From string  `json:"from_stage"`
		To   string  `json:"to_stage"`
		Max  float64 `json:"max_count"`
	} `json:"edge_limits"`
}

type peerStage struct {
	Name    string `json:"name"`
	Agent   string `json:"agent"`
	Routing []struct {
		Condition *string `json:"condition"`
		Value     any     `json:"value"`
		Target    string  `json:"target"`
	} `json:"routing"`
	DefaultNext string `json:"default_next"`
}

type peerSession struct {
	mu       sync.Mutex
	pipeline peerPipeline
	envelope map[string]any
	stage    int
	edges    map[string]float64
	limits   map[string]float64
	ended    bool
	reason   string
}

func newPeer() *peer {
	p := &peer{sessions: map[string]*peerSession{}}
	p.HandleFunc("POST "+beginPath, p.begin)
	p.HandleFunc("POST "+reportPath, p.report)
	return p
}

func (p *peer) begin(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ProcessID string         `json:"process_id"`
		Pipeline  peerPipeline   `json:"pipeline_config"`
		Envelope  map[string]any `json:"envelope"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Pipeline.Agents) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	s := &peerSession{pipeline: in.Pipeline, envelope: in.Envelope, edges: map[string]float64{}, limits: map[string]float64{}}
	var order []any
	for i := range in.Pipeline.Agents {
		a := &in.Pipeline.Agents[i]
		a.Agent = cmp.Or(a.Agent, a.Name)
		order = append(order, a.Name)
	}
	for _, e := range in.Pipeline.EdgeLimits {
		s.limits[e.From+"->"+e.To] = e.Max
	}
	for key, value := range map[string]any{
		"stage_order": order, "current_stage": in.Pipeline.Agents[0].Name, "iteration": 0.0, "llm_call_count": 0.0, "tool_call_count": 0.0,
		"agent_hop_count": 0.0, "tokens_in": 0.0, "tokens_out": 0.0, "max_iterations": in.Pipeline.MaxIterations,
		"max_llm_calls": in.Pipeline.MaxLLMCalls, "max_agent_hops": in.Pipeline.MaxAgentHops, "terminated": false, "terminal_reason": nil,
		"termination_reason": nil, "interrupt_pending": false, "completed_stage_set": map[string]any{},
	} {
		s.envelope[key] = value
	}
	p.mu.Lock()
	p.sessions[in.ProcessID] = s
	p.mu.Unlock()
	answer(w, map[string]any{"process_id": in.ProcessID, "current_stage": order[0]})
}

func (p *peer) report(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	pid, _ := in["process_id"].(string)
	p.mu.RLock()
	s := p.sessions[pid]
	p.mu.RUnlock()
	if s == nil {
		http.Error(w, "Unknown process: "+pid, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	agent, _ := in["agent_name"].(string)
	if at := s.pipeline.Agents[s.stage]; !s.ended && agent != at.Agent && agent != at.Name {
		http.Error(w, "Expected result from agent '"+at.Agent+"', got '"+agent+"'", http.StatusConflict)
		return
	}
	if s.ended {
		answer(w, s.instruction("Session already terminated"))
		return
	}
	s.step(agent, in)
	answer(w, s.instruction(s.envelope["termination_reason"]))
}

// step takes one report in and moves the session on.
func (s *peerSession) step(agent string, in map[string]any) {
	e := s.envelope
	output, _ := in["output"].(map[string]any)
	outputs, _ := e["outputs"].(map[string]any)
	outputs[agent] = output
	metrics, _ := in["metrics"].(map[string]any)
	for counter, metric := range map[string]string{
		"llm_call_count": "llm_calls", "tool_call_count": "tool_calls", "tokens_in": "tokens_in", "tokens_out": "tokens_out",
	} {
		n, _ := metrics[metric].(float64)
		e[counter] = e[counter].(float64) + n
	}
	e["iteration"] = e["iteration"].(float64) + 1
	from := &s.pipeline.Agents[s.stage]
	e["completed_stage_set"].(map[string]any)[from.Name] = true
	to := s.find(s.next(from, output))
	if to < 0 {
		s.end("COMPLETED", "Pipeline completed")
		return
	}
	if s.bounds() {
		return
	}
	edge := from.Name + "->" + s.pipeline.Agents[to].Name
	if most, limited := s.limits[edge]; limited && s.edges[edge] >= most {
		s.end("MAX_AGENT_HOPS_EXCEEDED", "Edge limit exceeded: "+edge)
		return
	}
	s.edges[edge]++
	s.stage = to
	e["current_stage"] = s.pipeline.Agents[to].Name
	e["agent_hop_count"] = e["agent_hop_count"].(float64) + 1
	s.bounds()
}

func (s *peerSession) next(from *peerStage, output map[string]any) string {
	for _, r := range from.Routing {
		if r.Condition == nil {
			return r.Target
		}
		if v, ok := output[*r.Condition]; ok && reflect.DeepEqual(v, r.Value) {
			return r.Target
		}
	}
	return from.DefaultNext
}

func (s *peerSession) find(name string) int {
	for i, a := range s.pipeline.Agents {
		if a.Name == name {
			return i
		}
	}
	return -1
}

// bounds ends the session when a limit is met and reports whether it did.
func (s *peerSession) bounds() bool {
	for _, b := range [][3]string{
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

func (s *peerSession) end(reason, text string) {
	s.ended, s.reason = true, reason
	s.envelope["terminated"], s.envelope["terminal_reason"], s.envelope["termination_reason"] = true, reason, text
}

func (s *peerSession) instruction(text any) map[string]any {
	m := map[string]any{"kind": "RUN_AGENT", "agent_name": s.pipeline.Agents[s.stage].Agent, "envelope": s.envelope, "terminal_reason": "",
		"termination_message": "", "interrupt_pending": false, "interrupt": nil}
	if s.ended {
		m["kind"], m["agent_name"], m["terminal_reason"], m["termination_message"] = "TERMINATE", "", s.reason, text
	}
	return m
}

func answer(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.Write(b)
}
