package exacta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trunkline/handlers/exacta/external"
)

// model is a server with the interface of OpenAI that gives its answers in their order, the last
// one for ever. An empty answer does not come until the request is given up.
type model struct {
	answers []string
	arrived chan struct{} // one for each request; nothing waits for it
	left    chan struct{} // one for each request that was given up

	mu    sync.Mutex
	asked []string // inputs
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct{ Messages []struct{ Content string } }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		panic(err)
	}
	m.mu.Lock()
	answer := m.answers[min(len(m.asked), len(m.answers)-1)]
	m.asked = append(m.asked, q.Messages[1].Content)
	m.mu.Unlock()
	m.arrived <- struct{}{}
	if answer == "" {
		<-r.Context().Done()
		m.left <- struct{}{}
		return
	}
	b, _ := json.Marshal(answer)
	fmt.Fprintf(w, `{"choices":[{"finish_reason":"stop","message":{"content":%s}}]}`, b)
}

// modelled is a client of a server of projects that asks a model.
type modelled struct {
	*peer
	*model
	dir string
	url string
}

func newModelled(t *testing.T, ai string, answers ...string) *modelled {
	m := &modelled{dir: newRoot(t), model: &model{answers: answers, arrived: make(chan struct{}, 64), left: make(chan struct{}, 64)}}
	web := httptest.NewServer(m.model)
	t.Cleanup(web.Close)
	m.url = web.URL + "/v1"
	m.configure(t, ai)
	planner := external.Config{Kind: external.OpenAI, URL: m.url, Model: "m"}
	if err := planner.Check(); err != nil {
		t.Fatal(err)
	}
	m.peer = newPeer(t, newServerOf(t, Config{Planner: planner}), 1)
	m.send(ask(1, "OpenProject", `"path":"`+m.dir+`"`))
	m.want(2, "LogEntry1 101:ok")
	return m
}

// configure writes the section ai; {URL} is that of the model.
func (m *modelled) configure(t *testing.T, ai string) {
	dir := filepath.Join(m.dir, ".exacta")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"schema_version":1,"ai":{` + strings.ReplaceAll(ai, "{URL}", m.url) + `}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answer returns all lines up to the answer of a request.
func (m *modelled) answer(n int) (lines []string) {
	m.t.Helper()
	id := fmt.Sprintf(`"type":"response","request_id":"00000000-0000-4000-8000-0000000001%02x"`, n)
	for {
		end := bytes.IndexByte(m.rest, '\n')
		if end < 0 {
			m.pump()
			continue
		}
		line := string(m.rest[:end])
		m.rest = m.rest[end+1:]
		if lines = append(lines, line); strings.Contains(line, id) {
			return lines
		}
	}
}

// extract has an intent extracted and returns its id.
func (m *modelled) extract(n int) string {
	m.t.Helper()
	m.send(ask(n, "ExtractIntent", `"user_input":"make it b"`))
	lines := m.answer(n)
	last := lines[len(lines)-1]
	_, id, ok := strings.Cut(last, `"intent":{"id":"`)
	if !ok {
		m.t.Fatal(lines)
	}
	return id[:36]
}

// contains fails unless each text is in a line, in this order.
func contains(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	rest := lines
	for _, text := range texts {
		for len(rest) > 0 && !strings.Contains(rest[0], text) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			t.Fatalf("no %s in\n%s", text, strings.Join(lines, "\n"))
		}
		rest = rest[1:]
	}
}

const (
	useModel = `"provider":"openai_compatible"`
	toFixA   = `{"type":"FixBug","confidence":0.9,"target":{"files":["a.txt"],"symbols":[],"description":"d"},"constraints":[]}`
	aIsB     = `{"steps":[{"type":"file_modify","target":"a.txt","description":"a is b","dependencies":[],"diff":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"}]}`
	noSteps  = `{"steps":[]}`
)

func (m *modelled) cached() int {
	names, _ := filepath.Glob(filepath.Join(m.dir, ".exacta/cache/planner/*"))
	return len(names)
}

// TestModelPlans: a plan of a model is proposed with the diff that the server makes. The answers
// are kept once it is valid.
func TestModelPlans(t *testing.T) {
	m := newModelled(t, useModel+`,"endpoint":"{URL}"`, toFixA, noSteps, aIsB)
	m.send(ask(3, "GeneratePlan", `"intent_id":"`+m.extract(2)+`"`))
	contains(t, m.answer(3), `"to":"AwaitingApproval"`, `"description":"a is b"`, `@@ -1,1 +1,1 @@\n-a\n+b\n`, `"ok":true`)
	if len(m.asked) != 3 || m.cached() != 3 {
		t.Errorf("%q, %d kept", m.asked, m.cached())
	}
	if want := `"feedback":[{"code":"PC-1",`; !strings.Contains(m.asked[2], want) {
		t.Errorf("%s", m.asked[2])
	}
	if strings.Contains(strings.Join(m.asked, ""), m.dir) || strings.Contains(strings.Join(m.asked, ""), pid) {
		t.Errorf("more is sent than the model may know: %q", m.asked)
	}
}

// TestPlanIsGivenUp: a plan that is wrong three times is VAL-004 with what was wrong last, and
// nothing of it is kept.
func TestPlanIsGivenUp(t *testing.T) {
	stale := strings.Replace(aIsB, `-a\n`, `-x\n`, 1)
	for last, detail := range map[string]string{
		noSteps: `[{\"code\":\"PC-1\",`,
		stale:   `[{\"code\":\"VAL-005\",\"message\":\"the change of step 1 cannot be made: context: a.txt:1\",\"step_id\":null}]`,
	} {
		m := newModelled(t, useModel, toFixA, noSteps, stale, last, aIsB)
		m.send(ask(3, "GeneratePlan", `"intent_id":"`+m.extract(2)+`"`))
		lines := m.answer(3)
		contains(t, lines, `"to":"Planning"`, `"ErrorRaised"`, `"to":"Failed","trigger":"PlanInvalid"`, `"code":"VAL-004"`)
		if got := lines[len(lines)-1]; !strings.Contains(got, `"technical_detail":"`+detail) {
			t.Errorf("%s", got)
		}
		if len(m.asked) != 4 || m.cached() != 1 {
			t.Errorf("%d questions, %d answers are kept", len(m.asked), m.cached())
		}
	}
}

// TestPlannerFails has failures of planners while a plan is made.
func TestPlannerFails(t *testing.T) {
	f := func(ai, answer, code string) {
		t.Helper()
		m := newModelled(t, ai, toFixA, answer)
		m.send(ask(3, "GeneratePlan", `"intent_id":"`+m.extract(2)+`"`))
		contains(t, m.answer(3), `"to":"Planning"`, `"code":"`+code, `"to":"Failed","trigger":"PlannerError"`, `"ok":false,"result":null,"error":{"code":"`+code)
	}
	f(useModel, `{"steps":[{"type":"file_delete","target":"../x","description":"","dependencies":[]}]}`, "AI-005")
	f(useModel, strings.Replace(aIsB, `+b\n`, `+sk-aaaaaaaaaaaaaaaaaaaaaaaa\n`, 1), "SEC-003")
	m := newModelled(t, useModel+`,"max_input_tokens":1`, toFixA)
	if err := os.WriteFile(filepath.Join(m.dir, "a.txt"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.send(ask(3, "GeneratePlan", `"intent_id":"`+m.extract(2)+`"`))
	contains(t, m.answer(3), `"to":"Failed","trigger":"PlannerError"`, `"code":"RES-001"`)
}

// TestModelIntents: an intent that is not sure enough, and one whose constraints contradict each
// other, lead back to Idle as those of the built-in planner do.
func TestModelIntents(t *testing.T) {
	f := func(answer string, texts ...string) {
		t.Helper()
		m := newModelled(t, useModel, answer)
		m.send(ask(2, "ExtractIntent", `"user_input":"x"`))
		contains(t, m.answer(2), append([]string{`"to":"ExtractingIntent"`, `"ErrorRaised"`, `"to":"Idle","trigger":"IntentRejected"`}, texts...)...)
	}
	f(strings.Replace(toFixA, "0.9", "0.599", 1), `"confidence":0.59`)
	f(strings.Replace(toFixA, "FixBug", "UnknownIntent", 1), `"type":"UnknownIntent"`)
	f(strings.Replace(toFixA, `"constraints":[]`, `"constraints":[{"type":"MUST","description":"a B","scope":"s"},{"type":"MUST_NOT","description":"A b","scope":"s"}]`, 1),
		`"code":"VAL-002"`)
}

// TestCancelGivesUp: Cancel while a planner works ends the request to it, and so does a time limit.
func TestCancelGivesUp(t *testing.T) {
	m := newModelled(t, useModel, toFixA, "")
	id := m.extract(2)
	<-m.arrived
	m.send(ask(3, "GeneratePlan", `"intent_id":"`+id+`"`))
	<-m.arrived
	m.send(ask(4, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000103"`))
	contains(t, m.answer(4), `"to":"Planning"`, `"to":"Idle","trigger":"Cancel"`, `"code":"IPC-010"`, `"ok":true`)
	<-m.left
	late := strings.Replace(ask(5, "ExtractIntent", `"user_input":"other"`), `"payload"`, `"timeout_ms":300,"payload"`, 1)
	m.send(late)
	contains(t, m.answer(5), `"to":"ExtractingIntent"`, `"to":"Failed","trigger":"Timeout"`, `"code":"IPC-008"`)
}

// TestProviderIsNotEnabled: what the operator did not enable is refused before anything changes.
func TestProviderIsNotEnabled(t *testing.T) {
	m := newModelled(t, useModel, toFixA)
	id := m.extract(2)
	for n, ai := range []string{`"provider":"subprocess"`, useModel + `,"endpoint":"https://evil.example/v1"`} {
		m.configure(t, ai)
		setting := []string{"ai.provider", "ai.endpoint"}[n]
		m.send(ask(3+2*n, "ExtractIntent", `"user_input":"x"`), ask(4+2*n, "GeneratePlan", `"intent_id":"`+id+`"`))
		for _, k := range []int{3 + 2*n, 4 + 2*n} {
			if lines := m.answer(k); len(lines) != 1 || !strings.Contains(lines[0], `"code":"CFG-003"`) || !strings.Contains(lines[0], setting) {
				t.Errorf("%v", lines)
			}
		}
	}
	m.configure(t, `"provider":"builtin","endpoint":"https://evil.example/v1"`)
	m.send(ask(9, "ExtractIntent", `"user_input":"append \"x\" to a.txt"`))
	contains(t, m.answer(9), `"trigger":"IntentExtracted"`, `"confidence":0.95`)
	if len(m.asked) != 1 {
		t.Errorf("%q", m.asked)
	}
}
