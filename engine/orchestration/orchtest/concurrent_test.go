package orchtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/codec/wire"
)

// together runs f n times at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}

// callers gives every goroutine a driver of its own over the engine of k.
func (k *talk) callers(n int) []*driver {
	ds := make([]*driver, n)
	for i := range ds {
		ds[i] = over(k.e)
	}
	return ds
}

// TestReportsAreTakenOnce: many workers report on the same sessions at once; every step of a
// session is taken exactly once.
func TestReportsAreTakenOnce(t *testing.T) {
	const sessions, workers, steps = 8, 8, 40
	k := newTalk(t)
	for s := range sessions {
		k.start(fmt.Sprint("p", s), cycle(obj{"max_iterations": steps}), nested(fmt.Sprint("e", s)))
	}
	ds := k.callers(workers)
	taken := make([][sessions]int, workers)
	together(workers, func(i int) {
		d, rnd := ds[i], rand.New(rand.NewPCG(uint64(i), 1))
		for range 4 * steps {
			s := rnd.IntN(sessions)
			got := d.report(fmt.Sprint("p", s), giving(fmt.Sprint("a", 1+rnd.IntN(2)), obj{"by": i}))
			if got.code == wire.FailedPrecondition {
				continue
			}
			if got.code != wire.OK {
				t.Errorf("%s %s", got.code, got.msg)
				return
			}
			v, _ := unpack(got.body)
			if v.(obj)["termination_message"] != endedBefore {
				taken[i][s]++
			}
		}
	})
	for s := range sessions {
		sum := 0
		for i := range workers {
			sum += taken[i][s]
		}
		body := k.body(k.state(fmt.Sprint("p", s)))
		iteration, _ := at(body, "envelope.pipeline.iteration")
		if iteration != int64(sum) || sum > steps {
			t.Errorf("session %d: %d reports taken, iteration %v", s, sum, iteration)
		}
		hops := int64(0)
		for _, n := range body["edge_traversals"].(obj) {
			hops += n.(int64)
		}
		if want, _ := at(body, "envelope.bounds.agent_hop_count"); want != hops {
			t.Errorf("session %d: %d edges taken, %v hops", s, hops, want)
		}
	}
}

// TestEverythingAtOnce: all calls on few ids, so that they meet. What each may answer is fixed; the
// race detector does the rest.
func TestEverythingAtOnce(t *testing.T) {
	const workers, calls = 8, 300
	cfg := roomy()
	cfg.MaxSessions, cfg.MaxEnvelopes = 6, 4
	k := &talk{drive(cfg), t}
	ids := []string{k.storedID(), k.storedID()}
	ds := k.callers(workers)
	together(workers, func(i int) {
		d, rnd := ds[i], rand.New(rand.NewPCG(uint64(i), 2))
		for n := range calls {
			d.now = after(clock(), time.Duration(n)*time.Minute)
			got := anyCall(d, rnd, fmt.Sprint("p", rnd.IntN(8)), ids[rnd.IntN(2)])
			if got.code == wire.Internal || got.code == wire.Timeout {
				t.Errorf("%s %s", got.code, got.msg)
			}
			if got.code == wire.OK && got.body != nil {
				if _, rest := unpack(got.body); len(rest) > 0 {
					t.Errorf("%d bytes behind a reply", len(rest))
				}
			}
		}
	})
	if n := k.e.Active(); n < 0 || n > 6 {
		t.Errorf("%d sessions, at most 6", n)
	}
	k.now = after(clock(), 1000*time.Hour)
	k.e.Sweep(k.now)
	if n := k.e.Active(); n != 0 {
		t.Errorf("%d sessions outlive everything", n)
	}
}

func anyCall(d *driver, rnd *rand.Rand, pid, id string) reply {
	env := flat(id, obj{"interrupt_pending": rnd.IntN(2) == 0})
	switch rnd.IntN(12) {
	case 0, 1:
		return d.initialize(pid, cycle(nil), env, rnd.IntN(2) == 0)
	case 2, 3, 4:
		return d.report(pid, by(fmt.Sprint("a", 1+rnd.IntN(2))))
	case 5, 6:
		return d.next(pid)
	case 7:
		return d.state(pid)
	case 8:
		return d.update(env)
	case 9:
		return d.clone(env)
	case 10:
		d.ended(pid)
	default:
		d.stage(pid)
		if rnd.IntN(4) == 0 {
			d.removed(pid)
			d.e.Sweep(d.now)
		}
	}
	return reply{}
}

// A history of one session: a ring of three stages, in which an accepted report moves on by one.
type linearInput struct{ op, agent string }

type linearOutput struct {
	code      wire.Code
	kind      string
	agent     string // the agent to run, or the one a refusal expects
	iteration int64
}

type linearState struct {
	there, ended bool
	n            int64
}

const ring = 3

func agentAt(n int64) string { return fmt.Sprint("a", n%ring) }

func ringConfig() obj {
	agents := arr{}
	for i := range ring {
		agents = append(agents, obj{"name": fmt.Sprint("s", i), "agent": fmt.Sprint("a", i), "default_next": fmt.Sprint("s", (i+1)%ring)})
	}
	return obj{"name": "ring", "agents": agents, "max_iterations": 1000, "max_llm_calls": 1000, "max_agent_hops": 1000}
}

func linearStep(state, input, output any) (bool, any) {
	s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
	switch in.op {
	case "init":
		if s.there {
			return out.code == wire.InvalidArgument, s
		}
		return out.code == wire.OK, linearState{there: true}
	case "force":
		return out.code == wire.OK, linearState{there: true}
	case "ended":
		s.ended = s.there
		return true, s
	case "removed":
		return true, linearState{}
	}
	switch {
	case !s.there:
		return out.code == wire.NotFound, s
	case s.ended:
		kind := "TERMINATE"
		if in.op == "state" {
			kind = ""
		}
		return out.code == wire.OK && out.kind == kind && out.iteration == s.n, s
	case in.op == "state":
		return out.code == wire.OK && out.iteration == s.n, s
	case in.op == "report" && in.agent != agentAt(s.n):
		return out.code == wire.FailedPrecondition && out.agent == agentAt(s.n), s
	case in.op == "report":
		s.n++
	}
	return out.code == wire.OK && out.kind == "RUN_AGENT" && out.agent == agentAt(s.n) && out.iteration == s.n, s
}

func linearDo(d *driver, pid string, in linearInput) (out linearOutput) {
	var got reply
	switch in.op {
	case "init", "force":
		got = d.initialize(pid, ringConfig(), flat("e"), in.op == "force")
	case "ended":
		d.ended(pid)
	case "removed":
		d.removed(pid)
	case "report":
		got = d.report(pid, by(in.agent))
	case "next":
		got = d.next(pid)
	case "state":
		got = d.state(pid)
	}
	out.code = got.code
	if got.code == wire.FailedPrecondition {
		fmt.Sscanf(got.msg, "Expected result from agent '%2s'", &out.agent)
	}
	if got.body != nil {
		v, _ := unpack(got.body)
		out.kind, _ = v.(obj)["kind"].(string)
		out.agent, _ = v.(obj)["agent_name"].(string)
		iteration, _ := at(v, "envelope.iteration")
		out.iteration, _ = iteration.(int64)
	}
	return out
}

// TestLinearizable: what the callers of one process see is explained by some order of their calls
// (envelope §2.1).
func TestLinearizable(t *testing.T) {
	model := porcupine.Model{Init: func() any { return linearState{} }, Step: linearStep}
	ops := []string{"report", "report", "report", "report", "report", "report", "next", "next", "state", "state", "init", "force", "ended", "removed"}
	for round := range 60 {
		k := newTalk(t)
		pids := []string{"p", "q"}
		ds := k.callers(4)
		history := map[string][]porcupine.Operation{}
		var mu sync.Mutex
		began := time.Now()
		together(4, func(client int) {
			rnd := rand.New(rand.NewPCG(uint64(round), uint64(client)))
			for n := range 16 {
				pid, in := pids[rnd.IntN(2)], linearInput{op: ops[rnd.IntN(len(ops))], agent: agentAt(rnd.Int64N(ring))}
				if n < 2 {
					pid, in.op = pids[n], "init"
				}
				call := time.Since(began).Nanoseconds()
				out := linearDo(ds[client], pid, in)
				back := time.Since(began).Nanoseconds()
				mu.Lock()
				history[pid] = append(history[pid], porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				mu.Unlock()
			}
		})
		for pid, h := range history {
			if !porcupine.CheckOperations(model, h) {
				t.Fatalf("no order explains round %d of %s: %+v", round, pid, h)
			}
		}
	}
}
