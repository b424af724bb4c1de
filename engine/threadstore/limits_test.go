package threadstore

import (
	"fmt"
	"strings"
	"testing"
)

// TestLastNumber has the last number of a message, and one more (threads §6).
func TestLastNumber(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.find(id).latest = maxSeq - 1
	if p := r.post(alice, id, "x", "k"); p.Seq != maxSeq {
		t.Error(p)
	}
	if _, ref := r.Post(alice, id, textPost("y", ""), r.now); ref.Code != SeqExhausted {
		t.Error(ref)
	}
	if p := r.post(alice, id, "x", "k"); p.Seq != maxSeq || !p.Replay {
		t.Error(p)
	}
}

// TestPages has where pages of read_messages end (threads §4.4), in memory and in rows.
func TestPages(t *testing.T) {
	const empty = len(`{"message_id":"msg_01KHNQHEG0KH6YV2NM6PRZNGBK","schema_version":1,"seq":1,"kind":"chat","body":"","sender_agent_id":"alice","sender_session_id":"s1","created_at":"2026-02-17T12:00:00.000Z"}`)
	for _, c := range []struct {
		sizes []int // of messages
		since uint64
		limit int
		seqs  int // on the page
		next  uint64
		more  bool
	}{
		{nil, 0, 50, 0, 0, false},
		{nil, 7, 50, 0, 0, false},
		{[]int{300, 300, 300}, 0, 50, 3, 3, false},
		{[]int{300, 300, 300}, 0, 3, 3, 3, false},
		{[]int{300, 300, 300}, 0, 2, 2, 2, true},
		{[]int{300, 300, 300}, 1, 1, 1, 2, true},
		{[]int{300, 300, 300}, 3, 1, 0, 3, false},
		{[]int{300, 300, 300}, 9, 1, 0, 3, false},
		{[]int{pageBytes/2 - 1, pageBytes / 2, 300}, 0, 50, 2, 2, true},
		{[]int{pageBytes / 2, pageBytes / 2, 300}, 0, 50, 1, 1, true},
		{[]int{pageBytes + 1, 300}, 0, 50, 1, 1, true},
		{[]int{300, pageBytes}, 0, 50, 1, 1, true},
	} {
		for _, cold := range []bool{false, true} {
			r := newRig(t, Config{HotBytes: 1, segment: 1000})
			id := r.create()
			for _, size := range c.sizes {
				r.post(alice, id, strings.Repeat("x", size-empty), "")
			}
			if r.sync(); cold {
				r.post(boss, r.create(), strings.Repeat("x", 2000), "") // the last segment stays in memory
				r.sync()
				r.store()
				if _, p, _ := r.Read(bob, id, c.since, c.limit, false, nil); p.Cold != (c.seqs > 0) {
					t.Errorf("%v behind %d: cold %t", c.sizes, c.since, p.Cold)
				}
			}
			page, p, ref := r.Read(bob, id, c.since, c.limit, true, nil)
			got := strings.Count(string(page), `{"message_id"`)
			if ref.Code != OK || got != c.seqs || p.Next != c.next || p.More != c.more || got > 1 && len(page) > pageBytes {
				t.Errorf("%v behind %d, at most %d, cold %t: %d messages up to %d, more %t, in %d bytes (%+v)", c.sizes, c.since, c.limit, cold, got, p.Next, p.More, len(page), ref)
			}
			_ = r.log.Close()
		}
	}
}

// TestRejections has the bound of audit events about requests without a token (threads §6): the
// rest of a second is counted.
func TestRejections(t *testing.T) {
	r := newRig(t, Config{})
	reject := func(n int) {
		for range n {
			r.Rejected(nil, "mcp.get_thread", "req_1", "UNAUTHORIZED", r.now)
		}
	}
	reject(maxRejections + 5)
	r.now += 1000
	reject(1)
	r.Rejected(alice, "mcp.get_thread", "req_2", "FORBIDDEN", r.now)
	r.sync()
	payloads := func(workspace string) (all []string) {
		_, _, err := r.Audit(workspace, 0, 500, "", func(ev *AuditEvent) bool {
			if ev.Result != auditRejected || ev.ResourceType != "request" || ev.Thread != "" {
				t.Errorf("%+v", ev)
			}
			all = append(all, string(ev.Payload))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := payloads(unknownWorkspace); len(got) != maxRejections+1 || got[0] != `{"code":"UNAUTHORIZED"}` || got[maxRejections] != `{"code":"UNAUTHORIZED","suppressed":5}` {
		t.Errorf("%d events: %v", len(got), got)
	}
	if got := payloads("w"); len(got) != 1 || got[0] != `{"code":"FORBIDDEN"}` {
		t.Error(got)
	}
}

// TestBoundsOfMemory has what is remembered of agents beyond their number.
func TestBoundsOfMemory(t *testing.T) {
	var q quotas
	q.init()
	agent := func(i int) *Actor { return &Actor{Agent: fmt.Sprint("a", i)} }
	cfg := &PostRates{PerAgent: 1}
	now := int64(1_000_000)
	for i := range maxBuckets {
		if q.take(cfg, nil, agent(i), now) != 0 {
			t.Fatal(i)
		}
	}
	if wait := q.take(cfg, nil, agent(maxBuckets), now); wait != sweepEvery {
		t.Error("one more waits for", wait)
	}
	if wait := q.take(cfg, nil, agent(maxBuckets), now+minute); wait != 0 || len(q.agents) != 1 {
		t.Errorf("a minute later it waits for %d beside %d", wait, len(q.agents))
	}
	var js jobs
	js.init()
	target := func(i int) recentKey { return recentKey{0, agentKey{"w", fmt.Sprint("a", i)}} }
	if js.note(target(0), 0, now); len(js.recent) != 0 {
		t.Error("a target is kept for a limit that is off")
	}
	for i := range maxRecent + 1 {
		js.note(target(i), 3, now)
	}
	if len(js.recent) != maxRecent {
		t.Error(len(js.recent), "targets")
	}
	for range 5 {
		js.note(target(0), 3, now+1)
	}
	if got := js.within(target(0), resumeWindow, now+1); len(got) != 3 {
		t.Error(got)
	}
	if js.note(target(maxRecent), 3, now+resumeWindow+1); len(js.recent) != 1 {
		t.Error(len(js.recent), "targets when all but one are over")
	}
}
