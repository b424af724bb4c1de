package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// changer makes threads and changes their status, one after the other.
type changer struct {
	name    string
	threads []*changed
}

// changed is a thread that a changer made.
type changed struct {
	key, id  string
	answered []string        // reasons of changes, in order
	pending  map[string]bool // reasons of changes that were not answered
	made     int             // changes
}

// call returns the result, nil if the server died or refused.
func (p *peer) call(method, params string) (result map[string]any) {
	_ = p.send(`{"id":1,"method":"%s","params":%s}`, method, params)
	line, _ := p.in.ReadString('\n')
	var v struct{ Result map[string]any }
	_ = json.Unmarshal([]byte(line), &v)
	return v.Result
}

func (c *changer) create(p *peer, th *changed) bool {
	v := p.call("create_thread", `{"workspace_id":"wk_mobile_core","title":"t","type":"incident","participants":["a"],"idempotency_key":"`+th.key+`"}`)
	id, ok := v["thread_id"].(string)
	if ok && th.id == "" {
		th.id = id
	}
	return ok && id == th.id
}

// run changes things until the server dies. A creation without an answer is repeated.
func (c *changer) run(p *peer) {
	for {
		n := len(c.threads)
		if n == 0 || c.threads[n-1].id != "" && rand.IntN(8) == 0 {
			c.threads = append(c.threads, &changed{key: fmt.Sprint(c.name, "-", n), pending: map[string]bool{}})
			n++
		}
		th := c.threads[n-1]
		if th.id == "" && !c.create(p, th) {
			return
		}
		th.made++
		reason, to := fmt.Sprint("reason ", th.made), "active"
		if th.made%2 == 1 {
			to = "blocked"
		}
		if p.call("update_thread_status", `{"thread_id":"`+th.id+`","status":"`+to+`","reason":"`+reason+`"}`) == nil {
			th.pending[reason] = true
			return
		}
		th.answered = append(th.answered, reason)
	}
}

// audited is an event of the audit log.
type audited struct {
	Operation string
	Payload   map[string]any
}

// audited returns the events of a thread, from all pages: one has those of so many rows of all
// threads.
func (s *server) audited(t *testing.T, thread string) (all []audited) {
	t.Helper()
	for after, more := uint64(0), true; more; {
		var page struct {
			Events    []audited
			NextAfter uint64 `json:"next_after"`
			HasMore   bool   `json:"has_more"`
		}
		a := s.request("GET", fmt.Sprintf("/v1/audit?limit=500&after=%d&thread_id=%s", after, thread), auditor, "")
		if err := json.Unmarshal([]byte(a.text), &page); err != nil {
			t.Fatal(a.text)
		}
		all, after, more = append(all, page.Events...), page.NextAfter, page.HasMore
	}
	return all
}

// check compares a thread with its audit log: each change that was answered is there once,
// in order, and the status is what the last one made of it.
func (c *changer) check(t *testing.T, s *server, p *peer, th *changed) {
	t.Helper()
	if !c.create(p, th) {
		t.Fatalf("key %s names another thread than %s", th.key, th.id)
	}
	status, left, creations := "active", th.answered, 0
	for _, ev := range s.audited(t, th.id) {
		reason, _ := ev.Payload["reason"].(string)
		switch {
		case ev.Operation == "mcp.create_thread":
			creations++
			continue
		case ev.Payload["from_status"] != status:
			t.Errorf("%s: a change from %v, it was %s", th.id, ev.Payload, status)
		case len(left) > 0 && left[0] == reason:
			left = left[1:]
		case th.pending[reason]:
			delete(th.pending, reason)
		default:
			t.Errorf("%s: %v was not asked for, or twice", th.id, ev.Payload)
		}
		status, _ = ev.Payload["to_status"].(string)
	}
	got := s.post("get_thread", auditor, `{"thread_id":"`+th.id+`"}`)
	if creations != 1 || len(left) > 0 || got.body["status"] != status {
		t.Errorf("%s: %d creations, %s, the log says %s and lacks %v", th.id, creations, got.text, status, left)
	}
}

// TestChangesOverCrashes makes threads and changes their status while the server is killed again
// and again: what was answered is there once, and its audit event with it.
func TestChangesOverCrashes(t *testing.T) {
	t.Parallel()
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=50000", "SUPERVISOR_MODE=off")
	var all []*changer
	for i := range 4 {
		all = append(all, &changer{name: fmt.Sprint("c", i)})
	}
	for range rounds.Of(2, 6) {
		var running sync.WaitGroup
		for _, c := range all {
			p := s.dial(coordinator)
			running.Go(func() { c.run(p) })
		}
		time.Sleep(time.Duration(30+rand.IntN(150)) * time.Millisecond)
		s.kill()
		running.Wait()
		s.run()
	}
	p, threads, changes := s.dial(coordinator), 0, 0
	for _, c := range all {
		for _, th := range c.threads {
			c.check(t, s, p, th)
			threads, changes = threads+1, changes+len(th.answered)
		}
	}
	t.Logf("%d threads, %d changes", threads, changes)
	s.stop()
}
