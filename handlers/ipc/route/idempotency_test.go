package route

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"
)

// keyed adds an idempotency key to the members of a body.
func keyed(members, name string) string {
	if members != "" {
		members += ","
	}
	return `{` + members + `"idempotency_key":"` + name + strings.Repeat("-", 32-len(name)) + `"}`
}

// keys returns how many keys each partition has.
func (c *cluster) keys() (n []int64) {
	for _, svc := range c.cores {
		n = append(n, svc.Stats().IdempotencyKeys)
	}
	return n
}

// TestRepetitionsMeetTheirAnswers: what any partition may serve, or several in turn, has its key
// where a repetition comes to, over whichever connection.
func TestRepetitionsMeetTheirAnswers(t *testing.T) {
	c := newCluster(t, 3, nil)
	f := func(service, method, body string) map[string]any {
		t.Helper()
		first := c.connect().call(service, method, body)
		for range 4 {
			if again := c.connect().call(service, method, body); !reflect.DeepEqual(again, first) {
				t.Errorf("%s %s gives %v, then %v", method, body, first, again)
			}
		}
		return first
	}
	b := c.connect()
	for i := range 6 {
		f("engine", "CreateEnvelope", keyed(`"raw_input":"a"`, fmt.Sprint("create", i)))
		f("engine", "CloneEnvelope", keyed(`"envelope":{"raw_input":"a"}`, fmt.Sprint("clone", i)))
	}
	var envelopes int64
	for _, svc := range c.cores {
		envelopes += svc.Stats().Orch.Envelopes
	}
	if envelopes != 12 {
		t.Errorf("12 requests have made %d envelopes", envelopes)
	}
	handed := map[string]bool{}
	for i := range 6 {
		b.create(i%3, fmt.Sprint("p", i, "-"), "")
	}
	for i := range 7 {
		got := f("kernel", "GetNextRunnable", keyed(`"start":true`, fmt.Sprint("next", i)))
		if pid, ok := got["pid"].(string); ok != (i < 6) || handed[pid] {
			t.Fatalf("request %d: %v", i, got)
		} else if ok {
			handed[pid] = true
		}
	}
	pid := b.create(2, "late", "")
	if got := f("kernel", "GetNextRunnable", keyed(`"start":true`, "next6")); got["code"] != "NOT_FOUND" {
		t.Errorf("an answer has changed: %v", got)
	}
	if got := f("kernel", "GetNextRunnable", keyed(``, "other")); got["pid"] != pid {
		t.Errorf("want %s: %v", pid, got)
	}
	last := b.create(1, "last", "")
	for _, body := range []string{`{"idempotency_key":5}`, `{"start":true,"idempotency_key":["a"]}`,
		`{"idempotency_key":"short"}`} {
		if got := b.call("kernel", "GetNextRunnable", body); got["code"] != "INVALID_ARGUMENT" {
			t.Errorf("%s: %v", body, got)
		}
	}
	if got := b.call("kernel", "GetNextRunnable", `{"idempotency_key":null}`); got["pid"] != last {
		t.Errorf("no key: %v, want %s", got, last)
	}
}

// TestOldQuotaDefaultsStayOld: the repetition of an old change gets its answer, and no partition
// goes back to it.
func TestOldQuotaDefaultsStayOld(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	set := func(n int) map[string]any {
		t.Helper()
		got := b.call("kernel", "SetQuotaDefaults", keyed(fmt.Sprintf(`"quota":{"max_llm_calls":%d}`, n),
			fmt.Sprint("set", n)))
		if got["max_llm_calls"] != json.Number(fmt.Sprint(n)) {
			t.Fatalf("set %d: %v", n, got)
		}
		return got
	}
	set(5)
	set(9)
	set(5)
	for i := range c.cores {
		pid := b.create(i, "p", "")
		b.call("kernel", "RecordUsage", `{"pid":"`+pid+`","llm_calls":7}`)
		if got := b.call("kernel", "CheckQuota", `{"pid":"`+pid+`"}`); got["within_bounds"] != true {
			t.Errorf("partition %d: %v", i, got)
		}
	}
}

// TestOldAnswersWakeNobody: the repetition of the answer to an earlier interrupt does not answer a
// later one, at any partition.
func TestOldAnswersWakeNobody(t *testing.T) {
	const config = `{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[]}],"max_iterations":5,"max_llm_calls":10,"max_agent_hops":10,"edge_limits":[]}`
	c := newCluster(t, 3, nil)
	b := c.connect()
	made := b.call("engine", "CreateEnvelope", `{}`)
	id := made["identity"].(map[string]any)["envelope_id"].(string)
	answer := keyed(`"envelope":{"envelope_id":"`+id+`","interrupt_pending":false,"interrupt":{"kind":"clarification","question":"which?","response":{"text":"this"}}}`,
		"answer")
	first := b.call("engine", "UpdateEnvelope", answer)
	if n := c.keys(); n[0] != 1 || n[1] != 1 || n[2] != 1 {
		t.Fatalf("keys %v", n)
	}
	for i := range 3 {
		pid := c.home(placement.Process, i, "s")
		if got := b.call("orchestration", "InitializeSession", `{"process_id":"`+pid+`","pipeline_config":`+config+`,
			"envelope":{"envelope_id":"`+id+`","interrupt_pending":true,"interrupt":{"kind":"clarification","question":"which one?"}}}`); got["process_id"] != pid {
			t.Fatalf("InitializeSession: %v", got)
		}
	}
	if again := b.call("engine", "UpdateEnvelope", answer); !reflect.DeepEqual(again, first) {
		t.Errorf("got %v, then %v", first, again)
	}
	for i := range 3 {
		if got := b.call("orchestration", "GetNextInstruction",
			`{"process_id":"`+c.home(placement.Process, i, "s")+`"}`); got["kind"] != "WAIT_INTERRUPT" {
			t.Errorf("the session of partition %d: %v", i, got)
		}
	}
}
