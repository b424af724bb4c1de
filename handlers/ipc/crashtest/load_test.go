package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/journal"
)

// bound is what is known of the index of a change: above after, which the journal had reached when
// the change was asked for, and at most upTo, where the journal had come to when its reply had
// left.
type bound struct{ after, upTo journal.Index }

// within counts which of the changes in order must be there, and which can, when the journal ends
// at last.
func within(bounds []bound, last journal.Index) (must, can int) {
	for _, b := range bounds {
		if b.upTo <= last {
			must++
		}
		if b.after < last {
			can++
		}
	}
	return must, can
}

// question is a request that shows what is kept.
type question struct{ service, method, body string }

// thing is what only one actor changes, and shows: after each change it asks all questions about it
// again.
type thing struct {
	questions []question
	bounds    []bound
	views     []string // before the first change, then after each
	looked    bool
}

// sighting is what a reply reported of a number that only rises.
type sighting struct {
	value int64
	safe  journal.Index
}

// history is what the clients of one server got as replies.
type history struct {
	things    []*thing
	envelopes map[string]bound // by identifier
	queued    map[string]bound // processes that were put into the ready queue
	taken     map[string]bound // those that came out of it
	ended     map[string]bound // and those of them that were terminated
	rates     map[string][]bound
	hotMade   journal.Index
	hot       []bound // increments of the counter that all share
	seen      []sighting
}

func newHistory() *history {
	return &history{envelopes: map[string]bound{}, queued: map[string]bound{}, taken: map[string]bound{}, ended: map[string]bound{},
		rates: map[string][]bound{}}
}

// add takes over what another has.
func (h *history) add(o *history) error {
	h.things, h.hot, h.seen = append(h.things, o.things...), append(h.hot, o.hot...), append(h.seen, o.seen...)
	for pid, b := range o.taken {
		if _, twice := h.taken[pid]; twice {
			return fmt.Errorf("%s was handed out twice", pid)
		}
		h.taken[pid] = b
	}
	for to, from := range map[*map[string]bound]map[string]bound{&h.envelopes: o.envelopes, &h.queued: o.queued, &h.ended: o.ended} {
		for k, b := range from {
			(*to)[k] = b
		}
	}
	for user, bounds := range o.rates {
		h.rates[user] = append(h.rates[user], bounds...)
	}
	return nil
}

const (
	hotPID   = "hot"
	hotBody  = `{"pid":"hot","tool_calls":1}`
	pipeline = `{"name":"ring","max_iterations":1000000,"max_llm_calls":1000000,"max_agent_hops":1000000,"agents":[` +
		`{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2","default_next":"s1"}]}`
)

// actor is a client with one connection, on which it has several requests in flight.
type actor struct {
	*history
	name  string
	p     *peer
	rng   *rand.Rand
	then  []func(reply) // for each reply that is due
	after journal.Index // the end of the journal when the requests at hand were sent

	n       int // names made so far
	pid     string
	process *thing // pid, its quota and its session
	stage   int    // of its session, -1: none
	over    bool   // the process has ended, and its session began after that
	quota   *thing // the defaults, for the one who sets them
	stored  string // the last envelope
	mine    []string
	watches bool // changes nothing: nothing of its own holds up what it is shown
	err     error
}

func newActor(s *server, index int, seed uint64) *actor {
	a := &actor{history: newHistory(), name: fmt.Sprint("c", index), p: s.connect(), rng: rand.New(rand.NewPCG(seed, uint64(index)))}
	a.p.now = nil
	if index == 0 {
		a.quota = &thing{questions: []question{{"kernel", "GetQuotaDefaults", `{}`}}}
	}
	return a
}

// ask sends a request with the others of this round.
func (a *actor) ask(service, method, body string, then func(reply)) {
	a.p.ask(service, method, body)
	a.then = append(a.then, func(r reply) {
		if !r.ok && a.err == nil && then != nil {
			a.err = fmt.Errorf("%s %s: %v", method, body, r.body)
		}
		if then != nil {
			then(r)
		}
	})
}

// bound is that of a change whose reply waits.
func (a *actor) bound(r reply) bound { return bound{a.after, r.safe} }

// change asks for a change of th, and then all questions about it.
func (a *actor) change(th *thing, service, method, body string) {
	if !th.looked {
		th.looked = true
		a.look(th)
	}
	a.ask(service, method, body, func(r reply) { th.bounds = append(th.bounds, a.bound(r)) })
	a.look(th)
}

func (a *actor) look(th *thing) {
	view := ""
	for i, q := range th.questions {
		a.p.ask(q.service, q.method, q.body)
		a.then = append(a.then, func(r reply) {
			if view += r.String() + "\n"; i == len(th.questions)-1 {
				th.views = append(th.views, view)
			}
		})
	}
}

// round sends some requests at once and takes their replies.
func (a *actor) round(ops int) error {
	for range ops {
		a.op()
	}
	a.after = a.p.srv.log.Appended()
	replies, err := a.p.flush()
	for i, r := range replies {
		a.then[i](r)
	}
	a.then = a.then[:0]
	if err == nil {
		err = a.err
	}
	return err
}

func (a *actor) fresh(kind string) string {
	a.n++
	return fmt.Sprintf("%s-%s%d", a.name, kind, a.n)
}

func (a *actor) user() string { return fmt.Sprintf("user-%s-%d", a.name, a.n/8) }

// watch reads the counter that all share.
func (a *actor) watch() {
	if a.rng.IntN(2) == 0 {
		a.ask("kernel", "CheckQuota", `{"pid":"hot"}`, func(r reply) { a.seen = append(a.seen, sighting{r.number("tool_calls"), r.safe}) })
		return
	}
	a.ask("kernel", "GetProcess", `{"pid":"hot"}`, func(r reply) {
		usage, _ := r.body["usage"].(map[string]any)
		r.body = usage
		a.seen = append(a.seen, sighting{r.number("tool_calls"), r.safe})
	})
}

// op asks for one change, or a reading of what others change.
func (a *actor) op() {
	switch n := a.rng.IntN(100); {
	case a.watches:
		a.watch()
	case a.process == nil || n < 4:
		a.newProcess()
	case n < 30:
		a.work()
	case n < 40:
		a.ask("kernel", "RecordUsage", hotBody, func(r reply) { a.hot = append(a.hot, a.bound(r)) })
	case n < 48:
		a.watch()
	case n < 60:
		a.queue()
	case n < 72:
		a.take()
	case n < 78:
		a.rate()
	case n < 92:
		a.envelope()
	case n < 96 && a.quota != nil:
		a.n++
		a.change(a.quota, "kernel", "SetQuotaDefaults", fmt.Sprintf(`{"quota":{"max_llm_calls":%d}}`, 1_000_000+a.n))
	default:
		a.ask("orchestration", "GetNextInstruction", fmt.Sprintf(`{"process_id":%q}`, a.pid), nil)
	}
}

func (a *actor) newProcess() {
	a.pid, a.stage, a.over = a.fresh("p"), -1, false
	key := fmt.Sprintf(`{"pid":%q}`, a.pid)
	a.process = &thing{questions: []question{{"kernel", "GetProcess", key}, {"kernel", "CheckQuota", key},
		{"orchestration", "GetSessionState", fmt.Sprintf(`{"process_id":%q}`, a.pid)}}}
	a.things = append(a.things, a.process)
	a.change(a.process, "kernel", "CreateProcess", fmt.Sprintf(`{"pid":%q,"user_id":%q,"schedule":false}`, a.pid, a.user()))
}

// work changes the process that the actor has for itself, or its session.
func (a *actor) work() {
	n := a.rng.IntN(20)
	switch {
	case n == 0 && !a.over:
		a.change(a.process, "kernel", "TransitionState", fmt.Sprintf(`{"pid":%q,"new_state":"TERMINATED","reason":"over"}`, a.pid))
		a.process = nil
	case n < 2:
		a.change(a.process, "kernel", "TerminateProcess", fmt.Sprintf(`{"pid":%q,"reason":"over"}`, a.pid))
		a.process = nil
	case n < 4: // the session that begins after the end of its process goes on
		a.over, a.stage = true, 0
		a.change(a.process, "kernel", "TerminateProcess", fmt.Sprintf(`{"pid":%q,"reason":"over"}`, a.pid))
		a.change(a.process, "orchestration", "InitializeSession", fmt.Sprintf(
			`{"process_id":%q,"pipeline_config":%s,"envelope":{"envelope_id":%q},"force":true}`, a.pid, pipeline, a.pid))
	case n < 8:
		a.change(a.process, "kernel", "RecordUsage", fmt.Sprintf(`{"pid":%q,"llm_calls":%d,"tokens_in":%d}`, a.pid, 1+a.rng.IntN(3), a.rng.IntN(1000)))
	case a.stage < 0 && n < 14:
		a.stage = 0
		a.change(a.process, "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":%q,"pipeline_config":%s,"envelope":{"envelope_id":%q}}`,
			a.pid, pipeline, a.pid))
	case a.stage < 0:
		a.stage = 0
		a.change(a.process, "engine", "ExecutePipeline", fmt.Sprintf(`{"pipeline_config":%s,"envelope":{"envelope_id":%q}}`, pipeline, a.pid))
	default:
		a.n++
		a.change(a.process, "orchestration", "ReportAgentResult", fmt.Sprintf(
			`{"process_id":%q,"agent_name":"a%d","output":{"n":%d,"pad":%q},"metrics":{"llm_calls":1}}`,
			a.pid, 1+a.stage%2, a.n, strings.Repeat("x", a.rng.IntN(200))))
		a.stage++
	}
}

var priorities = []string{"REALTIME", "HIGH", "NORMAL", "LOW", "IDLE"}

func (a *actor) queue() {
	pid := a.fresh("q")
	queued := func(r reply) { a.queued[pid] = a.bound(r) }
	body := fmt.Sprintf(`{"pid":%q,"user_id":%q,"priority":%q`, pid, a.user(), priorities[a.rng.IntN(len(priorities))])
	if a.rng.IntN(2) == 0 {
		a.ask("kernel", "CreateProcess", body+"}", queued)
		return
	}
	a.ask("kernel", "CreateProcess", body+`,"schedule":false}`, func(reply) {})
	a.ask("kernel", "ScheduleProcess", fmt.Sprintf(`{"pid":%q}`, pid), queued)
}

func (a *actor) take() {
	if len(a.mine) > 0 && a.rng.IntN(2) == 0 {
		pid := a.mine[0]
		a.mine = a.mine[1:]
		a.ask("kernel", "TransitionState", fmt.Sprintf(`{"pid":%q,"new_state":"TERMINATED"}`, pid), func(r reply) { a.ended[pid] = a.bound(r) })
		return
	}
	a.p.ask("kernel", "GetNextRunnable", `{"start":true}`)
	a.then = append(a.then, func(r reply) {
		if pid := r.str("pid"); r.ok {
			if _, twice := a.taken[pid]; twice && a.err == nil {
				a.err = fmt.Errorf("%s was handed out twice", pid)
			}
			a.taken[pid] = a.bound(r)
			a.mine = append(a.mine, pid)
		}
	})
}

func (a *actor) rate() {
	user := fmt.Sprint("rated", a.rng.IntN(8))
	a.p.ask("kernel", "CheckRateLimit", fmt.Sprintf(`{"user_id":%q}`, user))
	a.then = append(a.then, func(r reply) {
		if r.body["allowed"] == true { // the reply did not wait
			a.rates[user] = append(a.rates[user], bound{a.after, r.reported})
		}
	})
}

func (a *actor) envelope() {
	stored := func(r reply) {
		identity, nested := r.body["identity"].(map[string]any)
		if a.stored = r.str("envelope_id"); nested {
			a.stored, _ = identity["envelope_id"].(string)
		}
		if a.stored == "" && a.err == nil {
			a.err = fmt.Errorf("no identifier: %v", r.body)
		}
		a.envelopes[a.stored] = a.bound(r)
	}
	a.n++
	switch n := a.rng.IntN(3); {
	case a.stored == "" || n == 0:
		a.ask("engine", "CreateEnvelope", fmt.Sprintf(`{"raw_input":"%d","user_id":%q}`, a.n, a.name), stored)
	case n == 1:
		a.ask("engine", "UpdateEnvelope", fmt.Sprintf(`{"envelope":{"envelope_id":%q,"raw_input":"%d"}}`, a.stored, a.n), func(reply) {})
	default:
		a.ask("engine", "CloneEnvelope", fmt.Sprintf(`{"envelope":{"envelope_id":%q,"raw_input":"%d"}}`, a.stored, a.n), stored)
	}
}

// watchers is how many of a crowd only read.
const watchers = 2

// crowd has several actors work on a server at once, and returns what they were given.
func crowd(t testing.TB, s *server, c *clock, actors, rounds int, seed uint64) *history {
	t.Helper()
	h := newHistory()
	first := s.connect()
	first.now = c.now
	h.hotMade = first.must(t, "kernel", "CreateProcess", `{"pid":"hot","schedule":false}`).safe
	done := make(chan *actor)
	for i := range actors {
		a := newActor(s, i, seed)
		a.p.now = c.now
		go func() {
			a.watches = i >= actors-watchers
			for n := 0; n < rounds && a.err == nil; n++ {
				a.err = a.round(1 + a.rng.IntN(8))
				if i < 2 && n == rounds/4*(i+1) && a.err == nil {
					a.err = s.svc.Runtime().Store.Snapshot()
				}
			}
			done <- a
		}()
	}
	for range actors {
		a := <-done
		if a.err != nil {
			t.Errorf("%s: %v", a.name, a.err)
		}
		if a.quota != nil && a.quota.views != nil {
			h.things = append(h.things, a.quota)
		}
		if err := h.add(a.history); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	slices.SortFunc(h.seen, func(a, b sighting) int { return int(a.value - b.value) })
	return h
}
