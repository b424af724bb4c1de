package crash

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// call is one request; which process it is about is known beside it.
type call struct {
	method   method
	to       string // the state of a transition
	agent    int    // who reports
	result   result // of the report
	n        int64  // tokens of a usage or a report, number of a session or of an output, a limit
	llm      int64  // model calls of a usage; 0 is one
	flag     bool   // of CreateProcess: schedule; of InitializeSession: force
	waits    bool   // of InitializeSession: it waits for the envelope
	priority string // of CreateProcess; empty is historyPriority
	envelope string // the one that is stored
	pad      string // of a report
}

type method int

const (
	none method = iota
	create
	limit // SetQuotaDefaults
	update
	get
	schedule
	move
	terminate
	usage
	quota
	next // GetNextRunnable that starts the process
	hand // GetNextRunnable that does not
	begin
	execute
	report
	instruct
	show
	methodCount
)

var methodNames = [methodCount]string{create: "CreateProcess", limit: "SetQuotaDefaults", update: "UpdateEnvelope", execute: "ExecutePipeline", get: "GetProcess", schedule: "ScheduleProcess", move: "TransitionState",
	terminate: "TerminateProcess", usage: "RecordUsage", quota: "CheckQuota", next: "GetNextRunnable start", hand: "GetNextRunnable",
	begin: "InitializeSession", report: "ReportAgentResult", instruct: "GetNextInstruction", show: "GetSessionState"}

// reply is what an answer reports. Replies are compared with ==.
type reply struct {
	code        wire.Code
	said        string // the state or the agent that a refusal names
	state       string
	llm, tokens int64
	kind, agent string // of an instruction
	session     life
	lost        bool // there was no answer: nothing else is set
}

// reachable is the table of kernel-ipc §5.1.
var reachable = map[string][]string{
	stateNew:        {stateReady, stateTerminated},
	stateReady:      {stateRunning, stateTerminated},
	stateRunning:    {stateReady, stateWaiting, stateBlocked, stateTerminated},
	stateWaiting:    {stateReady, stateTerminated},
	stateBlocked:    {stateReady, stateTerminated},
	stateTerminated: {stateZombie},
}

// apply is what the server makes of w for the call, and answers, if it is alone.
func (in call) apply(w world) (world, reply) {
	switch {
	case in.method >= begin:
		return in.onSession(w)
	case in.method == limit:
		w.quota = in.n
		return w, reply{}
	case in.method == update:
		w.session.waiting = false
		return w, reply{}
	case in.method == create && w.state != "":
		return w, reply{code: wire.FailedPrecondition}
	case in.method == create:
		w.priority, w.state = cmp.Or(in.priority, historyPriority), stateNew
		answer := shown(&w) // as it was created, also if it is queued by then
		if in.flag {
			w.state = stateReady
		}
		return w, answer
	case w.state == "":
		return w, reply{code: wire.NotFound}
	}
	return in.onProcess(w)
}

// repeatable has the methods that may be sent a second time without knowing what came of the first,
// with the refusal by which a server then reports that it has it; wire.OK if it reports nothing.
var repeatable = map[method]wire.Code{create: wire.FailedPrecondition, terminate: wire.OK, limit: wire.OK, begin: wire.InvalidArgument,
	execute: wire.InvalidArgument, report: wire.FailedPrecondition, update: wire.OK}

// queues reports whether the call puts the process into the ready queue.
func (in call) queues() bool {
	return in.method == create && in.flag || in.method == schedule || in.method == move && in.to == stateReady
}

// agrees is a refusal by which the server reports that the effect is there already; wire.OK is
// none. A process may have been started by another client, who took it off the queue.
func (in call) agrees() wire.Code {
	if in.method == move && in.to == stateRunning {
		return wire.FailedPrecondition
	}
	return wire.OK
}

func (in call) onProcess(w world) (world, reply) {
	refusal := reply{code: wire.FailedPrecondition, said: w.state}
	switch in.method {
	case schedule:
		if w.state != stateNew && w.state != stateReady {
			return w, refusal
		}
		w.state = stateReady
	case move:
		switch {
		case !slices.Contains(reachable[w.state], in.to):
			return w, refusal
		case in.to == stateTerminated:
			w.terminate()
		default:
			w.state = in.to
		}
	case terminate:
		zombie := w.state == stateZombie
		if w.terminate(); zombie {
			w.state = stateZombie
		}
	case usage:
		w.llm, w.tokens = w.llm+cmp.Or(in.llm, 1), w.tokens+in.n
		return w, reply{llm: w.llm, tokens: w.tokens}
	case quota:
		return w, reply{llm: w.llm, tokens: w.tokens}
	case next, hand:
		if w.state != stateReady {
			return w, reply{code: wire.NotFound} // another process is given out, or none
		}
		if in.method == next {
			w.state = stateRunning
		}
	}
	return w, shown(&w)
}

// shown is the answer that shows a process.
func shown(w *world) reply { return reply{state: w.state, llm: w.llm, tokens: w.tokens} }

func (in call) onSession(w world) (world, reply) {
	l := &w.session
	switch {
	case in.method <= execute && l.generation > 0 && !in.flag:
		return w, reply{code: wire.InvalidArgument}
	case in.method <= execute:
		l.begin(in.waits)
		l.generation = int(in.n)
		return w, reply{session: *l}
	case l.generation == 0:
		return w, reply{code: wire.NotFound}
	case in.method == show:
		return w, reply{session: *l}
	case in.method == report && !l.terminated:
		if in.agent != l.turn() {
			return w, reply{code: wire.FailedPrecondition, said: agents[l.turn()]}
		}
		l.report(in.n, in.n, in.result)
	}
	return w, instructed(*l)
}

// instructed is the instruction of a session; it does not count edges.
func instructed(l life) reply {
	r := reply{kind: ipcclient.RunAgent, agent: agents[l.turn()], session: l}
	if l.terminated {
		r.kind, r.agent = ipcclient.Terminate, ""
	}
	r.session.hops = 0
	return r
}

// named is the state or agent that the text of a refusal names.
func named(text string) string {
	for _, around := range [...][2]string{{"Invalid transition from ", " to "}, {": state is ", ", expected"}, {"Expected result from agent '", "', got"}} {
		if _, rest, ok := strings.Cut(text, around[0]); ok {
			if word, _, ok := strings.Cut(rest, around[1]); ok {
				return word
			}
		}
	}
	return ""
}

func (in call) String() string {
	switch in.method {
	case create, begin:
		return fmt.Sprintf("%s %d %v", methodNames[in.method], in.n, in.flag)
	case move:
		return methodNames[move] + " " + in.to
	case usage:
		return fmt.Sprintf("%s +%d", methodNames[usage], in.n)
	case report:
		return fmt.Sprintf("%s %d of %s, result %d", methodNames[report], in.n, agents[in.agent], in.result)
	}
	return methodNames[in.method]
}

func (r reply) String() string {
	switch {
	case r.lost:
		return "no reply"
	case r.code != wire.OK:
		return strings.TrimSpace(r.code.String() + " " + r.said)
	case r.session.generation > 0:
		return strings.TrimSpace(fmt.Sprintf("%s %s %+v", r.kind, r.agent, r.session))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d/%d", r.state, r.llm, r.tokens))
}
