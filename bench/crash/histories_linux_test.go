package crash

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// processes with and without a session, as histories have them.
func unborn() world { return world{} }

func alive(state string, tokens int64) world {
	return world{priority: historyPriority, state: state, llm: 1, tokens: tokens}
}

func withSession(w world, n int) world {
	w.session = life{generation: n, stage: stages[0]}
	return w
}

func TestApply(t *testing.T) {
	f := func(before world, in call, answer string, after world) {
		t.Helper()
		if w, r := in.apply(before); r.String() != answer || w != after {
			t.Errorf("%v: %q, want %q; %v, want %v", in, r, answer, w, after)
		}
	}
	born := world{state: stateNew, priority: historyPriority}
	queued := world{state: stateReady, priority: historyPriority}
	f(unborn(), call{method: create}, "NEW 0/0", born)
	f(unborn(), call{method: create, flag: true}, "NEW 0/0", queued) // kernel-ipc §4.1
	f(queued, call{method: create}, "FAILED_PRECONDITION", queued)
	for m := get; m < begin; m++ {
		f(unborn(), call{method: m}, "NOT_FOUND", unborn())
	}
	f(born, call{method: schedule}, "READY 0/0", queued)
	f(queued, call{method: schedule}, "READY 0/0", queued)
	f(alive(stateBlocked, 7), call{method: schedule}, "FAILED_PRECONDITION BLOCKED", alive(stateBlocked, 7))
	f(alive(stateRunning, 7), call{method: move, to: stateWaiting}, "WAITING 1/7", alive(stateWaiting, 7))
	f(alive(stateWaiting, 7), call{method: move, to: stateRunning}, "FAILED_PRECONDITION WAITING", alive(stateWaiting, 7))
	f(alive(stateZombie, 7), call{method: terminate}, "ZOMBIE 1/7", alive(stateZombie, 7))
	f(alive(stateReady, 7), call{method: usage, n: 5}, "2/12", world{priority: historyPriority, state: stateReady, llm: 2, tokens: 12})
	f(alive(stateReady, 7), call{method: quota}, "1/7", alive(stateReady, 7))
	f(alive(stateReady, 7), call{method: hand}, "READY 1/7", alive(stateReady, 7))
	f(alive(stateReady, 7), call{method: next}, "RUNNING 1/7", alive(stateRunning, 7))
	f(alive(stateRunning, 7), call{method: next}, "NOT_FOUND", alive(stateRunning, 7))

	for m := report; m < methodCount; m++ {
		f(born, call{method: m}, "NOT_FOUND", born)
	}
	s := withSession(alive(stateReady, 7), 3)
	f(alive(stateReady, 7), call{method: begin, n: 3}, (reply{session: s.session}).String(), s)
	f(s, call{method: begin, n: 4}, "INVALID_ARGUMENT", s)
	f(s, call{method: begin, n: 4, flag: true}, (reply{session: withSession(s, 4).session}).String(), withSession(s, 4))
	f(s, call{method: report, n: 9, agent: 1}, "FAILED_PRECONDITION a1", s)
	after := s
	after.session.report(9, 9, goesOn)
	f(s, call{method: report, n: 9}, instructed(after.session).String(), after)
	f(after, call{method: instruct}, instructed(after.session).String(), after)
	over := after
	over.terminate()
	f(after, call{method: move, to: stateTerminated}, "TERMINATED 1/7", over)
	f(after, call{method: terminate}, "TERMINATED 1/7", over)
	f(over, call{method: report, n: 10, agent: 1}, instructed(over.session).String(), over)
	if r := instructed(over.session); r.kind != ipcclient.Terminate || r.agent != "" || r.session.hops != 0 {
		t.Errorf("%v", r)
	}
}

// op is an operation of a history; what it answers is the model's state before.
func did(client int, from, to int64, before world, in call) porcupine.Operation {
	_, r := in.apply(before)
	return porcupine.Operation{ClientId: client, Call: from, Return: to, Input: in, Output: r}
}

func lost(client int, from, to int64, in call) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Call: from, Return: to, Input: in, Output: reply{lost: true}}
}

func TestVerdict(t *testing.T) {
	f := func(name string, want porcupine.CheckResult, ops ...porcupine.Operation) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "pages")
		got, fault := verdict("h/1", ops, dir)
		_, err := os.Stat(filepath.Join(dir, "history-h-1.html"))
		if got != want || (fault != "") != (want == porcupine.Illegal) || (err == nil) != (want == porcupine.Illegal) {
			t.Errorf("%s: %s, want %s; page: %v; %s", name, got, want, err, fault)
		}
	}
	queued, running := world{state: stateReady, priority: historyPriority}, world{state: stateRunning, priority: historyPriority}
	born := did(0, 1, 2, unborn(), call{method: create, flag: true})
	read := func(client int, from, to int64, w world) porcupine.Operation {
		return did(client, from, to, w, call{method: get})
	}
	start := call{method: move, to: stateRunning}
	f("nothing", porcupine.Ok)
	f("in turn", porcupine.Ok, born, did(0, 3, 4, queued, start), read(0, 5, 6, running))
	f("at once", porcupine.Ok, born, did(0, 3, 6, queued, start), read(1, 4, 5, queued), read(2, 4, 7, running))
	f("an answer is forgotten", porcupine.Illegal, born, did(0, 3, 4, queued, start), read(0, 5, 6, queued))
	f("everything is forgotten", porcupine.Illegal, born, read(0, 5, 6, unborn()))
	f("what a read showed is forgotten", porcupine.Illegal, born, lost(0, 3, 9, start), read(1, 4, 5, running), read(1, 10, 11, queued))
	f("what a refusal showed is forgotten", porcupine.Illegal, born, lost(0, 3, 9, start), did(1, 4, 5, running, start), read(1, 10, 11, queued))
	f("pending and there", porcupine.Ok, born, lost(0, 3, 9, start), read(1, 4, 5, queued), read(1, 10, 11, running))
	f("pending and not there", porcupine.Ok, born, lost(0, 3, 9, start), read(1, 10, 11, queued), read(1, 12, 13, queued))
	f("comes later", porcupine.Illegal, born, lost(0, 3, 9, start), read(1, 10, 11, queued), read(1, 12, 13, running))
	f("goes later", porcupine.Illegal, born, lost(0, 3, 9, start), read(1, 10, 11, running), read(1, 12, 13, queued))

	add := func(n int64) call { return call{method: usage, n: n} }
	sum := func(llm, tokens int64) world {
		return world{state: stateReady, priority: historyPriority, llm: llm, tokens: tokens}
	}
	f("twice", porcupine.Illegal, born, did(0, 3, 4, queued, add(5)), read(0, 5, 6, sum(2, 10)))
	f("pending, twice", porcupine.Illegal, born, lost(0, 3, 4, add(5)), read(0, 5, 6, sum(2, 10)))
	f("one of two pending", porcupine.Ok, born, lost(0, 3, 9, add(5)), lost(1, 3, 9, add(7)), read(0, 10, 11, sum(1, 7)))
	f("half of one", porcupine.Illegal, born, lost(0, 3, 9, add(5)), read(0, 10, 11, sum(1, 0)))

	s, e := withSession(queued, 3), withSession(queued, 3)
	e.terminate()
	session := did(0, 3, 4, queued, call{method: begin, n: 3})
	f("an ended process's session goes on", porcupine.Illegal, born, session, did(0, 5, 6, s, call{method: terminate}), did(0, 7, 8, s, call{method: show}))
	f("and ends", porcupine.Ok, born, session, did(0, 5, 6, s, call{method: terminate}), did(0, 7, 8, e, call{method: show}))
}

func TestUnexplainedNamesTheFirst(t *testing.T) {
	queued := world{state: stateReady, priority: historyPriority}
	ops := []porcupine.Operation{did(0, 1, 2, unborn(), call{method: create, flag: true}), did(1, 3, 4000, queued, call{method: quota}),
		did(2, 3000, 5000, unborn(), call{method: get})}
	_, fault := verdict("h", ops, t.TempDir())
	for _, text := range []string{"3 operations on h", "client 2, 3 to 5 µs: GetProcess: NOT_FOUND", "client 1, 0 to 4 µs: CheckQuota: 0/0"} {
		if !strings.Contains(fault, text) {
			t.Errorf("%q is not in %s", text, fault)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fault = verdict("h", ops, file); !strings.Contains(fault, "could not be written") {
		t.Error(fault)
	}
}

func TestNamed(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := named(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("Invalid transition from READY to NEW", "READY")
	f("Cannot schedule process h: state is BLOCKED, expected NEW", "BLOCKED")
	f("Expected result from agent 'a1', got 'a2'", "a1")
	f("Process h already exists", "")
	f("Invalid transition from ", "")
}

func TestKeep(t *testing.T) {
	g := testGame()
	h := g.hist.open[0]
	f := func(err error, alive bool, kept int, answer string) {
		t.Helper()
		got := g.hist.keep(h, 1, call{method: schedule}, 5, reply{state: stateReady}, err, 6)
		if got != alive || len(h.ops) != kept {
			t.Fatalf("%v: alive %v, %d kept", err, got, len(h.ops))
		}
		if o := h.ops[kept-1]; o.Output.(reply).String() != answer || o.Call != 5 || o.Return != 6 {
			t.Errorf("%v: %v", err, o)
		}
	}
	f(nil, true, 1, "READY 0/0")
	f(&ipcclient.Error{Code: wire.FailedPrecondition, Message: "state is BLOCKED, expected NEW"}, true, 2, "FAILED_PRECONDITION")
	f(&ipcclient.Error{Code: wire.ResourceExhausted, Retryable: true}, true, 2, "FAILED_PRECONDITION") // never happened
	f(&ipcclient.Error{Code: wire.Unavailable}, false, 2, "FAILED_PRECONDITION")
	f(&ipcclient.ConnError{Err: errors.New("reset")}, false, 3, "no reply")
	want(t, g)
	g.hist.stamp()
	if last := h.ops[2]; last.Return < 7 || g.count[historyPending].Load() != 1 || h.ops[1].Return != 6 {
		t.Errorf("%v", h.ops)
	}
	h.began = len(h.ops)
	if g.hist.stamp(); g.count[historyPending].Load() != 1 {
		t.Error("what an earlier round left is stamped again")
	}
}

func TestTook(t *testing.T) {
	g := testGame()
	f := func(start bool, pid string, err error, kept ...int) {
		t.Helper()
		g.hist.took(firstTaker, start, 5, ipcclient.Process{PID: pid, State: stateRunning}, err)
		for i, n := range kept {
			if h := g.hist.open[i]; len(h.ops) != n {
				t.Errorf("%s, %v: %d operations on %s", pid, err, len(h.ops), h.pid)
			}
		}
	}
	f(true, "somebody's", nil, 0, 0, 0)
	f(true, g.hist.open[1].pid, nil, 0, 1, 0)
	f(false, g.hist.open[1].pid, nil, 0, 2, 0)
	f(false, "", &ipcclient.ConnError{Err: errors.New("reset")}, 0, 2, 0)
	f(true, "", &ipcclient.ConnError{Err: errors.New("reset")}, 1, 3, 1) // it may have been any
	f(true, "", &ipcclient.Error{Code: wire.NotFound}, 1, 3, 1)
}

func TestHistoryIsBounded(t *testing.T) {
	h := &history{}
	for n := range historyCalls {
		if h.full() {
			t.Fatalf("full with %d", n)
		}
		h.record(0, call{}, 0, reply{}, 0)
	}
	if !h.full() {
		t.Error("not full at the bound")
	}
	if h.began = 1; h.full() {
		t.Error("full because of an earlier round")
	}
}

func TestTally(t *testing.T) {
	var a, b tally
	a.add(sent, 3)
	a.most(longestVerdict, 7)
	a.most(longestVerdict, 5)
	b.add(sent, 4)
	b.most(longestVerdict, 6)
	b.add(endedBy+count(stoppedIdle), 2)
	b.merge(&a)
	var out bytes.Buffer
	b.table().Print(&out)
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, text := range []string{" requests 7 ", " longest search for an order, µs 7 ", " rounds ended by a stop at rest 2", " histories that no order explains 0 "} {
		if !strings.Contains(got+" ", text) {
			t.Errorf("%q is not in %s", text, got)
		}
	}
}

// TestWriteEndsWithTheConnection: also where every history is full, so that no call reports the
// kill.
func TestWriteEndsWithTheConnection(t *testing.T) {
	near, far := net.Pipe()
	c := ipcclient.New(near)
	far.Close()
	<-c.Done()
	g := testGame()
	for _, h := range g.hist.open {
		for range historyCalls {
			h.record(0, call{}, 0, reply{}, 0)
		}
	}
	var stop atomic.Bool
	g.hist.write(t.Context(), c, 0, rand.New(rand.NewPCG(1, 1)), time.Millisecond, &stop)
	want(t, g)
}
