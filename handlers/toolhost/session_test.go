package toolhost

import (
	"strings"
	"testing"

	"trunkline/engine/connection"
)

// A client that goes away does not end its tool; a result with a key is kept (toolhost §2.3).
func TestClosedWhileToolRuns(t *testing.T) {
	r := newRig(t, nil)
	p, anon := r.open(Stdin), r.open(Stdin)
	line := keyed("AID.WAIT.v1", "k", "")
	p.begin(line)
	anon.begin(`{"aid":"AID.WAIT.v1"}`)
	r.awayBegun()
	r.awayBegun()
	p.close()
	anon.close()
	if got := r.srv.Stats(); got.InFlight != 2 || got.Sessions != 0 {
		t.Errorf("%+v", got)
	}
	q := r.open(Stdin)
	q.begin(line)
	close(r.gate)
	if got := q.end(); got != hitReply {
		t.Error(got)
	}
	r.wantRuns(2)
	if got := r.srv.Stats(); got.Sessions != 1 {
		t.Errorf("%+v", got)
	}
}

func TestLoad(t *testing.T) {
	r := newRig(t, nil)
	f := func(p *peer, busy, done bool) {
		t.Helper()
		if got := p.s.Load(); got != (connection.Load{Busy: busy, Done: done}) {
			t.Errorf("%+v", got)
		}
	}
	for _, via := range []Transport{Stdin, Unix, TCP} {
		p := r.open(via)
		f(p, via != TCP, false)
		p.s.EOF(connection.Now())
		f(p, via != TCP, true)
	}
	p := r.open(TCP)
	p.begin(`{"aid":"AID.WAIT.v1"}`)
	r.awayBegun()
	f(p, true, false)
	p.s.EOF(connection.Now())
	f(p, true, false)
	if used, _, v := p.s.Feed([]byte("{}\n"), nil, connection.Now()); used != 0 || v != connection.Blocked {
		t.Errorf("a blocked session took %d bytes, %v", used, v)
	}
	close(r.gate)
	p.end()
	f(p, false, true)
}

// Sessions that were asked to end refuse lines in words until no tool runs any more, on whatever
// session (toolhost §2.3).
func TestDrain(t *testing.T) {
	r := newRig(t, nil)
	idle, busy, waits, gone := r.open(TCP), r.open(TCP), r.open(TCP), r.open(TCP)
	line := keyed("AID.WAIT.v1", "k", "")
	busy.begin(line)
	r.awayBegun()
	waits.begin(line, `{"aid":"AID.NOOP.v1"}`)
	idle.s.Drain(connection.Now())
	gone.s.Drain(connection.Now())
	gone.close()
	for _, late := range []string{`{"aid":"AID.NOOP.v1"}`, `{"aid":"_health"}`, `{}`} {
		idle.want(late, fault("shutting_down"))
	}
	idle.want(`nope`, fault("invalid JSON"))
	idle.want(`{"aid":"AID.WAIT.v1","request_id":"late"}`, `{"ok":false,"error":"shutting_down","request_id":"late"}`)
	if idle.s.Load().Done {
		t.Error("a session ends while a tool runs")
	}
	close(r.gate)
	busy.pump()
	idle.pump()
	if !idle.s.Load().Done {
		t.Error("nothing runs any more, and the session stays")
	}
	busy.s.Drain(connection.Now())
	if busy.feed(); !busy.s.Load().Done || string(busy.out) == "" {
		t.Error("the last reply is missing")
	}
	if got := waits.end(); got != hitReply+"\n"+okReply {
		t.Error(got)
	}
	waits.s.Drain(connection.Now())
	if !waits.s.Load().Done {
		t.Error("not done")
	}
}

// A session that waited and is asked to end before the line is read again does not give the outcome
// to a later line.
func TestAnswerIsForItsLine(t *testing.T) {
	r := newRig(t, nil)
	a, b := r.open(Stdin), r.open(Stdin)
	a.begin(keyed("AID.WAIT.v1", "k", ""))
	r.awayBegun()
	b.begin(keyed("AID.WAIT.v1", "k", ""))
	close(r.gate)
	a.end()
	b.pump()
	b.in = nil // as if the owner had lost the line
	b.want(`{"aid":"AID.NOPE.v1"}`, fault("tool not found: AID.NOPE.v1"))
	b.want(keyed("AID.COUNT.v1", "other", ""), okReply)
	r.wantRuns(2)
}

// Sessions hold no call between lines, and a pooled call holds no line.
func TestCallsAreLetGo(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Stdin)
	c := new(call)
	c.srv, c.s = r.srv, p.s.(*session)
	line := `{"aid":"AID.SET.v1","request_id":"` + strings.Repeat("x", 100) + `","input_json":"{\"a\":\"` + strings.Repeat("x", keepScratch) + `\"}","idempotency_key":"\u0061"}`
	if c.serve([]byte(line), nil); c.s.awaits != ownCall {
		t.Fatal("such an input is not for the loop")
	}
	p.blocked = true
	p.pump()
	if c.req.input != nil || c.req.aid != nil || c.req.key != nil || c.req.members[0].Raw != nil || c.reply != nil || c.s != nil {
		t.Errorf("%d bytes of input, %d of a reply", cap(c.req.input), cap(c.reply))
	}
	if cap(c.req.texts[nameKey]) == 0 {
		t.Error("small scratch memory is let go as well")
	}
}

// What a request wants repeated must fit the line of a reply.
func TestLongFault(t *testing.T) {
	p := newRig(t, nil).open(Stdin)
	long := strings.Repeat("x", maxReply)
	for _, line := range []string{
		`{"aid":"_run.open","goal_id":"g","spec_version":"` + long + `"}`, `{"aid":"AID.NOOP.v1","ds_state":{"slots":{"` + long + `":{}}}}`,
		`{"aid":"` + long + `"}`, `{"aid":"AID.NOOP.v1","run_id":"` + long + `"}`, `{"aid":"_lease.issue","tool_aid":"` + long + `"}`,
	} {
		if got := p.ask(line); len(got) >= maxReply || !strings.HasPrefix(got, `{"ok":false,"error":"`) {
			t.Errorf("%.60s: %d bytes, %.60s", line, len(got), got)
		}
	}
}

// What owners are informed of lines (toolhost §2.2): how long they may be, and what to state when
// one does not come.
func TestLimits(t *testing.T) {
	in, sock := StdinLimits(), new(Server).SocketLimits()
	if in.IdleAfter != 0 || in.FrameWithin != 0 || in.SendWithin != 0 || in.LateFrame != nil {
		t.Errorf("stdin has timers: %+v", in)
	}
	if sock.IdleAfter != 900e9 || sock.FrameWithin != 30e9 || sock.SendWithin != 30e9 ||
		string(sock.LateFrame(nil)) != fault("read timeout")+"\n" {
		t.Errorf("%+v", sock)
	}
	for _, l := range []connection.Limits{in, sock} {
		if l.FrameBytes != MaxLine+2 || l.UnsentBytes != 8<<20 || l.DrainWithin != 10e9 || l.EndOfInput != "\n" {
			t.Errorf("%+v", l)
		}
	}
}
