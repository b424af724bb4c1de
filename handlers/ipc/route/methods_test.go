package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

// TestSeveral: the methods whose rows leave them to the router are those that it has.
func TestSeveral(t *testing.T) {
	for _, m := range ipc.Methods() {
		if want := m.To == ipc.ToSeveral; (several(m.Name) != nil) != want {
			t.Errorf("%s.%s: the table has ToSeveral %v", m.Service, m.Name, want)
		}
	}
}

// TestKeyedRequests: what names a process reaches the one service that has it.
func TestKeyedRequests(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	for i := range 3 {
		pid := b.create(i, "p", "")
		if got := b.call("kernel", "RecordUsage", `{"pid":"`+pid+`","llm_calls":`+fmt.Sprint(i)+`}`); got["llm_calls"] != json.Number(fmt.Sprint(i)) {
			t.Errorf("usage of %s: %v", pid, got)
		}
		if got := c.cores[i].Stats().Counts.Total; got != 1 {
			t.Errorf("partition %d has %d processes", i, got)
		}
	}
	if got := b.call("kernel", "GetProcess", `{}`); got["message"] != "Missing required field: pid" {
		t.Errorf("without a pid: %v", got)
	}
	if got := b.call("kernel", "GetProcess", `{"pid":7}`); got["message"] != "Missing required field: pid" {
		t.Errorf("with a number: %v", got)
	}
}

// TestRepliesInOrder: partition 2 answers first, then 1, then 0; the client gets them as it asked.
func TestRepliesInOrder(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	var all []byte
	for i := range 9 {
		all = append(all, request(fmt.Sprint("r", i), "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, i%3, "p")+`"}`)...)
	}
	b.in = all
	b.client()
	for _, partition := range []int{2, 1} {
		for b.leg(partition, 0) {
		}
		b.client()
		if len(b.out) > 0 {
			t.Fatalf("a reply came before the one of partition 0: %s", b.next())
		}
	}
	b.settle()
	for i := range 9 {
		if got := b.next(); !strings.Contains(got, fmt.Sprintf(`"id":"r%d"`, i)) {
			t.Errorf("reply %d is %s", i, got)
		}
	}
	if b.s.parked != 0 || b.s.window.len() != 0 {
		t.Errorf("%d bytes are parked and %d requests open at the end", b.s.parked, b.s.window.len())
	}
}

func TestCounts(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	for i := range 6 {
		b.create(i%3, fmt.Sprint("p", i, "-"), "")
	}
	b.send(request("n", "kernel", "GetProcessCounts", `{}`))
	b.want(`02 {"id":"n","ok":true,"body":{"counts_by_state":{"NEW":0,"READY":6,"RUNNING":0,"WAITING":0,"BLOCKED":0,"TERMINATED":0,"ZOMBIE":0},"total":6,"queue_depth":6}}`)
	b.send(request("s", "kernel", "GetSystemStatus", `{"digest":true}`))
	b.await()
	got := b.next()
	var reply struct {
		Body struct {
			Processes struct{ Total int }
			Commbus   struct {
				Events int `json:"events_published"`
			}
			Digest struct{ Kernel []string }
		}
	}
	if err := json.Unmarshal([]byte(got[3:]), &reply); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, svc := range c.cores {
		for _, n := range svc.Runtime().Digests(nil).Kernel {
			sums = append(sums, fmt.Sprintf("%016x", n))
		}
	}
	if reply.Body.Processes.Total != 6 || reply.Body.Commbus.Events != 6 || !slices.Equal(reply.Body.Digest.Kernel, sums) {
		t.Errorf("status: %s", got)
	}
	b.send(request("s", "kernel", "GetSystemStatus", `{"digest":1}`))
	b.want(`FF {"id":"s","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"digest must be a boolean"}}`)
}

func TestQuotaDefaults(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	if got := b.call("kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":7,"max_tool_calls":-1}}`); got["code"] != "INVALID_ARGUMENT" {
		t.Errorf("a negative limit: %v", got)
	}
	// A partition that missed a change takes it with the next one.
	direct := c.cores[0].Open(c.port())
	direct.Feed(request("d", "kernel", "SetQuotaDefaults", `{"quota":{"max_tool_calls":9}}`), nil, c.now)
	direct.Closed()
	if got := b.call("kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":8}}`); got["max_llm_calls"] != json.Number("8") {
		t.Errorf("SetQuotaDefaults: %v", got)
	}
	want := fmt.Sprint(b.call("kernel", "GetQuotaDefaults", `{}`))
	for i, svc := range c.cores {
		s := svc.Open(c.port())
		_, out, _ := s.Feed(request("call", "kernel", "GetQuotaDefaults", `{}`), nil, c.now)
		s.Closed()
		if got := (&board{c: c, out: out}).next(); !strings.Contains(got, `"max_llm_calls":8,"max_tool_calls":9`) {
			t.Errorf("partition %d has %s, partition 0 %s", i, got, want)
		}
	}
}

// TestNextRunnable: every process is handed out once, whichever partition has it, and the order of
// priorities holds within a partition.
func TestNextRunnable(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	want := map[string]bool{}
	for i := range 12 {
		priority := []string{"LOW", "HIGH", "NORMAL", "REALTIME"}[i/3]
		want[b.create(i%3, fmt.Sprint("p", i, "-"), `,"priority":"`+priority+`"`)] = true
	}
	rank := map[string]int{"REALTIME": 0, "HIGH": 1, "NORMAL": 2, "LOW": 3}
	last := map[placement.Partition]int{}
	for range 12 {
		got := b.call("kernel", "GetNextRunnable", `{"start":true}`)
		pid, _ := got["pid"].(string)
		if !want[pid] {
			t.Fatalf("handed out: %v", got)
		}
		delete(want, pid)
		at, r := c.router.owners.Partition(placement.Process, pid), rank[got["priority"].(string)]
		if r < last[at] {
			t.Errorf("partition %d handed out %s after a lower priority", at, got["priority"])
		}
		last[at] = r
	}
	b.send(request("e", "kernel", "GetNextRunnable", `{}`), request("f", "kernel", "GetNextRunnable", `{"start":3}`))
	b.want(`FF {"id":"e","ok":false,"error":{"code":"NOT_FOUND","message":"No runnable processes"}}`,
		`FF {"id":"f","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"start must be a boolean"}}`)
}

// TestNextRunnableSeesEarlierRequests: requests that stand before it in the pipeline have their
// effect, and those behind it do not.
func TestNextRunnableSeesEarlierRequests(t *testing.T) {
	c := newCluster(t, 3, nil)
	for partition := range 3 {
		b := c.connect()
		pid := c.home(placement.Process, partition, fmt.Sprint("x", partition, "-"))
		later := c.home(placement.Process, (partition+1)%3, fmt.Sprint("y", partition, "-"))
		b.send(request("1", "kernel", "CreateProcess", `{"pid":"`+pid+`","user_id":"`+pid+`"}`),
			request("2", "kernel", "GetNextRunnable", `{"start":true}`),
			request("3", "kernel", "GetNextRunnable", `{"start":true}`),
			request("4", "kernel", "CreateProcess", `{"pid":"`+later+`","user_id":"`+later+`","schedule":false}`))
		b.next()
		if got := b.next(); !strings.Contains(got, `"pid":"`+pid+`"`) {
			t.Errorf("after creating %s: %s", pid, got)
		}
		if got := b.next(); !strings.Contains(got, "NOT_FOUND") {
			t.Errorf("a second time: %s", got)
		}
		b.close()
	}
}

// TestListProcesses: oldest first over all partitions, in pages of every size, also when processes
// come in one millisecond.
func TestListProcesses(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	var want []string
	for i := range 40 {
		if i%4 != 3 {
			c.now.Wall++
			c.now.Mono += 1e6
		}
		want = append(want, b.create((i*i)%3, fmt.Sprint("p", i, "-"), ""))
	}
	var order []string
	if got := b.pids(t, `{}`); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Fatalf("the list is %v, want %v", got, want)
	} else {
		order = got
	}
	for limit := 1; limit <= 41; limit++ {
		if got := b.pages(t, limit, ""); !slices.Equal(got, order) {
			t.Fatalf("in pages of %d: %v, want %v", limit, got, order)
		}
	}
	for i, pid := range order { // two in one millisecond may change their places, and no others
		if at := slices.Index(want, pid); at < i-1 || at > i+1 {
			t.Errorf("%s is number %d of the list, and was created as number %d", pid, i, at)
		}
	}
	if got := b.pages(t, 2, `,"user_id":"`+want[5]+`"`); !slices.Equal(got, want[5:6]) {
		t.Errorf("of one user: %v", got)
	}
	for _, bad := range []struct{ body, text string }{
		{`{"limit":0}`, "limit must be positive"}, {`{"limit":"1"}`, "limit must be an integer"},
		{`{"cursor":-1}`, "cursor must be non-negative, got -1"}, {`{"state":"x"}`, "Invalid process state: x"},
		{`{"user_id":1}`, "user_id must be a string"},
	} {
		if got := b.call("kernel", "ListProcesses", bad.body); got["message"] != bad.text {
			t.Errorf("%s: %v", bad.body, got)
		}
	}
}

// pids returns the processes of a reply, which has no further page.
func (b *board) pids(t *testing.T, body string) []string {
	t.Helper()
	got := b.call("kernel", "ListProcesses", body)
	if len(got) != 1 {
		t.Fatalf("%s: members %v", body, got)
	}
	return pidsOf(got)
}

func pidsOf(page map[string]any) (list []string) {
	for _, p := range page["processes"].([]any) {
		list = append(list, p.(map[string]any)["pid"].(string))
	}
	return list
}

// pages follows the cursors.
func (b *board) pages(t *testing.T, limit int, more string) (list []string) {
	t.Helper()
	cursor := ""
	for {
		got := b.call("kernel", "ListProcesses", fmt.Sprintf(`{"limit":%d%s%s}`, limit, cursor, more))
		page := pidsOf(got)
		list = append(list, page...)
		next, has := got["next_cursor"]
		if !has {
			return list
		}
		if len(page) != limit {
			t.Fatalf("a page of %d has %d processes and a next one", limit, len(page))
		}
		cursor = fmt.Sprintf(`,"cursor":%v`, next)
	}
}

// TestListTooLarge: a list that does not fit a frame is refused with its size, as by one server.
func TestListTooLarge(t *testing.T) {
	answers := map[int]string{}
	for _, partitions := range []int{2, 3} {
		c := newCluster(t, partitions, func(cfg *Config, _ *ipc.Config, state *runtime.Config) {
			cfg.MaxFrameBytes, state.MaxFrameBytes = 8192, 8192
		})
		b := c.connect()
		for i := range 90 {
			pid := fmt.Sprintf("process-%03d", i)
			b.call("kernel", "CreateProcess", `{"pid":"`+pid+`","user_id":"`+pid+`"}`)
		}
		b.send(request("l", "kernel", "ListProcesses", `{}`))
		answers[partitions] = b.next()
		if got := b.pages(t, 30, ""); len(got) != 90 {
			t.Errorf("%d processes in pages", len(got))
		}
	}
	if !strings.Contains(answers[2], "Response too large: ") || answers[2] != answers[3] {
		t.Errorf("answers:\n%s\n%s", answers[2], answers[3])
	}
}

// TestEnvelopes: what a partition names itself comes back to it, and an answer reaches the sessions
// wherever they are.
func TestEnvelopes(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	for range 6 {
		made := b.call("engine", "CreateEnvelope", `{"raw_input":"hi"}`)
		clone := b.call("engine", "CloneEnvelope", `{"envelope":`+asJSON(made)+`}`)
		for _, e := range []map[string]any{made, clone} {
			if got := b.call("engine", "UpdateEnvelope", `{"envelope":`+asJSON(e)+`}`); got["identity"] == nil {
				t.Fatalf("cannot update what was created: %v", got)
			}
			text, _ := json.Marshal(asJSON(e))
			if got := b.call("engine", "UpdateEnvelope", `{"envelope":`+string(text)+`}`); got["identity"] == nil {
				t.Fatalf("cannot update by JSON text: %v", got)
			}
		}
	}
	if got := b.call("engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"ghost"}}`); got["message"] != "Envelope ghost not found" {
		t.Errorf("a ghost: %v", got)
	}
	if got := b.call("engine", "UpdateEnvelope", `{"envelope":7}`); got["code"] != "INVALID_ARGUMENT" {
		t.Errorf("a number: %v", got)
	}
}

// TestAnswersReachSessions: sessions named otherwise than the envelope they hold go on when its
// interrupt is answered, at every partition.
func TestAnswersReachSessions(t *testing.T) {
	const config = `{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[]}],"max_iterations":5,"max_llm_calls":10,"max_agent_hops":10,"edge_limits":[]}`
	c := newCluster(t, 3, nil)
	b := c.connect()
	made := b.call("engine", "CreateEnvelope", `{}`)
	id := made["identity"].(map[string]any)["envelope_id"].(string)
	var pids []string
	for i := range 3 {
		pid := c.home(placement.Process, i, "s")
		pids = append(pids, pid)
		if got := b.call("orchestration", "InitializeSession", `{"process_id":"`+pid+`","pipeline_config":`+config+`,
			"envelope":{"envelope_id":"`+id+`","interrupt_pending":true,"interrupt":{"kind":"clarification","question":"which?"}}}`); got["process_id"] != pid {
			t.Fatalf("InitializeSession: %v", got)
		}
		if got := b.call("orchestration", "GetNextInstruction", `{"process_id":"`+pid+`"}`); got["kind"] != "WAIT_INTERRUPT" {
			t.Fatalf("before the answer: %v", got)
		}
	}
	if got := b.call("engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"`+id+`","interrupt_pending":true,"raw_input":"x"}}`); got["raw_input"] != "x" {
		t.Fatalf("an update without an answer: %v", got)
	}
	if got := b.call("orchestration", "GetNextInstruction", `{"process_id":"`+pids[1]+`"}`); got["kind"] != "WAIT_INTERRUPT" {
		t.Fatalf("an update without an answer woke it: %v", got)
	}
	b.call("engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"`+id+`","interrupt_pending":false,"interrupt":{"kind":"clarification","question":"which?","response":{"text":"this"}}}}`)
	for _, pid := range pids {
		got := b.call("orchestration", "GetNextInstruction", `{"process_id":"`+pid+`"}`)
		if got["kind"] != "RUN_AGENT" || !strings.Contains(asJSON(got["envelope"].(map[string]any)), `"text":"this"`) {
			t.Errorf("%s after the answer: %v", pid, got)
		}
	}
}

func asJSON(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
