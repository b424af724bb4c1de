package envelopetest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// worker plays the agents, the user and the reviewer of one envelope until it ends: what a real
// client does between two steps.
type worker struct {
	t *rapid.T
	d draws
	// frugal workers make no model call, so that only iterations and hops bound the run; they ask
	// no one, because a question that is asked again and again costs neither.
	frugal bool
	steps  int
	log    []string
}

// TestWorkers: a run always ends, no bound is exceeded on the way, and the one that is asked to run
// has not answered yet.
func TestWorkers(t *testing.T) {
	runs, steps := 0, 0
	check(t, 20000, func(t *rapid.T) {
		w := &worker{t: t, d: draws{t}, frugal: rapid.Bool().Draw(t, "frugal")}
		w.run()
		runs, steps = runs+1, steps+w.steps
	})
	const few = 1000                                                    // runs, of which chance decides how many steps they have
	if least := 5 * runs; !t.Failed() && runs >= few && steps < least { // 100,000 steps in the full test
		t.Errorf("%d steps in %d runs, want %d at least", steps, runs, least)
	}
}

func (w *worker) run() {
	m := w.start()
	limit := w.limit(view(m))
	for {
		text := print(w.t, m)
		w.log = append(w.log, text)
		_, reply, err := parsedStep(w.t, text)
		if err != nil {
			w.t.Fatalf("refused: %s %s\nrun: %s", err.Message, err.Field, w.tail())
		}
		w.steps++
		properties(w.t, m, reply)
		m = reply
		doc := view(m)
		if doc.flag("terminated") {
			w.ended(doc)
			return
		}
		if w.steps > limit {
			w.t.Fatalf("no end after %d steps: %s", w.steps, w.tail())
		}
		w.answer(document{root: m, nested: doc.nested, model: spec()})
	}
}

func (w *worker) tail() string {
	return print(w.t, anys(w.log[max(len(w.log)-4, 0):]))
}

// limit is more steps than any run can take: every agent costs a call, or a hop, or an iteration,
// or a stage; a question costs one more step.
func (w *worker) limit(d document) int {
	if w.frugal {
		return int(d.number("max_agent_hops") + d.number("max_iterations") + d.number("max_stages") + 4)
	}
	return int(2*d.number("max_llm_calls") + 4)
}

// start is a fresh envelope in one of the shapes.
func (w *worker) start() object {
	order := pick(w.d, orders...)
	if slices.Contains(order, "a") || len(order) < 4 { // Orders without a full line end early; most runs want one.
		order = pick(w.d, sixStages, sixStages, order)
	}
	if slices.Contains(order, "plan") && slices.Contains(order, "planner") { // One output would be two stages' answer.
		order = sixStages
	}
	m := object{"envelope_id": "env_00000000000000a1", "raw_input": "go", "stage_order": anys(order),
		"max_iterations": number(int64(w.d.small(1, 7))), "max_llm_calls": number(int64(w.d.small(1, 60))),
		"max_agent_hops": number(int64(w.d.small(1, 80))), "max_stages": number(int64(w.d.small(1, 7)))}
	if w.d.chance(30) {
		m["interrupt_pending"] = false
	}
	if !w.d.chance(40) {
		return m
	}
	doc := document{root: object{"identity": object{}, "pipeline": object{}, "bounds": object{}}, nested: true}
	for key, v := range m {
		doc.set(key, v)
	}
	return doc.root
}

// answer does what the envelope waits for.
func (w *worker) answer(d document) {
	asked := d.flag("interrupt_pending") || d.flag("clarification_pending") || d.flag("confirmation_pending")
	if asked {
		w.reply(d)
		return
	}
	stage := d.text("current_stage")
	if !slices.Contains(d.order(), stage) || d.key(stage) != "" {
		w.t.Fatalf("stage %q is to run, order %v, output %q\nrun: %s", stage, d.order(), d.key(stage), w.tail())
	}
	w.within(d)
	key := stage
	if other, ok := aliases[stage]; ok && w.d.chance(30) && !slices.Contains(d.order(), other) {
		key = other
	}
	d.object("outputs")[key] = w.output(key)
	if !w.frugal {
		d.bump("llm_call_count")
	}
}

// within: an agent runs only while every bound has room (D9).
func (w *worker) within(d document) {
	if d.number("iteration") > d.number("max_iterations") || d.number("llm_call_count") >= d.number("max_llm_calls") ||
		d.number("agent_hop_count") >= d.number("max_agent_hops") || d.number("current_stage_number") > d.number("max_stages") {
		w.t.Fatalf("an agent is to run beyond a bound\nrun: %s", w.tail())
	}
}

// output is an agent's answer that mostly lets the line go on.
func (w *worker) output(key string) object {
	m := w.d.output(key)
	if w.frugal {
		for _, name := range []string{"clarification_needed", "confirmation_needed", "approval"} {
			delete(m, name)
		}
	}
	if m["status"] == "error" && !w.d.chance(10) {
		delete(m, "status")
	}
	if m["approval"] == "denied" && !w.d.chance(10) {
		delete(m, "approval")
	}
	m["tokens"] = json.Number("1.50")
	return m
}

// reply answers the open question, in the interrupt or beside it.
func (w *worker) reply(d document) {
	interrupt, raised := d.get("interrupt").(map[string]any)
	answers := object{"text": "this one", "approved": !w.d.chance(5), "received_at": clock}
	switch {
	case d.flag("interrupt_pending") && raised && (d.nested || w.d.chance(50)):
		interrupt["response"] = answers
	case d.flag("clarification_pending"):
		d.set("clarification_response", answers["text"])
	case d.flag("confirmation_pending"):
		d.set("confirmation_response", answers["approved"])
	default:
		w.t.Fatalf("waits for nothing that can be answered: %s", w.tail())
	}
}

// ended: what the last reply of a run looks like.
func (w *worker) ended(d document) {
	reason := canonical(d.text("terminal_reason"))
	if _, known := reasons[reason]; !known || d.text("completed_at") != clock || d.text("termination_reason") == "" {
		w.t.Fatalf("ended by %q, %q at %q: %s", reason, d.text("termination_reason"), d.text("completed_at"), w.tail())
	}
	past := d.number("iteration") > d.number("max_iterations")+1 || d.number("llm_call_count") > d.number("max_llm_calls") ||
		d.number("agent_hop_count") > d.number("max_agent_hops") || d.number("current_stage_number") > d.number("max_stages")
	if past {
		w.t.Fatalf("ended beyond a bound: %s", w.tail())
	}
}
