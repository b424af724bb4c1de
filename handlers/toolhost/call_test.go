package toolhost

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func TestBreaker(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceOn })
	p := r.open(Stdin)
	token := p.lease(`"tool_aid":"*","tier":3`)
	const line = `{"aid":"AID.EXT.v1"}`
	crash := toolReply("false", "TOOL_ERROR", "{}", "toolhost exit 3: ", emptyDelta+`,"dispatch_error":{"error":true,"aid":"AID.EXT.v1","type":"crash","detail":""}`)
	answer := toolReply("false", "TOOL_ERROR", "{}", "an answer", emptyDelta)
	trip := func(aid string) string {
		return toolReply("false", "BREAKER_TRIP", "{}", "circuit breaker open for "+aid, emptyDelta)
	}
	r.broken.Store(true)
	p.want(line, crash)
	r.broken.Store(false)
	p.want(line, answer) // an answer, whatever it is, begins the count again
	r.broken.Store(true)
	p.want(line, crash)
	p.want(line, crash)
	r.wantRuns(4)
	r.broken.Store(false)
	// A trip runs nothing, consumes no lease and no key, and applies the state (D16).
	p.want(keyed("AID.EXT.WRITE.v1", "k", `,"_lease_token":"`+token+`","ds_state":{"slots":{"4":{"type":"mine"}}}`), trip("AID.EXT.WRITE.v1"))
	if got := p.state(); !strings.Contains(got, "mine") {
		t.Error(got)
	}
	if st := r.srv.Stats(); st.IdempotencyEntries != 0 || st.LeaseActive != 1 || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
	r.pass(time.Second - 1)
	p.want(line, trip("AID.EXT.v1"))
	r.pass(1)
	// A call that is refused is not the probe.
	p.want(`{"aid":"AID.EXT.WRITE.v1"}`, `{"ok":false,"error":"lease_required","tier":1,"aid":"AID.EXT.WRITE.v1"}`)
	p.want(`{"aid":"AID.EXT.WRITE.v1","_lease_token":"no"}`, `{"ok":false,"error":"lease_rejected","reason":"not found"}`)
	r.srv.exec.pending.Add(DefaultQueue)
	p.want(line, fault("overloaded"))
	r.srv.exec.pending.Add(-DefaultQueue)
	r.wantRuns(4)
	p.want(`{"aid":"AID.EXT.WRITE.v1","_lease_token":"`+token+`"}`, answer)
	p.want(line, answer)
	r.wantRuns(6)
	if got := r.probes.Load(); got != 1 {
		t.Errorf("%d probes", got)
	}
}

func TestOverload(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Queue, c.Executors, c.EnforceLeases = 3, 2, EnforceOn })
	busy := []*peer{r.open(Stdin), r.open(Stdin), r.open(Stdin)}
	for _, p := range busy {
		p.begin(`{"aid":"AID.WAIT.v1"}`)
	}
	r.awayBegun()
	r.awayBegun()
	r.wantRuns(2) // the third one waits for a slot
	p := r.open(Stdin)
	p.ask(`{"aid":"_run.open","goal_id":"g"}`)
	for _, line := range []string{`{"aid":"AID.AWAY.v1","ds_state":{"slots":{"1":{}}}}`, keyed("AID.AWAY.v1", "k", ""), `{"aid":"_run.select"}`,
		`{"aid":"AID.COUNT.v1","inputs":{"long":"` + strings.Repeat("x", maxFastInput) + `"}}`} {
		p.want(line, fault("overloaded"))
	}
	p.want(`{"aid":"AID.COUNT.v1"}`, okReply) // needs no place
	if got := p.state(); got != `{"slots":{}}` || r.srv.Stats().IdempotencyEntries != 0 {
		t.Error(got)
	}
	close(r.gate)
	for _, p := range busy {
		p.end()
	}
	r.awayEnded()
	p.want(keyed("AID.AWAY.v1", "k", ""), okReply)
}

// A built-in that misses its deadline is abandoned: the reply is made without it, and what it does
// later is no one's business.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Now, c.Executors = nil, 1 })
		p, q := r.open(Stdin), r.open(Stdin)
		late := toolReply("false", "TOOL_ERROR", "{}", "toolhost timed out for AID.WAIT.v1",
			emptyDelta+`,"dispatch_error":{"error":true,"aid":"AID.WAIT.v1","type":"timeout","detail":""}`)
		start := time.Now()
		p.begin(keyed("AID.WAIT.v1", "k", `,"request_id":"`+strings.Repeat("i", 128)+`","ds_state":{"slots":{"1":{"type":"mine"}}}`))
		synctest.Wait()
		q.begin(`{"aid":"AID.WAIT.v1"}`) // never gets the slot
		time.Sleep(DefaultToolTimeout - 1)
		if synctest.Wait(); len(p.wake) != 0 {
			t.Error("too early")
		}
		if got := p.end(); got != late[:len(late)-1]+`,"request_id":"`+strings.Repeat("i", 128)+`"}` {
			t.Error(got)
		}
		if got := q.end(); got != late {
			t.Error(got)
		}
		if took := time.Since(start); took != DefaultToolTimeout {
			t.Errorf("after %v", took)
		}
		synctest.Wait() // a call leaves after its reply
		if st := r.srv.Stats(); st.InFlight != 0 || r.srv.exec.pending.Load() != 1 {
			t.Errorf("%+v, %d pending", st, r.srv.exec.pending.Load())
		}
		before := p.state()
		close(r.gate)
		synctest.Wait()
		p.want(`{"aid":"AID.NOOP.v1"}`, okReply)
		if got := p.state(); got != before || strings.Contains(got, "late") || !strings.Contains(got, "mine") {
			t.Error(got)
		}
		p.want(keyed("AID.WAIT.v1", "k", ""), late[:strings.Index(late, `,"ds_state"`)]+`,"idempotent_hit":true`+late[strings.Index(late, `,"ds_state"`):])
		r.wantRuns(1)
		if r.srv.exec.pending.Load() != 0 || len(r.srv.exec.slots) != 0 {
			t.Error("the tool still has its place")
		}
	})
}

// Tools that end just when their deadline passes: the one that comes second finds a call that no
// one reuses.
func TestDeadlineRace(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Events, c.ToolTimeout = nil, time.Millisecond
		edge := toolFunc(func(ctx context.Context, c *tool.Call) tool.Result { <-ctx.Done(); return tool.Result{Output: c.Input} })
		c.Registry, _ = NewRegistry([]Entry{{Descriptor: tool.Descriptor{AID: "AID.EDGE.v1", SideEffects: []string{"none"}}, Tool: edge}})
	})
	peers := make([]*peer, 16)
	for i := range peers {
		peers[i] = r.open(Stdin)
	}
	for round := range 40 {
		for i, p := range peers {
			p.begin(fmt.Sprintf(`{"aid":"AID.EDGE.v1","inputs":{"n":"%d-%d"},"request_id":%d}`, round, i, i))
		}
		for i, p := range peers {
			got := p.end()
			own := strings.Contains(got, fmt.Sprintf(`{\"n\":\"%d-%d\"}`, round, i))
			if late := strings.Contains(got, "timed out"); own == late || !strings.HasSuffix(got, fmt.Sprintf(`"request_id":%d}`, i)) {
				t.Fatal(got)
			}
		}
	}
}

func TestPanic(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Stdin)
	for _, aid := range []string{"AID.PANIC.v1", "AID.PANIC.AWAY.v1"} {
		p.want(`{"aid":"`+aid+`"}`, toolReply("false", "TOOL_ERROR", "{}", "panic: boom",
			emptyDelta+`,"dispatch_error":{"error":true,"aid":"`+aid+`","type":"exception","detail":"panic: boom"}`))
		p.want(`{"aid":"AID.NOOP.v1"}`, okReply)
	}
	if got := r.srv.Stats().InFlight; got != 0 {
		t.Errorf("%d in flight", got)
	}
}

// A reply may have 1,048,576 bytes with its end, and is replaced above that (toolhost §3.4). So is
// one whose state grew too large.
func TestReplyLimit(t *testing.T) {
	var output, content []byte
	r := newRig(t, func(c *Config) {
		big := toolFunc(func(_ context.Context, c *tool.Call) tool.Result {
			if content != nil {
				c.State.Set(5, sessionstate.Artifact{Content: string(content)})
			}
			return tool.Result{Output: output}
		})
		entry := func(aid string, fast bool) Entry {
			return Entry{Descriptor: tool.Descriptor{AID: aid, Fast: fast, SideEffects: []string{"none"}}, Tool: big}
		}
		c.Registry, _ = NewRegistry([]Entry{entry("AID.BIG.v1", true), entry("AID.BIG.AWAY.v1", false)})
	})
	p := r.open(Stdin)
	over := toolReply("false", "TOOL_ERROR", "{}", "output exceeds 1MB limit", emptyDelta)
	overHit := toolReply("false", "TOOL_ERROR", "{}", "output exceeds 1MB limit", `,"idempotent_hit":true`+emptyDelta)
	room := maxReply - len(okReply) - 1 + len("{}")
	for _, aid := range []string{"AID.BIG.v1", "AID.BIG.AWAY.v1"} {
		line := `{"aid":"` + aid + `"}`
		content, output = nil, []byte(strings.Repeat("x", room))
		if got := p.ask(line); len(got)+1 != maxReply || !strings.HasPrefix(got, `{"ok":true,`) {
			t.Errorf("at the limit: %d bytes, %.100s", len(got)+1, got)
		}
		p.want(keyed(aid, "fits", ""), strings.Replace(okReply, "{}", string(output), 1))
		p.want(keyed(aid, "fits", ""), overHit) // the mark of the hit is too much
		output = append(output, 'x')
		p.want(line, over)
		p.want(keyed(aid, "k", ""), over)
		output = nil
		p.want(keyed(aid, "k", ""), overHit)
		content = []byte(strings.Repeat("\n", maxReply/2)) // doubled by its escapes
		p.want(line, over)
		content = []byte(strings.Repeat("c", maxReply+1))
		p.want(line, over)
		if got := p.state(); got != `{"slots":{}}` {
			t.Errorf("%.100s", got)
		}
	}
	// A state that no delta shows counts as well: here the session's and the tool's together are
	// too large.
	content = []byte(strings.Repeat("c", 1000))
	full := strings.Repeat("s", sessionstate.MaxBytes-999)
	p.want(`{"aid":"AID.BIG.v1","ds_state":{"slots":{"0":{"content_json":"`+full+`"}}}}`, over)
	if got := p.state(); len(got) < len(full) || strings.Contains(got, "ccc") {
		t.Errorf("%.100s", got)
	}
}

// Lines as long as they may be, and longer ones.
func TestLineLimit(t *testing.T) {
	const limit = 64
	f := func(via Transport, line, want string, closes bool) {
		t.Helper()
		r := newRig(t, func(c *Config) { c.MaxLineBytes = limit })
		p := r.open(via)
		if p.want(line, want); p.closed != closes {
			t.Errorf("closed: %v", p.closed)
		}
		if !closes {
			p.want(`{"aid":"AID.NOOP.v1"}`, okReply)
		}
	}
	line := `{"aid":"AID.NOOP.v1","x":"` + strings.Repeat("x", limit-28) + `"}`
	long := fault("line exceeds 10MB limit")
	for _, via := range []Transport{Stdin, Unix, TCP} {
		f(via, line, okReply, false)
		f(via, line+"\r", okReply, false)
		f(via, line+" ", long, via != Stdin)
		f(via, line+" \r", long, via != Stdin)
		f(via, strings.Repeat("x", 10*limit), long, via != Stdin)
	}
	if got := newRig(t, func(c *Config) { c.MaxLineBytes = MaxLine + 1 }).srv.cfg.MaxLineBytes; got != MaxLine {
		t.Error(got)
	}
}

// The empty line is the end, whatever follows.
func TestEmptyLine(t *testing.T) {
	p := newRig(t, nil).open(Unix)
	if got := p.ask(`{"aid":"AID.NOOP.v1"}`, "\r", `{"aid":"AID.NOOP.v1"}`); got != okReply || !p.closed {
		t.Error(got)
	}
	if len(p.in) == 0 {
		t.Error("lines behind the end were taken")
	}
}

// After as many lines as a turn may have, others get theirs.
func TestTurn(t *testing.T) {
	p := newRig(t, nil).open(Unix)
	in := []byte(strings.Repeat(`{"aid":"AID.NOOP.v1"}`+"\n", turnLines+1))
	used, out, v := p.s.Feed(in, nil, connection.Now())
	if v != connection.Yield || used != len(in)/(turnLines+1)*turnLines || strings.Count(string(out), "\n") != turnLines {
		t.Errorf("%d of %d bytes, %v", used, len(in), v)
	}
}
