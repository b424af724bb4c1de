package ipc

import (
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/runtime"
)

// TestATurnCountsWork: requests that are small, and whose answers are, but that have a large
// envelope decoded and encoded each time, are few per turn; other connections come in between.
func TestATurnCountsWork(t *testing.T) {
	const frames = 32
	r := newRig(t, func(c *Config, r *runtime.Config) { c.TurnBytes = 1 << 20 })
	p := r.connect()
	init := p.call("i", "orchestration", "InitializeSession", `{"process_id":"p","pipeline_config":{"name":"n","agents":[{"name":"s"}]},`+
		`"envelope":{"envelope_id":"e","large":"`+strings.Repeat("x", 5<<20-10_000)+`"}}`)
	if !strings.HasPrefix(init, "02 ") {
		t.Fatalf("%.200s", init)
	}
	report := request("r", "orchestration", "ReportAgentResult", `{"process_id":"p","agent_name":"s","output":{"x":"`+strings.Repeat("y", 9000)+`"}}`)
	var in []byte
	for range frames {
		in = append(in, report...)
	}
	turns := 0
	for ; len(in) > 0; turns++ {
		used, out, v := p.s.Feed(in, nil, r.now)
		if !strings.Contains(string(out), "Envelope too large") {
			t.Fatalf("%.200q", out)
		}
		in = in[used:]
		if len(in) > 0 && v != connection.Yield {
			t.Fatalf("verdict %v with %d bytes left", v, len(in))
		}
	}
	if turns != frames {
		t.Errorf("%d requests in %d turns, each is more than a turn's work", frames, turns)
	}
}
