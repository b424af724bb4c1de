package orchtest

import (
	"fmt"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// runner runs programs against the engine and the model side by side. One runner takes many
// programs: every one has a process of its own, and the clock moves on between them, so that the
// store can let go of what earlier ones left.
type runner struct {
	d *driver
	m *model
	n int

	most  int // the largest reply allowed; 0: not checked
	large int // how many calls were refused for it

	atEnd func() // called before what a program made is removed

	pids    [2]string // the processes of the program that is running; both hold envelopes with the same id
	pid, id string    // the process that is spoken of
	seen    map[string]int
}

func newRunner() *runner { return &runner{d: drive(roomy()), m: newModel(), seen: map[string]int{}} }

// limitedTo is a runner whose engine refuses what would make a reply larger than most; the model
// follows it in that.
func limitedTo(most int) *runner {
	cfg := roomy()
	cfg.MaxReply = most
	return &runner{d: drive(cfg), m: newModel(), most: most, seen: map[string]int{}}
}

// run returns how the engine first differs from the model, and at which step.
func (r *runner) run(p program) (step int, diff string) {
	defer func() {
		if v := recover(); v != nil {
			diff = fmt.Sprint("panic: ", v)
		}
		if r.atEnd != nil {
			r.atEnd()
		}
		for _, pid := range r.pids {
			r.d.removed(pid)
			delete(r.m.sessions, pid)
		}
	}()
	r.n++
	r.pids, r.id = [2]string{fmt.Sprint("p", r.n), fmt.Sprint("q", r.n)}, fmt.Sprint("e", r.n)
	r.pass(time.Second)
	clear(r.m.stored)
	if p.stored {
		if diff = r.store(); diff != "" {
			return -1, diff
		}
	}
	var o op
	for step, o = range p.ops {
		r.pass(o.wait)
		if r.pid = r.pids[0]; o.second {
			r.pid = r.pids[1]
		}
		if diff = r.step(p, o); diff != "" {
			return step, diff
		}
	}
	for _, r.pid = range r.pids {
		if diff = r.finish(); diff != "" {
			return len(p.ops), diff
		}
	}
	return len(p.ops), ""
}

func (r *runner) pass(d time.Duration) {
	r.m.pass(d)
	r.d.now = r.m.now
}

// store creates the program's envelope in the store.
func (r *runner) store() string {
	got := r.d.create(orchestration.CreateArgs{})
	if got.code != wire.OK {
		return "create: " + got.msg
	}
	v, _ := unpack(got.body)
	r.id = v.(obj)["identity"].(obj)["envelope_id"].(string)
	r.m.stored[r.id] = true
	return ""
}

// badInits are initializations that every engine refuses, with the text.
var badInits = []struct {
	config obj
	text   string
}{
	{obj{"agents": arr{obj{"name": "a"}}}, "Pipeline name is required"},
	{obj{"name": "n", "agents": arr{}}, "Pipeline must have at least one stage"},
	{obj{"name": "n", "agents": arr{obj{"name": "a"}, obj{"name": "a"}}}, "Duplicate stage name: a"},
	{obj{"name": "n", "agents": arr{obj{"name": "a", "default_next": "b"}}}, "Stage 'a' has default_next 'b' which does not exist in pipeline"},
}

func (r *runner) step(p program, o op) string {
	switch o.kind {
	case opReport:
		return r.report(r.pid, o)
	case opNext:
		return r.compare(r.d.next(r.pid), r.m.next(r.pid))
	case opState:
		return r.same()
	case opInit:
		env := r.envelope(o.env)
		got := r.d.initialize(r.pid, text(p.configs[o.config], o.asText), text(env, o.asText), o.force)
		if r.tooLarge(got) {
			return r.same()
		}
		return r.orSame(got, r.m.initialize(r.pid, p.configs[o.config], env, o.force))
	case opBadInit:
		bad := badInits[o.bad]
		got := r.d.initialize(r.pid, bad.config, obj{"envelope_id": "x"}, o.force)
		return r.orSame(got, no(wire.InvalidArgument, "%s", bad.text))
	case opUpdate:
		env := r.envelope(o.env)
		got := r.d.update(text(env, o.asText))
		if r.tooLarge(got) {
			return r.same()
		}
		if diff := r.compare(got, r.m.update(env)); diff != "" {
			return diff
		}
		return r.both()
	case opEnded:
		r.m.ended(r.pid)
		r.d.ended(r.pid)
		return r.same()
	case opRemoved:
		delete(r.m.sessions, r.pid)
		r.d.removed(r.pid)
		return r.same()
	}
	for _, got := range []reply{r.d.next("nobody"), r.d.state("nobody"), r.d.report("nobody", o.report)} {
		if diff := compare(got, unknown("nobody")); diff != "" {
			return diff
		}
	}
	r.d.ended("nobody")
	r.d.removed("nobody")
	return ""
}

func (r *runner) envelope(m obj) obj {
	m = clone(m).(obj)
	envelope{isNested(m), m}.set("envelope_id", r.id)
	return m
}

func text(m obj, asText bool) any {
	if asText {
		return jsonText(m)
	}
	return m
}

func (r *runner) report(pid string, o op) string {
	rep := o.report
	rep.agent = r.agent(o.who)
	got := r.d.report(pid, rep)
	if r.tooLarge(got) {
		return r.same()
	}
	return r.orSame(got, r.m.report(pid, rep))
}

func (r *runner) agent(who int) string {
	s := r.m.sessions[r.pid]
	if s == nil || who == nobody {
		return "somebody"
	}
	stage := s.plan.find(s.env.text("current_stage"))
	switch who {
	case rightAgent:
		return stage.agent
	case stageName:
		return stage.name
	}
	return s.plan.stages[0].agent
}

// same compares what can be asked without changing anything.
func (r *runner) same() string {
	if got, want := r.d.stage(r.pid), r.m.stage(r.pid); got != want {
		return fmt.Sprintf("current stage %q, want %q", got, want)
	}
	if got, want := r.d.e.Active(), int64(len(r.m.sessions)); got != want {
		return fmt.Sprintf("%d active sessions, want %d", got, want)
	}
	if diff := r.compare(r.d.state(r.pid), r.m.state(r.pid)); diff != "" {
		return "afterwards GetSessionState" + diff
	}
	return ""
}

// both compares the program's two processes.
func (r *runner) both() (diff string) {
	for _, r.pid = range r.pids {
		if diff = r.same(); diff != "" {
			break
		}
	}
	return diff
}

// orSame compares a reply; after a refusal, also that nothing changed.
func (r *runner) orSame(got reply, want answer) string {
	if diff := r.compare(got, want); diff != "" || want.code == wire.OK {
		return diff
	}
	return r.same()
}

// tooLarge states whether the size rule refused the call, which a runner without a limit takes for
// a fault.
func (r *runner) tooLarge(got reply) bool {
	if r.most == 0 || got.code != wire.ResourceExhausted || got.msg != tooLarge {
		return false
	}
	r.large++
	return true
}

func (r *runner) compare(got reply, want answer) string {
	r.seen[want.outcome()]++
	if r.most > 0 && len(got.body) > r.most {
		return fmt.Sprintf(": %d bytes, at most %d", len(got.body), r.most)
	}
	return compare(got, want)
}

func compare(got reply, want answer) string {
	if got.code != want.code || got.msg != want.msg {
		return fmt.Sprintf(": got %s %q, want %s %q", got.code, got.msg, want.code, want.msg)
	}
	if want.code != wire.OK {
		return ""
	}
	rest, diff := match(got.body, want.want)
	if diff == "" && len(rest) > 0 {
		diff = fmt.Sprintf(": %d bytes behind the reply", len(rest))
	}
	return diff
}
