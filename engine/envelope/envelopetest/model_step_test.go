package envelopetest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// question is one of the two things the engine can ask: its flags in the flat shape, its members in
// an interrupt.
type question struct {
	kind                    string
	pending, prompt, answer string
	asks, answers           string // members of the interrupt and of its response
	idPrefix                string
}

var clarification = question{
	kind: "clarification", pending: "clarification_pending", prompt: "clarification_question", answer: "clarification_response",
	asks: "question", answers: "text", idPrefix: "int_",
}

var confirmation = question{
	kind: "confirmation", pending: "confirmation_pending", prompt: "confirmation_message", answer: "confirmation_response",
	asks: "message", answers: "approved", idPrefix: "conf_",
}

var sixStages = []string{"perception", "intent", "plan", "execution", "critic", "integration"}

func pseudo(stage string) bool {
	return slices.Contains([]string{"start", "end", "clarification", "confirmation"}, stage)
}

// process is the whole of `process`: S0 to S9.
func (m model) process(in map[string]any) (map[string]any, *fault) {
	d, f := m.open(in)
	if f != nil {
		return nil, f
	}
	d.step()
	return d.root, nil
}

func (d document) step() {
	reason := canonical(d.text("terminal_reason"))
	switch {
	case d.flag("terminated"): // S1
		return
	case reason != "" && !strings.HasSuffix(reason, "_required"): // S2
		d.set("terminated", true)
		d.stamp()
		return
	}
	d.setReason("") // S3
	if goals, ok := texts(d.outputMember("intent", "goals")); ok && len(d.list("all_goals")) == 0 {
		d.addGoals(goals)
	}
	if d.answerClarification() || d.answerConfirmation() || d.awaitOther() || d.place() {
		return
	}
	if d.consume() {
		d.dispatch()
	}
}

// answerClarification is S4; true ends the call.
func (d document) answerClarification() bool {
	q := clarification
	if !d.asked(q) {
		return false
	}
	var answer any
	if s, _ := d.given(q).(string); s != "" {
		answer = s
	} else if s, _ := d.response(q).(string); s != "" {
		answer = s
	}
	if answer == nil {
		d.wait(q)
		return true
	}
	d.resolve(q, answer)
	d.object("metadata")["user_clarification"] = answer
	order, cs := d.order(), d.text("current_stage")
	at, intent := slices.Index(order, cs), slices.Index(order, "intent")
	switch {
	case intent >= 0 && (at < 0 || intent <= at):
		d.rewind("intent")
	case at < 0 && len(order) > 0:
		d.rewind(order[0])
	default:
		d.rewind(cs)
	}
	return false
}

// answerConfirmation is S5; true ends the call.
func (d document) answerConfirmation() bool {
	q := confirmation
	if !d.asked(q) {
		return false
	}
	answer, ok := d.given(q).(bool)
	if !ok {
		if answer, ok = d.response(q).(bool); !ok {
			d.wait(q)
			return true
		}
	}
	d.resolve(q, answer)
	if !answer {
		d.terminate("denied_by_policy", "User denied confirmation")
		return true
	}
	order, cs := d.order(), d.text("current_stage")
	at := slices.Index(order, cs)
	if at >= 0 && cs != "execution" && cs != "executor" {
		return d.advance(order, at)
	}
	d.rewind(firstOf(order, cs, "executor", "execution"))
	return false
}

// awaitOther is S6.
func (d document) awaitOther() bool {
	if !d.flag("interrupt_pending") {
		return false
	}
	interrupt, _ := d.get("interrupt").(map[string]any)
	if interrupt["response"] == nil {
		return true
	}
	d.set("interrupt_pending", false)
	return false
}

// place is S7.
func (d document) place() bool {
	order, cs := d.order(), d.text("current_stage")
	switch {
	case pseudo(cs) && cs != "end" && len(order) > 0:
		d.set("current_stage", order[0])
	case cs == "end":
		d.finish()
		return true
	case len(order) > 0 && !slices.Contains(order, cs):
		d.terminate("tool_failed_fatally", "Unknown stage: "+cs)
		return true
	}
	return false
}

// dispatch is S9.
func (d document) dispatch() {
	cs := d.text("current_stage")
	if errors := d.list("errors"); len(errors) > 0 {
		last := errors[len(errors)-1].(map[string]any)
		if last["agent"] == cs && last["recoverable"] == false {
			d.terminate("tool_failed_fatally", messageOr(last, "Stage "+cs+" failed"))
			return
		}
	}
	for _, bound := range []struct{ count, limit, reason, text, sign string }{
		{"iteration", "max_iterations", "max_iterations_exceeded", "Iteration limit exceeded", ">"},
		{"llm_call_count", "max_llm_calls", "max_llm_calls_exceeded", "LLM call limit reached", ">="},
		{"agent_hop_count", "max_agent_hops", "max_agent_hops_exceeded", "Agent hop limit reached", ">="},
	} {
		n, limit := d.number(bound.count), d.number(bound.limit)
		if n > limit || n == limit && bound.sign == ">=" {
			d.terminate(bound.reason, fmt.Sprintf("%s (%d %s %d)", bound.text, n, bound.sign, limit))
			return
		}
	}
}

func messageOr(m map[string]any, text string) string {
	if s, ok := m["message"].(string); ok {
		return s
	}
	return text
}

// pendingInterrupt is the interrupt of a kind that waits, or nil.
func (d document) pendingInterrupt(kind string) map[string]any {
	interrupt, _ := d.get("interrupt").(map[string]any)
	if spelled, _ := interrupt["kind"].(string); !d.flag("interrupt_pending") || !strings.EqualFold(spelled, kind) {
		return nil
	}
	return interrupt
}

func (d document) asked(q question) bool {
	return !d.nested && d.flag(q.pending) || d.pendingInterrupt(q.kind) != nil
}

// given is the answer in the flat shape.
func (d document) given(q question) any {
	if d.nested {
		return nil
	}
	return d.get(q.answer)
}

// response is the answer in the pending interrupt.
func (d document) response(q question) any {
	response, _ := d.pendingInterrupt(q.kind)["response"].(map[string]any)
	return response[q.answers]
}

func (d document) wait(q question) {
	d.setReason(q.kind + "_required")
	if d.nested {
		return
	}
	d.set(q.pending, true)
	interrupt := d.pendingInterrupt(q.kind)
	if s, ok := interrupt[q.asks].(string); ok && d.get(q.prompt) == nil {
		d.set(q.prompt, s)
	}
	if s, ok := interrupt["id"].(string); ok && q.kind == "confirmation" && d.get("confirmation_id") == nil {
		d.set("confirmation_id", s)
	}
}

func (d document) resolve(q question, answer any) {
	if !d.nested {
		d.set(q.pending, false)
		d.set(q.answer, answer)
	}
	if interrupt := d.pendingInterrupt(q.kind); interrupt != nil {
		d.set("interrupt_pending", false)
		if interrupt["response"] == nil {
			interrupt["response"] = map[string]any{q.answers: answer, "received_at": d.model.now}
		}
	}
}

// raise asks a question: rows b and c.
func (d document) raise(q question, stage string, prompt, given any) {
	if _, ok := prompt.(string); !ok {
		prompt = nil
	}
	id := q.idPrefix + d.derived(stage, q.kind)
	if s, ok := given.(string); ok {
		id = s
	}
	if !d.nested {
		d.set(q.pending, true)
		d.set(q.prompt, prompt)
		d.set(q.answer, nil)
		if q.kind == "confirmation" {
			d.set("confirmation_id", id)
		}
	}
	if d.raises {
		d.set("interrupt_pending", true)
		d.set("interrupt", map[string]any{"kind": q.kind, "id": id, q.asks: prompt, "created_at": d.model.now})
	}
	d.setReason(q.kind + "_required")
}

// derived is the id of envelope §3.7 without its prefix.
func (d document) derived(stage, kind string) string {
	parts := []string{d.text("envelope_id"), stage, number(d.number("iteration")).String(),
		number(d.number("current_stage_number")).String(), kind}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}
