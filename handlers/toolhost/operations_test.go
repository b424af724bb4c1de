package toolhost

import (
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/tool"
)

func TestHealthAndStats(t *testing.T) {
	r := newRig(t, nil)
	p, q := r.open(Stdin), r.open(Unix)
	p.want(`{"aid":"_health"}`, `{"ok":true,"spec_version":"1.4.2","tools":16}`)
	stats := func(want string) { t.Helper(); p.want(`{"aid":"_stats"}`, `{"ok":true,`+want+`}`) }
	stats(`"sessions":2,"in_flight":0,"idempotency_entries":0,"idempotency_hits":0,"lease_active":0,"breakers_open":0,"workers":0`)
	p.ask(`{"aid":"AID.NOOP.v1","idempotency_key":"k"}`, `{"aid":"AID.NOOP.v1","idempotency_key":"k"}`, `{"aid":"_lease.issue","tool_aid":"*","tier":1}`)
	q.begin(`{"aid":"AID.WAIT.v1","idempotency_key":"w"}`)
	r.awayBegun()
	stats(`"sessions":2,"in_flight":1,"idempotency_entries":2,"idempotency_hits":1,"lease_active":1,"breakers_open":0,"workers":0`)
	close(r.gate)
	q.end()
	q.close()
	r.pass(maxLeaseTTL * 1e6)
	stats(`"sessions":1,"in_flight":0,"idempotency_entries":0,"idempotency_hits":1,"lease_active":0,"breakers_open":0,"workers":0`)
	for _, n := range r.srv.Stats().Tools {
		want := int64(0)
		if n.AID == "AID.NOOP.v1" || n.AID == "AID.WAIT.v1" {
			want = 1
		}
		if n.OK != want || n.Fail != 0 {
			t.Errorf("%+v", n)
		}
	}
}

func TestAuth(t *testing.T) {
	r := newRig(t, func(c *Config) { c.APIToken = "secret" })
	const noop, health = `{"aid":"AID.NOOP.v1"}`, `{"aid":"_health"}`
	p := r.openAs(TCP, "token")
	p.want(health, `{"ok":true,"spec_version":"1.4.2","tools":16}`)
	p.want(`{"x":1}`, fault("missing aid"))
	p.want(noop, fault("auth_required"))
	p.want(`{"aid":"_auth","token":"secreT"}`, fault("auth_failed"))
	p.want(`{"aid":"_auth","token":"\u0073ecret","request_id":1}`, `{"ok":true,"principal":"token","request_id":1}`)
	p.want(noop, okReply)

	p = r.openAs(TCP, "token")
	f := func(line, want string) {
		t.Helper()
		if p.want(line, want); p.closed {
			t.Error("closed")
		}
	}
	f(`{"aid":"AID.NOPE.v1"}`, fault("auth_required"))
	f(`{"aid":"_stats"}`, fault("auth_required"))
	p.begin(`{"aid":"_auth","token":5}`, noop)
	if got := p.end(); got != fault("auth_failed") || !p.closed || len(p.in) != len(noop)+1 {
		t.Errorf("the third failure: %s", got)
	}
	q := r.openAs(Unix, "uid:5")
	q.want(`{"aid":"_auth","token":"x"}`, `{"ok":true,"principal":"uid:5"}`)
	q.want(noop, okReply)
	newRig(t, nil).openAs(TCP, "anon").want(`{"aid":"_auth"}`, `{"ok":true,"principal":"anon"}`)
}

func TestOpeners(t *testing.T) {
	f := func(token, remote string, via Transport, principal string, authed bool) {
		t.Helper()
		r := newRig(t, func(c *Config) { c.APIToken = token })
		s := r.srv.OpenSocket(connection.NewPort(1, remote)).(*session)
		defer s.Closed()
		if s.via != via || string(s.principal) != principal || s.authed() != authed {
			t.Errorf("%s: %d %s %v", remote, s.via, s.principal, s.authed())
		}
	}
	f("", "uid:1000", Unix, "uid:1000", true)
	f("x", "uid:1000", Unix, "uid:1000", true)
	f("", "127.0.0.1:5", TCP, "anon", true)
	f("x", "127.0.0.1:5", TCP, "token", false)
	s := newRig(t, nil).srv.OpenStdin(connection.NewPort(1, "")).(*session)
	defer s.Closed()
	if s.via != Stdin || string(s.principal) != "stdin" {
		t.Errorf("stdin: %d %s", s.via, s.principal)
	}
	if got := string(AppendRefusal(nil)); got != fault("too many connections")+"\n" {
		t.Error(got)
	}
}

func TestToolsList(t *testing.T) {
	entry := Entry{Descriptor: tool.Descriptor{AID: "AID.B.v1", Name: "b\n", SideEffects: []string{"write", "none"}, Tags: []string{"x"}, Deterministic: true}}
	reg, err := NewRegistry([]Entry{entry, {Descriptor: tool.Descriptor{AID: "AID.A.v1", ReplayInputs: []string{"r"}}}})
	if err != nil {
		t.Fatal(err)
	}
	const a = `{"aid":"AID.A.v1","name":"","deterministic":false,"tags":[],"side_effects":[],"replay_inputs":["r"]`
	const b = `{"aid":"AID.B.v1","name":"b\n","deterministic":true,"tags":["x"],"side_effects":["write","none"],"replay_inputs":[]`
	newRig(t, func(c *Config) { c.Registry = reg }).open(Stdin).want(`{"aid":"_tools.list","request_id":1}`,
		`{"ok":true,"tools":[`+a+`,"tier":0},`+b+`,"tier":1}],"request_id":1}`)
	if got, want := string((&Single{Registry: reg}).List()), `{"ok":true,"tools":[`+a+"},"+b+"}]}\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, err := NewRegistry([]Entry{entry, entry}); err == nil || err.Error() != "duplicate aid in registry: AID.B.v1" {
		t.Error(err)
	}
	entry.Name = strings.Repeat("n", maxReply)
	if reg, err = NewRegistry([]Entry{entry}); err != nil {
		t.Fatal(err)
	}
	newRig(t, func(c *Config) { c.Registry = reg }).open(Stdin).want(`{"aid":"_tools.list"}`, fault("output exceeds 1MB limit"))
	if n := len((&Single{Registry: reg}).List()); n <= maxReply {
		t.Errorf("a list of %d bytes", n)
	}
}

func TestRun(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Stdin)
	const open = `{"aid":"_run.open","goal_id":"g","run_id":"r1","request_id":"q"}`
	opened := `{"ok":true,"run_header":{"spec_version":"1.4.2","profile_id":"A","run_id":"r1","request_id":"q"},"max_steps":64,"max_invalid_picks":8,"request_id":"q"}`
	for _, aid := range []string{"_run.select", "_run.close"} {
		p.want(`{"aid":"`+aid+`"}`, fault("no open run"))
	}
	p.want(`{"aid":"_run.open","goal_id":"g","spec_version":"1"}`, fault("unsupported spec_version: 1"))
	p.want(open, opened)
	p.want(open, `{"ok":false,"error":"run already open","request_id":"q"}`)
	p.want(`{"aid":"AID.NOOP.v1","run_id":"r1"}`, okReply)
	p.want(`{"aid":"AID.NOOP.v1","run_id":"r2"}`, fault("no open run"))
	if got := p.ask(`{"aid":"_run.select","request_id":5}`); !strings.HasPrefix(got, `{"ok":true,"status":"OK","error":"","run_id":"r1","step":0,"selection":{"kind":"PICK"`) || !strings.HasSuffix(got, `,"request_id":5}`) {
		t.Error(got)
	}
	p.want(`{"aid":"_run.close"}`, `{"ok":true,"run_id":"r1","steps":1,"invalid_picks":0}`)
	p.want(`{"aid":"AID.NOOP.v1","run_id":"r1"}`, fault("no open run"))
	if got := r.events.take(false); got != "toolhost.run.opened {\"run_header\":{\"spec_version\":\"1.4.2\",\"profile_id\":\"A\",\"run_id\":\"r1\",\"request_id\":\"q\"},\"goal_id\":\"g\"}\n"+
		"toolhost.run.closed {\"run_id\":\"r1\",\"steps\":1,\"ended\":\"close\"}\n" {
		t.Error(got)
	}
	// The loop guard ends the run, and so does the end of the session.
	p.ask(open)
	for range 3 {
		p.ask(`{"aid":"_run.select"}`)
	}
	if got := p.ask(`{"aid":"_run.select"}`); !strings.Contains(got, `"error":"loop_guard"`) {
		t.Error(got)
	}
	p.want(`{"aid":"_run.select"}`, fault("no open run"))
	p.ask(open)
	p.close()
	if got := r.events.take(false); !strings.HasSuffix(got, "\"ended\":\"session end\"}\n") || !strings.Contains(got, `"ended":"breaker"`) {
		t.Error(got)
	}
}

// A selection that is on its way when its session ends has the run until then.
func TestRunOfClosedSession(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Executors = 1 })
	q, p := r.open(Stdin), r.open(Stdin)
	q.begin(`{"aid":"AID.WAIT.v1"}`)
	r.awayBegun()
	p.ask(`{"aid":"_run.open","goal_id":"g","run_id":"r1"}`)
	p.begin(`{"aid":"_run.select"}`)
	p.close()
	if got := r.events.take(false); strings.Contains(got, "closed") {
		t.Error(got)
	}
	close(r.gate)
	q.end()
	r.awayEnded()
	if got := r.events.take(false); got != "toolhost.run.closed {\"run_id\":\"r1\",\"steps\":1,\"ended\":\"session end\"}\n" {
		t.Error(got)
	}
}
