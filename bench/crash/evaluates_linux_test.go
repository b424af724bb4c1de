package crash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// want checks that the game has one fault for each of the texts, in order, which contains it.
func want(t *testing.T, g *game, texts ...string) {
	t.Helper()
	ok := len(g.faults) == len(texts)
	for i := 0; ok && i < len(texts); i++ {
		ok = strings.Contains(g.faults[i], texts[i])
	}
	if !ok {
		t.Errorf("faults %q, want %q", g.faults, texts)
	}
}

func testGame() *game {
	g := newGame(&options{}, leg{mode: "always"}, 0, "", "")
	g.forget()
	g.hist = newHistories(g)
	return g
}

func TestMisplaced(t *testing.T) {
	f := func(wrong bool, order ...queued) {
		t.Helper()
		if got := misplaced(order); (got != "") != wrong {
			t.Errorf("%v: %q", order, got)
		}
	}
	q := func(priority int, sent, acked int64) queued { return queued{"p", priority, entry{sent, acked}} }
	f(false)
	f(false, q(0, 9, 10), q(1, 1, 2), q(1, 3, 4), q(4, 1, 2))
	f(true, q(1, 1, 2), q(0, 9, 10))
	f(true, q(1, 3, 4), q(1, 1, 2))
	f(false, q(1, 2, 4), q(1, 1, 3)) // both were under way at a time: the order is unknown
	f(true, q(1, 5, 6), q(1, 4, 7), q(1, 1, 3))
	f(false, q(1, 1, math.MaxInt64), q(1, 2, 3))
}

func TestExplain(t *testing.T) {
	was := world{pid: "p", state: stateReady, session: life{generation: 1, stage: "s1"}}
	next := was
	next.session.report(1, 10, goesOn)
	twice := next
	twice.session.report(1, 10, goesOn)
	running := was
	running.state = stateRunning
	f := func(ok, drawn bool, found world, again bool, maybe *world) {
		t.Helper()
		a := &actor{is: was, maybe: maybe}
		if _, gotDrawn, got := a.explain(found, again); got != ok || gotDrawn != drawn {
			t.Errorf("%v (again %v): %v, drawn %v", found, again, got, gotDrawn)
		}
	}
	f(true, false, was, false, nil)
	f(true, false, was, false, &next)
	f(true, false, next, false, &next)
	f(false, false, next, false, nil)
	f(false, false, was, true, &next) // it was sent again, so it must be there
	f(false, false, twice, true, &next)
	f(false, false, twice, false, &next)
	f(true, true, running, false, nil)
	f(true, false, running, false, &running)
	f(false, false, world{pid: "p"}, false, &next)
}

func TestCheckTaken(t *testing.T) {
	a := &actor{entered: entry{sent: 5, acked: 6}}
	ready, running := world{pid: "p", state: stateReady}, world{pid: "p", state: stateRunning}
	f := func(started int64, wild int, drawn bool, found world, texts ...string) {
		t.Helper()
		g := testGame()
		if g.wildStarts = wild; started > 0 {
			g.started["p"] = started
		}
		g.checkTaken(a, &ready, drawn, &found)
		want(t, g, texts...)
	}
	f(0, 0, false, ready)
	f(7, 0, true, running)
	f(0, 1, true, running)
	f(0, 0, true, running, "nobody started it")
	f(7, 0, false, ready, "READY again")
	f(5, 0, false, ready) // before it entered this time
}

func TestSharedUsage(t *testing.T) {
	f := func(acked, sent, seen, total int64, texts ...string) {
		t.Helper()
		g, s := testGame(), &shared{pid: "s"}
		s.acked.Store(acked)
		s.sent.Store(sent)
		s.saw(seen)
		s.saw(seen - 1)
		s.found(g, total)
		want(t, g, texts...)
		if s.acked.Load() != total || s.sent.Load() != total {
			t.Error("does not go on from what is there")
		}
	}
	f(10, 15, 0, 10)
	f(10, 15, 12, 15)
	f(10, 15, 0, 9, "usage of s is 9")
	f(10, 15, 0, 16, "usage of s is 16")
	f(10, 15, 12, 11, "12 shown")
}

func TestCheckProcesses(t *testing.T) {
	g := testGame()
	a := &actor{g: g, is: world{pid: "p", state: stateNew, llm: 3, session: life{generation: 1}}}
	a.past = []ended{{world: world{pid: "old", state: stateTerminated}}}
	g.actors = []*actor{a, {g: g, is: world{pid: "none"}}}
	p := ipcclient.Process{PID: "p", State: stateNew, Usage: ipcclient.Usage{LLMCalls: 3}}
	old := ipcclient.Process{PID: "old", State: stateTerminated}
	there := map[string]ipcclient.Process{"p": p, "old": old, "x": {PID: "x"}}
	if n := g.checkProcesses(there); n != 1 || len(there) != 1 {
		t.Errorf("%d sessions, left %v", n, there)
	}
	want(t, g)
	p.Usage.LLMCalls = 4
	g.checkProcesses(map[string]ipcclient.Process{"p": p, "none": {PID: "none"}})
	want(t, g, "LLMCalls:4", "process old", "PID:none")
}

func TestCompare(t *testing.T) {
	g := testGame()
	g.compare(picture{"a": {1}, "b": {2}}, picture{"a": {1}, "b": {2}})
	want(t, g)
	g.compare(picture{"a": {1}, "b": {2}}, picture{"a": msgp.AppendString(nil, "other")})
	if len(g.faults) != 3 || !strings.Contains(strings.Join(g.faults, ""), "other") {
		t.Errorf("%q", g.faults)
	}
}

func TestEvaluate(t *testing.T) {
	f := func(err error, lost, alive bool, faults int) {
		t.Helper()
		g := testGame()
		if gotLost, gotAlive := g.evaluate(err, "it"); gotLost != lost || gotAlive != alive || len(g.faults) != faults {
			t.Errorf("%v: lost %v, alive %v, %q", err, gotLost, gotAlive, g.faults)
		}
	}
	f(&ipcclient.ConnError{Err: errors.New("reset")}, true, false, 0)
	f(&ipcclient.ConnError{Err: ipcclient.ErrProtocol}, true, false, 1)
	f(&ipcclient.Error{Code: wire.ResourceExhausted, Retryable: true}, false, true, 0)
	f(&ipcclient.Error{Code: wire.Unavailable}, false, false, 0)
	f(&ipcclient.Error{Code: wire.NotFound}, true, false, 1)
	f(context.DeadlineExceeded, true, false, 1)
}

func TestLife(t *testing.T) {
	var w world
	w.session.begin(false)
	l := &w.session
	l.report(1, 5, goesOn)
	l.report(2, 5, goesOn)
	if *l != (life{generation: 1, iteration: 2, llm: 2, tokens: 10, hops: 2, outputs: [2]int64{1, 2}, stage: "s1"}) {
		t.Errorf("%+v", *l)
	}
	if !l.reached(1, 2) || l.reached(1, 3) || l.reached(2, 0) || !l.reached(0, 9) {
		t.Error("reached")
	}
	ends := w
	if ends.session.report(3, 5, completes); !ends.session.terminated || ends.session.reason != "COMPLETED" || ends.session.hops != 2 || ends.session.running() {
		t.Errorf("%+v", ends.session)
	}
	if w.terminate(); w.state != stateTerminated || w.session.reason != "USER_CANCELLED" {
		t.Errorf("%v", w)
	}
	failed := life{outputs: [2]int64{7, 8}, stage: "s2"}
	if failed.report(9, 5, fails); failed != (life{iteration: 1, llm: 1, tokens: 5, outputs: [2]int64{7, 0}, terminated: true, reason: "TOOL_FAILED_FATALLY"}) {
		t.Errorf("%+v", failed)
	}
	if ends.terminate(); ends.session.reason != "COMPLETED" {
		t.Errorf("%v", ends)
	}
}

func TestLifeIn(t *testing.T) {
	f := func(text, wrong string, want life) {
		t.Helper()
		got, err := lifeIn(encoded(text))
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) || err == nil && got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	const state = `{"process_id":"p","current_stage":%q,"stage_order":[],"edge_traversals":{"s1->s2":2,"s2->s1":1},"terminated":%v,"terminal_reason":%q,` +
		`"envelope":{"current_stage":"s2","iteration":3,"llm_call_count":3,"tokens_in":7,"agent_hop_count":3,"terminated":%v,"interrupt_pending":true,` +
		`"outputs":{"a1":{"n":3},"a2":{"n":2}},"request_context":{"generation":%d}}}`
	l := life{generation: 4, iteration: 3, llm: 3, tokens: 7, hops: 3, outputs: [2]int64{3, 2}, stage: "s2", waiting: true}
	f(fmt.Sprintf(state, "s2", false, "", false, 4), "", l)
	f(fmt.Sprintf(state, "s2", false, "", false, 0), "no generation", l)
	f(fmt.Sprintf(state, "s1", false, "", false, 4), "do not agree", l)
	f(fmt.Sprintf(state, "s2", true, "R", false, 4), "do not agree", l)
	l.stage, l.terminated, l.reason = "", true, "R"
	f(fmt.Sprintf(state, "end", true, "R", true, 4), "", l)
	f(`{"envelope":{}}`, "no generation", l)
	f(`[]`, "cannot read", l)
}
