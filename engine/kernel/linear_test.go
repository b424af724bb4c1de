package kernel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The history of a few concurrent clients must be that of some order of its operations, each
// between its call and return.

type linearInput struct {
	op  string
	pid string
	to  State
}

type linearOutput struct {
	res   Result
	pid   string
	state State
	calls int64
}

// linearState is a pid's state, calls and place in the queue.
type linearProc struct {
	state State
	calls int64
	ready int
}

type linearState struct {
	procs map[string]linearProc
	ready int
}

func linearStep(state, input, output any) (bool, any) {
	s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
	p, known := s.procs[in.pid]
	put := func(pid string, p linearProc) linearState {
		n := linearState{maps.Clone(s.procs), s.ready}
		if p.state == Ready && s.procs[pid].state != Ready {
			n.ready++
			p.ready = n.ready
		}
		n.procs[pid] = p
		return n
	}
	switch {
	case in.op == "next":
		best := ""
		for pid, p := range s.procs {
			if p.state == Ready && (best == "" || p.ready < s.procs[best].ready) {
				best = pid
			}
		}
		if best == "" {
			return out.res == NoRunnable, s
		}
		return out.res == OK && out.pid == best, put(best, linearProc{state: Running, calls: s.procs[best].calls})
	case in.op == "create" && known:
		return out.res == AlreadyExists, s
	case in.op == "create":
		return out.res == OK, put(in.pid, linearProc{state: Ready})
	case !known:
		return out.res == NotFound, s
	case in.op == "get":
		return out.res == OK && out.state == p.state && out.calls == p.calls, s
	case in.op == "usage":
		p.calls++
		return out.res == OK && out.calls == p.calls, put(in.pid, p)
	case !p.state.CanBecome(in.to):
		return out.res == BadTransition && out.state == p.state, s
	}
	p.state = in.to
	return out.res == OK && out.state == in.to, put(in.pid, p)
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{procs: map[string]linearProc{}} },
	Step: linearStep,
	Equal: func(a, b any) bool {
		x, y := a.(linearState), b.(linearState)
		return x.ready == y.ready && maps.Equal(x.procs, y.procs)
	},
}

func linearDo(k *Kernel, in linearInput) (out linearOutput) {
	var pcb PCB
	now := at(0)
	switch in.op {
	case "create":
		out.res, _ = k.Create(now, args(in.pid, Normal), &pcb)
	case "next":
		if out.res = k.Next(now, true, &pcb); out.res == OK {
			out.pid = string(pcb.PID)
		}
	case "get":
		out.res = k.Get([]byte(in.pid), nil, &pcb)
		out.state, out.calls = pcb.State, pcb.Usage[LLMCalls]
	case "usage":
		var total Usage
		out.res = k.RecordUsage(now, []byte(in.pid), nil, &Usage{LLMCalls: 1}, &total)
		out.calls = total[LLMCalls]
	case "transition":
		out.res = k.Transition(now, []byte(in.pid), nil, in.to, nil, &pcb)
		out.state = pcb.State
	}
	return out
}

func TestLinearizable(t *testing.T) {
	ops := []string{"create", "next", "get", "get", "usage", "transition", "transition", "transition"}
	for round := range 30 {
		k := New(Config{Defaults: unlimited()})
		var mu sync.Mutex
		var history []porcupine.Operation
		began := time.Now()
		together(4, func(client int) {
			rnd := rand.New(rand.NewPCG(uint64(round), uint64(client)))
			for range 12 {
				in := linearInput{op: ops[rnd.IntN(len(ops))], pid: fmt.Sprint("p", rnd.IntN(3)), to: State(rnd.IntN(int(Terminated)))}
				call := time.Since(began).Nanoseconds()
				out := linearDo(k, in)
				back := time.Since(began).Nanoseconds()
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				mu.Unlock()
			}
		})
		if !porcupine.CheckOperations(linearModel, history) {
			t.Fatalf("no order explains round %d: %+v", round, history)
		}
	}
}
