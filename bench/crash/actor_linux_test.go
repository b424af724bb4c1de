package crash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// actor works on one process, its session and an envelope, with one request at a time.
type actor struct {
	g     *game
	index int
	rng   *rand.Rand

	is       world // after the last reply
	maybe    *world
	pending  call   // makes maybe of is; without a reply so far
	last     call   // that was answered, and brought about what is
	shown    []byte // the last GetSessionState, nil if the session may have changed since
	envelope string // stored under this identifier
	entered  entry  // into the ready queue
	serial   int64
	past     []ended
	public   atomic.Pointer[string] // the process, for readers
}

// entry is when a process entered the ready queue, in stamps of the game: not before sent, not
// after acked.
type entry struct{ sent, acked int64 }

// ended is a process that an actor is done with.
type ended struct {
	world
	shown []byte
}

func newActor(g *game, index int) *actor {
	a := &actor{g: g, index: index, rng: rand.New(rand.NewPCG(g.rng.Uint64(), uint64(index)))}
	a.is = world{pid: a.nextPID()}
	if index == 0 {
		a.is.quota = defaultCalls
	}
	return a
}

func (a *actor) nextPID() string {
	pid := fmt.Sprintf("p%d-%d", a.index, len(a.past))
	a.public.Store(&pid)
	return pid
}

// run goes on until the connection is lost or stop is set.
func (a *actor) run(ctx context.Context, c *ipcclient.Conn, stop *atomic.Bool) {
	for !stop.Load() && a.step(ctx, c) {
	}
}

// step makes one request; alive reports whether another makes sense.
func (a *actor) step(ctx context.Context, c *ipcclient.Conn) (alive bool) {
	switch n := a.rng.IntN(100); {
	case a.is.state == "":
		return a.do(ctx, c, call{method: create, priority: priorities[a.rng.IntN(len(priorities))], flag: a.rng.IntN(4) > 0})
	case a.is.state == stateTerminated && n < 25:
		return a.do(ctx, c, moveTo(stateZombie))
	case a.is.state == stateTerminated && n < 50: // a session may begin after its process has ended, and goes on
		if a.is.session.running() {
			a.serial++
			return a.do(ctx, c, a.report(""))
		}
		return a.do(ctx, c, a.begin(false))
	case a.is.state == stateTerminated || a.is.state == stateZombie:
		return a.retire(ctx, c)
	case n < 10:
		return a.g.shared[a.rng.IntN(len(a.g.shared))].add(ctx, c, a.g, 1+a.rng.Int64N(100))
	case n < 20:
		return a.show(ctx, c)
	case n < 25:
		return a.envelopes(ctx, c)
	}
	return a.do(ctx, c, a.choose())
}

var priorities = []string{"REALTIME", "HIGH", "NORMAL", "LOW", "IDLE"}

// choose draws what to do with a live process.
func (a *actor) choose() call {
	a.serial++
	switch n := a.rng.IntN(100); {
	case n < 1 && a.rng.IntN(2) == 0:
		return moveTo(stateTerminated)
	case n < 2:
		return call{method: terminate}
	case n < 12:
		return a.move()
	case n < 22:
		return call{method: usage, llm: 1 + a.rng.Int64N(5), n: a.rng.Int64N(1000)}
	case n < 27 && a.index == 0:
		return call{method: limit, n: 100 + a.serial}
	}
	switch l := &a.is.session; {
	case l.waiting:
		return a.update()
	case l.running():
		return a.report(strings.Repeat("x", a.rng.IntN(300)))
	case l.generation == 0 && a.rng.IntN(3) == 0:
		return call{method: execute, n: 1}
	}
	return a.begin(a.envelope != "" && a.rng.IntN(3) == 0)
}

// begin is InitializeSession, over an older session if there is one.
func (a *actor) begin(waits bool) call {
	before := int64(a.is.session.generation)
	return call{method: begin, n: before + 1, flag: before > 0, waits: waits, envelope: a.envelope}
}

// report is ReportAgentResult for the stage that the session is at.
func (a *actor) report(pad string) call {
	return call{method: report, agent: a.is.session.turn(), n: a.serial, result: a.result(), pad: pad}
}

// update replaces the stored envelope by one without an interrupt, which lets a session that waits
// go on.
func (a *actor) update() call { return call{method: update, envelope: a.envelope, n: a.serial} }

func moveTo(state string) call { return call{method: move, to: state} }

func (a *actor) result() result {
	switch a.rng.IntN(60) {
	case 0:
		return completes
	case 1:
		return fails
	}
	return goesOn
}

// move draws a step along the state table (kernel-ipc §5.1).
func (a *actor) move() call {
	switch a.is.state {
	case stateNew:
		if a.rng.IntN(2) == 0 {
			return call{method: schedule}
		}
		return moveTo(stateReady)
	case stateReady:
		return moveTo(stateRunning)
	case stateRunning:
		return moveTo([]string{stateReady, stateWaiting, stateBlocked}[a.rng.IntN(3)])
	}
	return moveTo(stateReady)
}

// do makes a request whose outcome, if there is no reply, is found out after the restart.
func (a *actor) do(ctx context.Context, c *ipcclient.Conn, in call) (alive bool) {
	next, answer := in.apply(a.is)
	if answer.code != wire.OK {
		panic(fmt.Sprintf("BUG: %v would be refused by %v", in, a.is))
	}
	a.maybe, a.pending = &next, in
	if next.session != a.is.session {
		a.shown = nil
	}
	if in.queues() {
		a.entered = entry{sent: a.g.stamp.Add(1), acked: math.MaxInt64}
	}
	a.g.count.add(sent, 1)
	_, err := in.send(ctx, c, a.is.pid)
	if agrees := in.agrees(); err == nil || agrees != wire.OK && refused(err, agrees) {
		a.is, a.maybe, a.last = next, nil, in
		if in.queues() {
			a.entered.acked = a.g.stamp.Add(1)
		}
		a.g.count.add(confirmed, 1)
		return true
	}
	lost, alive := a.g.evaluate(err, in.String()+" of "+a.is.pid)
	if !lost {
		a.maybe = nil
	}
	return alive
}

// show keeps the present reply of GetSessionState.
func (a *actor) show(ctx context.Context, c *ipcclient.Conn) (alive bool) {
	if a.is.session.generation == 0 {
		return true
	}
	a.g.count.add(sent, 1)
	raw, err := c.Call(ctx, "orchestration", "GetSessionState", keyed("process_id", a.is.pid))
	if err != nil {
		_, alive = a.g.evaluate(err, "GetSessionState of "+a.is.pid)
		return alive
	}
	if a.shown != nil && string(a.shown) != string(raw) {
		a.g.fault("GetSessionState of %s changed with nothing sent:\n%x\n%x", a.is.pid, a.shown, raw)
	}
	a.shown = raw
	return true
}

// retire leaves an ended process and begins another one.
func (a *actor) retire(ctx context.Context, c *ipcclient.Conn) (alive bool) {
	if a.shown == nil && a.is.session.generation > 0 && !a.show(ctx, c) {
		return false
	}
	a.past = append(a.past, ended{a.is, a.shown})
	a.is, a.shown, a.last = world{pid: a.nextPID(), quota: a.is.quota}, nil, call{}
	return true
}

// envelopes stores the actor's envelope, copies it or replaces it.
func (a *actor) envelopes(ctx context.Context, c *ipcclient.Conn) (alive bool) {
	a.serial++
	if a.envelope != "" && a.rng.IntN(3) > 0 {
		return a.do(ctx, c, a.update())
	}
	if a.is.session.waiting {
		return true // its envelope is not to be exchanged
	}
	a.g.count.add(sent, 1)
	id, err := a.store(ctx, c)
	if err != nil {
		_, alive = a.g.evaluate(err, "storing an envelope")
		return alive
	}
	a.envelope = id
	a.g.count.add(confirmed, 1)
	return true
}

func (a *actor) store(ctx context.Context, c *ipcclient.Conn) (id string, err error) {
	var reply []byte
	if a.envelope == "" {
		reply, err = c.CreateEnvelope(ctx, ipcclient.CreateEnvelope{RawInput: "hello", StageOrder: stages[:]})
	} else {
		reply, err = c.CloneEnvelope(ctx, encoded(fmt.Sprintf(`{"envelope_id":%q,"raw_input":"%d"}`, a.envelope, a.serial)))
	}
	if err != nil {
		return "", err
	}
	m, err := decoded(reply)
	if err != nil {
		return "", err
	}
	if group, ok := m["identity"].(map[string]any); ok {
		m = group
	}
	if id, _ = m["envelope_id"].(string); id == "" {
		return "", fmt.Errorf("no envelope_id in %v", m)
	}
	return id, nil
}

// refused reports whether err is an ERROR frame of one of the codes.
func refused(err error, codes ...wire.Code) bool {
	var e *ipcclient.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}
