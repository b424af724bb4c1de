package fuzz

import (
	"bytes"
	"testing"

	"trunkline/engine/connection"
	"trunkline/fuzz/rounds"
)

// FuzzReport: whatever agents report, nothing crashes, counters never fall, and what is refused
// changes nothing (envelope §9).
func FuzzReport(f *testing.F) {
	for _, code := range reportings() {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code []byte) { tryReports(t, code[:min(len(code), 8192)]) })
}

// TestRandomReports does the same with random bytes.
func TestRandomReports(t *testing.T) {
	for seed := range uint64(rounds.Of(50, 50)) {
		tryReports(t, randomProgram(seed, 100+int(seed)*5))
	}
}

// reportings are hand-written inputs: a way through each configuration, with every agent in turn.
func reportings() (list [][]byte) {
	for config := range byte(8) {
		for env := range byte(3) {
			code := []byte{config, env}
			for i := range byte(8) {
				code = append(code, 1, i%2, 0, i%7, 1) // a report: who, whether well, what, with what metrics
			}
			code = append(code, 0, 3, 11, 0, 1, 0, 200, 8, 0x81, 0xa1, 'v', 0x01, 0, 0, 0, 0, 1, 0)
			list = append(list, code)
		}
	}
	return list
}

// reporter is the only client of a service with one session.
type reporter struct {
	source
	t      *testing.T
	sess   connection.Session
	stored string // the identifier of the session's envelope
	before received
}

func tryReports(t *testing.T, code []byte) {
	now := connection.Instant{Mono: 1e15, Wall: 1700000000000}
	svc := newService(defaultSettings(), func() connection.Instant { return now })
	defer svc.Runtime().Close()
	r := &reporter{source: source{code}, t: t, sess: svc.Open(connection.NewPort(1, "test"))}
	defer r.sess.Closed()
	created := r.ask("engine", "CreateEnvelope", object{})
	r.stored, _ = at(created.payload, "body", "identity", "envelope_id").(string)
	env := pick(&r.source, envelopes[2], envelopes[3], envelopes[6])
	started := r.ask("orchestration", "InitializeSession",
		object{{"process_id", "p"}, {"pipeline_config", pick(&r.source, configs...)}, {"envelope", r.named(env)}})
	if started.typ != response {
		t.Fatalf("not started: %v", started)
	}
	r.before = r.state()
	for !r.done() {
		r.act()
	}
}

// at follows keys into maps; nil where one is missing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(object)
		v, _ = o.get(k)
	}
	return v
}

func (r *reporter) named(v any) any {
	s := speaker{stored: []string{r.stored}}
	if o, ok := v.(object); ok {
		return s.named(o)
	}
	return v
}

func (r *reporter) ask(service, method string, body any) received {
	payload := appendValue(nil, object{{"id", "x"}, {"service", service}, {"method", method}, {"body", body}}, nil)
	_, out, v := r.sess.Feed(appendFrame(nil, request, payload), nil, connection.Instant{})
	frames, err := readFrames(out, defaultSettings().maxFrame)
	if err != nil || len(frames) != 1 || v == connection.Close {
		r.t.Fatalf("%s: %v, %d frames, verdict %v", method, err, len(frames), v)
	}
	if code := at(frames[0].payload, "error", "code"); code == "INTERNAL" {
		r.t.Fatalf("%s: %v", method, frames[0])
	}
	return frames[0]
}

func (r *reporter) state() received {
	f := r.ask("orchestration", "GetSessionState", object{{"process_id", "p"}})
	if f.typ != response {
		r.t.Fatalf("no state: %v", f)
	}
	return f
}

// act does one thing to the session and looks at it before and after.
func (r *reporter) act() {
	var f received
	reported := false
	switch r.n(4) {
	case 0:
		f = r.ask("orchestration", "GetNextInstruction", object{{"process_id", "p"}})
	case 3:
		f = r.ask("engine", "UpdateEnvelope", object{{"envelope", r.named(r.value(envelopes))}})
	default:
		f, reported = r.report(), true
	}
	after := r.state()
	r.compare(f, after, reported)
	r.before = after
}

// report has an agent report.
func (r *reporter) report() received {
	body := object{{"process_id", "p"}, {"agent_name", pick(&r.source, agents...)}, {"success", r.n(4) < 3}}
	body = r.with(body, "output", results)
	body = r.with(body, "metrics", append(metrics[:len(metrics):len(metrics)], noMetrics...))
	if !r.done() && r.byte() < 64 {
		body = r.with(body, "error", reasons)
	}
	return r.ask("orchestration", "ReportAgentResult", body)
}

func (r *reporter) with(body object, name string, from []any) object {
	v := r.value(from)
	if _, no := v.(absent); no {
		return body
	}
	return append(body, member{name, v})
}

// value is one of a list, or bytes of the program as they are, if they are a value.
func (r *reporter) value(from []any) any {
	choice := r.byte()
	if choice < 192 {
		return from[int(choice)%len(from)]
	}
	n := min(r.n(256), len(r.b))
	raw := r.b[:n]
	r.b = r.b[n:]
	if _, err := decode(raw); err != nil {
		return nil
	}
	return encoded(raw)
}

// compare holds the state of the session against the one before.
func (r *reporter) compare(f, after received, reported bool) {
	same := bytes.Equal(appendValue(nil, r.before.payload, nil), appendValue(nil, after.payload, nil))
	was, is := counters(r.before), counters(after)
	ended, waited := at(r.before.payload, "body", "terminated") == true, flagOf(r.before, "interrupt_pending")
	switch {
	case f.typ != response && !same:
		r.t.Fatalf("refused with %v, and the session changed from %v to %v", f, r.before, after)
	case ended && !same:
		r.t.Fatalf("the session had ended and changed from %v to %v", r.before, after)
	case f.typ == response && reported && waited && !ended:
		r.t.Fatalf("a report was taken while the session waits: %v", f)
	}
	for i := range was {
		if is[i] < was[i] {
			r.t.Fatalf("counter %d fell from %d to %d", i, was[i], is[i])
		}
	}
	if taken := f.typ == response && reported && !ended; is[0]-was[0] != num(taken) {
		r.t.Fatalf("taken is %v, iteration went from %d to %d", taken, was[0], is[0])
	}
	if hops, edges := is[1]-was[1], sum(after)-sum(r.before); hops != edges || hops > 1 {
		r.t.Fatalf("%d hops, %d more edges", hops, edges)
	}
}

func num(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// member of the session's envelope, in either shape.
func (f received) inEnvelope(name string) any {
	e := &envelope{}
	e.doc, _ = at(f.payload, "body", "envelope").(object)
	e.nested = e.doc.has("identity")
	return e.get(name)
}

func flagOf(f received, name string) bool { return f.inEnvelope(name) == true }

func counters(f received) (list [6]int64) {
	for i, name := range []string{"iteration", "agent_hop_count", "llm_call_count", "tool_call_count", "tokens_in", "tokens_out"} {
		list[i], _ = f.inEnvelope(name).(int64)
	}
	return list
}

// sum is the sum of edge_traversals.
func sum(f received) (n int64) {
	edges, _ := at(f.payload, "body", "edge_traversals").(object)
	for _, m := range edges {
		n += m.val.(int64)
	}
	return n
}
