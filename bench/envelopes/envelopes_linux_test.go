package envelopes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/orchestration"
)

// start is the moment at which the steps are made.
var start = connection.Instant{Mono: int64(time.Hour), Wall: 1767323045000}

// value returns a JSON text as a member of a request.
func value(tb testing.TB, text string) mpack.Value {
	tb.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return mpack.ReadValue(b)
}

// decided is what both servers answer about a step, with what must be equal.
type decided struct {
	Kind     string `json:"kind"`
	Agent    string `json:"agent_name"`
	Envelope struct {
		Stage     string         `json:"current_stage"`
		Iteration int            `json:"iteration"`
		Hops      int            `json:"agent_hop_count"`
		Calls     int            `json:"llm_call_count"`
		Tools     int            `json:"tool_call_count"`
		TokensIn  int            `json:"tokens_in"`
		Outputs   map[string]any `json:"outputs"`
		Order     []string       `json:"stage_order"`
		Raw       string         `json:"raw_input"`
	} `json:"envelope"`
}

// TestThePeerDecidesAlike: both servers make the same steps, so that the comparison is one of the
// same work.
func TestThePeerDecidesAlike(t *testing.T) {
	f := func(name string, ends bool, begin string, reports ...string) {
		t.Helper()
		srv := httptest.NewServer(newPeer())
		defer srv.Close()
		o := orchestration.New(orchestration.Config{})
		c := &orchestration.Call{Now: start}
		var in struct {
			ProcessID string          `json:"process_id"`
			Pipeline  json.RawMessage `json:"pipeline_config"`
			Envelope  json.RawMessage `json:"envelope"`
		}
		if err := json.Unmarshal([]byte(begin), &in); err != nil {
			t.Fatal(err)
		}
		_, code := o.Initialize(c, &orchestration.InitArgs{
			ProcessID: []byte(in.ProcessID), Config: value(t, string(in.Pipeline)), Envelope: value(t, string(in.Envelope)),
		}, nil)
		if code != wire.OK {
			t.Fatalf("%s: %v: %s", name, code, c.Msg)
		}
		peerStep(t, srv, beginPath, begin, http.StatusOK)
		for i, body := range reports {
			if ours := engineStep(t, o, c, body); ends && i == len(reports)-1 {
				if peerStep(t, srv, reportPath, body, http.StatusConflict); ours.Kind != "TERMINATE" {
					t.Errorf("%s: the session goes on with %+v", name, ours)
				}
			} else if diff := cmp.Diff(ours, peerStep(t, srv, reportPath, body, http.StatusOK)); diff != "" {
				t.Fatalf("%s, step %d: %s", name, i, diff)
			}
		}
	}
	f("the measured cycle", false, beginBody(0), reportBody(0, "a1"), reportBody(0, "a2"), reportBody(0, "a1"), reportBody(0, "a2"))
	small := func(limits string) string {
		return fmt.Sprintf(`{"process_id":"p","envelope":{"envelope_id":"e","raw_input":"x","outputs":{}},"pipeline_config":{"name":"n",%s,`+
			`"agents":[{"name":"s1","agent":"a1","routing":[{"condition":"v","value":1,"target":"s2"}]},{"name":"s2","default_next":"s1"}]}}`, limits)
	}
	report := func(agent, output string) string {
		return fmt.Sprintf(`{"process_id":"p","agent_name":%q,"output":%s,"metrics":{"llm_calls":1}}`, agent, output)
	}
	const wide = `"max_iterations":9,"max_llm_calls":9,"max_agent_hops":9`
	f("an end", true, small(wide), report("a1", `{"v":1}`), report("s2", `{}`), report("a1", `{"v":2}`))
	f("calls", true, small(`"max_iterations":9,"max_llm_calls":2,"max_agent_hops":9`), report("a1", `{"v":1}`), report("s2", `{}`))
	f("hops", true, small(`"max_iterations":9,"max_llm_calls":9,"max_agent_hops":1`), report("a1", `{"v":1}`))
}

func engineStep(t *testing.T, o *orchestration.Engine, c *orchestration.Call, body string) (d decided) {
	t.Helper()
	var in struct {
		ProcessID string          `json:"process_id"`
		Agent     string          `json:"agent_name"`
		Output    json.RawMessage `json:"output"`
		Metrics   map[string]int64
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	out, code := o.Report(c, &orchestration.Report{
		ProcessID: []byte(in.ProcessID), AgentName: []byte(in.Agent), Output: value(t, string(in.Output)).Data, LLMCalls: in.Metrics["llm_calls"],
		ToolCalls: in.Metrics["tool_calls"], TokensIn: in.Metrics["tokens_in"], HasTokensIn: true,
	}, nil)
	if code != wire.OK {
		t.Fatalf("%v: %s", code, c.Msg)
	}
	text, err := transcode.AppendJSON(nil, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func peerStep(t *testing.T, srv *httptest.Server, path, body string, status int) (d decided) {
	t.Helper()
	reply, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != status {
		t.Fatalf("%s: %s, %v", reply.Status, text, err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestThePeerRefuses(t *testing.T) {
	p := newPeer()
	f := func(path, body string, status int) {
		t.Helper()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		if w.Code != status {
			t.Errorf("%s %s: %d, want %d", path, body, w.Code, status)
		}
	}
	f(beginPath, `{`, http.StatusBadRequest)
	f(beginPath, `{"process_id":"p"}`, http.StatusBadRequest)
	f(beginPath, beginBody(1), http.StatusOK)
	f(reportPath, `{`, http.StatusBadRequest)
	f(reportPath, `{"process_id":"unknown"}`, http.StatusNotFound)
	f(reportPath, reportBody(1, "a2"), http.StatusConflict)
	f(reportPath, reportBody(1, "a1"), http.StatusOK)
}

// TestSamples: what is measured has the size of its name, and is JSON.
func TestSamples(t *testing.T) {
	for _, n := range []int{200, 1024, 4096, 1 << 20} {
		env := flatEnvelope(max(n, 600))
		if !json.Valid(env) || len(env) < n-200 || n >= 600 && len(env) > n+200 {
			t.Errorf("an envelope of %d bytes has %d: %s", n, len(env), env[:200])
		}
		if got := findings(n); !json.Valid([]byte(got)) || len(got) > n+100 {
			t.Errorf("findings of %d bytes have %d", n, len(got))
		}
	}
	for _, body := range []string{beginBody(3), reportBody(3, "a1"), pipeline} {
		if !json.Valid([]byte(body)) {
			t.Errorf("no JSON: %s", body)
		}
	}
}
