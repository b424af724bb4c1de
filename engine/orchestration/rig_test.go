package orchestration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// rig is an engine with a clock to turn, seen from the inside.
type rig struct {
	t testing.TB
	o *Engine
	c Call
}

func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{t: t, o: New(cfg)}
	r.c.Now = connection.Instant{Mono: int64(time.Hour), Wall: 1767323045000}
	return r
}

func (r *rig) after(d time.Duration) {
	r.c.Now.Mono += int64(d)
	r.c.Now.Wall += d.Milliseconds()
}

func asMap(text string) mpack.Value { return mpack.Value{Kind: mpack.Map, Data: pack(text)} }

// around is a pipeline of two stages that goes round without end.
const around = `{"name":"n","agents":[{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2","default_next":"s1"}],` +
	`"max_iterations":1000000,"max_llm_calls":1000000,"max_agent_hops":1000000}`

// envOf is a flat envelope; more are members with a comma in front.
func envOf(id, more string) string {
	return `{"envelope_id":"` + id + `","current_stage":"start","outputs":{}` + more + `}`
}

const asks = `,"interrupt_pending":true,"interrupt":{"kind":"clarification","question":"?"}`

func (r *rig) init(pid, env string, force bool) wire.Code {
	_, code := r.o.Initialize(&r.c, &InitArgs{ProcessID: []byte(pid), Config: asMap(around), Envelope: asMap(env), Force: force}, nil)
	return code
}

func (r *rig) report(pid, agent, output string) wire.Code {
	_, code := r.o.Report(&r.c, &Report{ProcessID: []byte(pid), AgentName: []byte(agent), Output: pack(output)}, nil)
	return code
}

func (r *rig) update(env string) wire.Code {
	_, code := r.o.UpdateEnvelope(&r.c, asMap(env), nil)
	return code
}

// create stores an envelope and returns its identifier.
func (r *rig) create(more string) (id string, code wire.Code) {
	out, code := r.o.CloneEnvelope(&r.c, asMap(envOf("new", more)), nil)
	if code != wire.OK {
		return "", code
	}
	var e envelope.Env
	if p := e.Decode(envelope.MsgPack, out); p != nil {
		r.t.Fatal(p.Message())
	}
	return string(e.Text(envelope.EnvelopeID)), code
}

func (r *rig) want(got, want wire.Code) {
	r.t.Helper()
	if got != want {
		r.t.Fatalf("%s %s, want %s", got, r.c.Msg, want)
	}
}

func (r *rig) ok(got wire.Code) {
	r.t.Helper()
	r.want(got, wire.OK)
}

func (r *rig) session(pid string) *session {
	r.t.Helper()
	s, ok := r.o.sessions.Get([]byte(pid))
	if !ok {
		r.t.Fatalf("no session %s", pid)
	}
	return s
}

// audit walks both tables and the index of waiting sessions while nothing happens, and holds them
// against each other: what is counted is what is there. exact is false where ends went through
// though the bytes were used up.
func (r *rig) audit(exact bool) {
	r.t.Helper()
	var got, want Stats
	got = r.o.Stats()
	var waits []*session
	r.o.sessions.Walk(func(e *table.Entry[session]) {
		s := e.Value()
		if !s.mu.TryLock() {
			r.t.Fatalf("session %s was left locked", e.Key())
		}
		defer s.mu.Unlock()
		want.Sessions++
		want.SessionBytes += e.Size()
		size := s.size(cap(s.env))
		if a := s.answer.Load(); a != nil {
			size += int64(a.room())
		}
		if exact && e.Size() != size {
			r.t.Errorf("session %s counts for %d bytes and takes %d", e.Key(), e.Size(), size)
		}
		if e.Class() != s.class() || e.Key() != string(s.pid) || s.gone.Load() {
			r.t.Errorf("session %s: class %v, state %d, pid %s, gone %v", e.Key(), e.Class(), s.state, s.pid, s.gone.Load())
		}
		if s.state == waiting && s.answer.Load() == nil {
			waits = append(waits, s)
		}
	})
	r.o.envelopes.Walk(func(e *table.Entry[stored]) {
		want.Envelopes++
		want.EnvelopeBytes += e.Size()
		if size := storedSize([]byte(e.Key()), e.Value().encoded); exact && e.Size() != size {
			r.t.Errorf("envelope %s counts for %d bytes and takes %d", e.Key(), e.Size(), size)
		}
		r.auditStored(e)
	})
	if got != want {
		r.t.Errorf("counted %+v, held %+v", got, want)
	}
	r.auditIndex(waits)
}

func (r *rig) auditStored(e *table.Entry[stored]) {
	var env envelope.Env
	if p := env.Decode(envelope.MsgPack, e.Value().encoded); p != nil {
		r.t.Fatalf("envelope %s: %s", e.Key(), p.Message())
	}
	if id := env.Text(envelope.EnvelopeID); string(id) != e.Key() || e.Class() != classOf(env.Bool(envelope.Terminated)) {
		r.t.Errorf("under %s, %v, is envelope %s, terminated %v", e.Key(), e.Class(), id, env.Bool(envelope.Terminated))
	}
}

// auditIndex checks that the index names the sessions that wait and nothing else, and that no
// identifier is left locked.
func (r *rig) auditIndex(waits []*session) {
	n := 0
	for id, list := range r.o.waiting.byID {
		if n += len(list); len(list) == 0 {
			r.t.Errorf("nothing waits with %s", id)
		}
		for s := range list {
			if string(s.envelopeID) != id || !slices.Contains(waits, s) {
				r.t.Errorf("the index has session %s, envelope %s, under %s", s.pid, s.envelopeID, id)
			}
		}
	}
	if n != len(waits) {
		r.t.Errorf("%d sessions wait, the index has %d", len(waits), n)
	}
	for i := range r.o.ids {
		if !r.o.ids[i].TryLock() {
			r.t.Fatal("an identifier was left locked")
		}
		r.o.ids[i].Unlock()
	}
}

// print is everything a refused request must leave as it was.
func (r *rig) print() string {
	s := fmt.Sprintf("%+v", r.o.Stats())
	var parts []string
	r.o.sessions.Walk(func(e *table.Entry[session]) {
		v := e.Value()
		parts = append(parts, fmt.Sprintf("%s %v %d %p %x %d %d %v %d %s", e.Key(), e.Class(), e.Size(), v, v.env, v.state, v.over, v.edges,
			v.stage.Load(), v.reason))
	})
	r.o.envelopes.Walk(func(e *table.Entry[stored]) {
		parts = append(parts, fmt.Sprintf("%s %v %d %x", e.Key(), e.Class(), e.Size(), e.Value().encoded))
	})
	slices.Sort(parts)
	return fmt.Sprint(s, parts, len(r.o.waiting.byID))
}
