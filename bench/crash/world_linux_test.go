package crash

import "fmt"

// world is what the server holds of one actor's things, as far as replies show it. Worlds are
// compared with ==.
type world struct {
	pid         string
	state       string // "" while there is no process
	priority    string
	llm, tokens int64 // the process's usage
	session     life
	quota       int64 // the default limit of model calls; only the first actor's
}

// life is one session.
type life struct {
	generation             int // counts the sessions of a process; 0: none
	iteration, llm, tokens int64
	hops                   int64
	outputs                [2]int64 // the number of the last report of each agent
	stage                  string   // "" once terminated
	waiting, terminated    bool
	reason                 string
}

// agents run the two stages of the ring.
var agents, stages = [2]string{"a1", "a2"}, [2]string{"s1", "s2"}

const (
	stateNew, stateReady, stateRunning          = "NEW", "READY", "RUNNING"
	stateWaiting, stateBlocked, stateTerminated = "WAITING", "BLOCKED", "TERMINATED"
	stateZombie                                 = "ZOMBIE"
)

// turn is the index of the stage a session is at.
func (l *life) turn() int {
	if l.stage == stages[1] {
		return 1
	}
	return 0
}

// begin makes the next session.
func (l *life) begin(waiting bool) {
	*l = life{generation: l.generation + 1, stage: stages[0], waiting: waiting}
}

// result is how an agent ended, and what its report leads to.
type result int

const (
	goesOn    result = iota // to the other stage
	completes               // the session
	fails                   // and the session with it
)

// report takes report number n.
func (l *life) report(n, tokens int64, r result) {
	at := l.turn()
	l.iteration++
	l.llm++
	l.tokens += tokens
	switch l.outputs[at] = n; r {
	case completes:
		l.end("COMPLETED")
	case fails:
		l.outputs[at] = 0 // what a failed agent leaves has no number
		l.end("TOOL_FAILED_FATALLY")
	default:
		l.hops++
		l.stage = stages[1-at]
	}
}

func (l *life) end(reason string) {
	l.terminated, l.waiting, l.stage, l.reason = true, false, "", reason
}

func (l *life) running() bool { return l.generation > 0 && !l.terminated && !l.waiting }

// terminate ends the process, and its session with it.
func (w *world) terminate() {
	w.state = stateTerminated
	if w.session.generation > 0 && !w.session.terminated {
		w.session.end("USER_CANCELLED")
	}
}

// fits compares what was found with what should be there. drawn reports that they differ in that
// another program started the process.
func (w world) fits(found world) (ok, drawn bool) {
	if w.state == stateReady && found.state == stateRunning {
		w.state, drawn = stateRunning, true
	}
	return w == found, drawn
}

// reached reports whether a session got as far as another reading of it.
func (l *life) reached(generation int, iteration int64) bool {
	return l.generation > generation || l.generation == generation && l.iteration >= iteration
}

func (w world) String() string {
	return fmt.Sprintf("process %s %q %s, usage %d/%d, session %+v, quota %d", w.pid, w.state, w.priority, w.llm, w.tokens, w.session, w.quota)
}
