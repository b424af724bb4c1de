package toolhost

import (
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

// Protocol errors, one row for each line of toolhost §3.3 that needs no other session (§8).
func TestProtocolErrors(t *testing.T) {
	p := newRig(t, nil).open(Stdin)
	f := func(line, want string) { t.Helper(); p.want(line, fault(want)) }
	for _, line := range []string{`nope`, `{'aid':'E'}`, `{"aid":"E",}`, `{"aid":"E"} x`, `{"aid":"E","n":NaN}`, `null`,
		` `, "{\"aid\":\"\xff\"}", "\ufeff\ufeff{}",
		`{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`} {
		f(line, "invalid JSON")
	}
	for _, line := range []string{`[]`, `42`, `"x"`, `{}`, `{"aid":""}`, `{"aid":5}`, `{"aid":null}`} {
		f(line, "missing aid")
	}
	f(`{"aid":"AID.NOPE.v1"}`, "tool not found: AID.NOPE.v1")
	f(`{"aid":"_nope"}`, "tool not found: _nope")
	f(`{"aid":"AID.NOOP.v1\u0000x"}`, `tool not found: AID.NOOP.v1\u0000x`)
	f(`{"aid":"`+strings.Repeat("a", 255)+`é"}`, "tool not found: "+strings.Repeat("a", 255))
	f(`{"aid":"`+strings.Repeat("a", 254)+`é"}`, "tool not found: "+strings.Repeat("a", 254)+"é")
	f(`{"aid":"AID.NOOP.v1","aid":"E"}`, "duplicate key: aid")
	f(`{"aid":"AID.NOOP.v1","\u0061id":"E"}`, "duplicate key: aid")
	p.want(`{"aid":"AID.NOOP.v1","x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`,"n":1e999}`, okReply)
}

// Step 6: each field, in the order of the checks.
func TestFieldChecks(t *testing.T) {
	p := newRig(t, nil).open(Stdin)
	members := []struct{ bad, why string }{
		{`"request_id":[]`, "invalid field: request_id: must be a string or integer"},
		{`"input_json":{"a":1}`, "invalid field: input_json: must be a string"},
		{`"inputs":[]`, "invalid field: inputs: must be an object"},
		{`"ds_state":[]`, "invalid ds_state: must be an object"},
		{`"idempotency_key":7`, "invalid field: idempotency_key: must be a string"},
		{`"_lease_token":7`, "invalid field: _lease_token: must be a string"},
		{`"run_id":7`, "invalid field: run_id: must be a string"},
	}
	for i := range members {
		line := `}`
		for _, m := range members[i:] {
			line = "," + m.bad + line
		}
		p.want(`{"aid":"AID.NOOP.v1"`+line, fault(members[i].why))
		p.want(`{"aid":"AID.NOPE.v1"`+line, fault("tool not found: AID.NOPE.v1"))
	}
	f := func(member, want string) { t.Helper(); p.want(`{"aid":"AID.INPUT.v1",`+member+`}`, want) }
	bad := func(member, why string) { t.Helper(); f(member, fault(why)) }
	bad(`"input_json":"[1]"`, "invalid field: input_json: not a JSON object")
	bad(`"input_json":"{\"a\":1} x"`, "invalid field: input_json: not a JSON object")
	bad(`"input_json":"`+strings.Repeat(`{\"a\":`, 33)+`1`+strings.Repeat(`}`, 33)+`"`, "invalid field: input_json: not a JSON object")
	bad(`"inputs":{},"input_json":5`, "invalid field: input_json: must be a string")
	bad(`"idempotency_key":"`+strings.Repeat("k", 257)+`"`, "invalid field: idempotency_key: too long")
	bad(`"run_id":"r"`, "no open run")
	bad(`"ds_state":{"slots":{"8":{}}}`, `invalid ds_state: bad slot \"8\"`)
	bad(`"ds_state":"{}"`, "invalid ds_state: must be an object")
	bad(`"request_id":null`, "invalid field: request_id: must be a string or integer")
	bad(`"request_id":1.5`, "invalid field: request_id: must be a string or integer")
	bad(`"request_id":9223372036854775808`, "invalid field: request_id: must be a string or integer")
	bad(`"request_id":"`+strings.Repeat("é", 65)+`"`, "invalid field: request_id: must be a string or integer")

	good := func(member, output string) { t.Helper(); f(member, toolReply("true", "OK", output, "", emptyDelta)) }
	good(`"input_json":""`, "{}")
	good(`"input_json":" \t"`, "{}")
	good(`"input_json":null,"inputs":null,"ds_state":null,"idempotency_key":null,"_lease_token":null`, "{}")
	good(`"inputs":{"k": 1.0}`, `{\"k\": 1.0}`)
	good(`"inputs":{"k":1},"input_json":""`, "{}")
	good(`"inputs":{"k":1},"input_json":" {\"j\" : 2}\n"`, ` {\"j\" : 2}\n`)
	good(`"idempotency_key":"`+strings.Repeat("k", 256)+`"`, "{}")
	good(`"idempotency_key":"","ds_state":{},"unknown":{"aid":[]}`, "{}")
}

// The identifier comes back as the last member of every reply to a line that is an object, as it
// was spelled.
func TestRequestIDEcho(t *testing.T) {
	p := newRig(t, nil).open(Stdin)
	f := func(line, want string) { t.Helper(); p.want(line, want) }
	for _, id := range []string{`"r-1"`, `"\u0072\n"`, `""`, `0`, `-9223372036854775808`, `"` + strings.Repeat("r", 128) + `"`, `"` + strings.Repeat(`\u00e9`, 64) + `"`} {
		echo := `,"request_id":` + id + "}"
		f(`{"request_id":`+id+`,"aid":"AID.NOOP.v1"}`, okReply[:len(okReply)-1]+echo)
		f(`{"request_id":`+id+`,"aid":"AID.NOPE.v1"}`, `{"ok":false,"error":"tool not found: AID.NOPE.v1"`+echo)
		f(`{"request_id":`+id+`,"aid":"a","aid":"b"}`, `{"ok":false,"error":"duplicate key: aid"`+echo)
		f(`{"request_id":`+id+`}`, `{"ok":false,"error":"missing aid"`+echo)
		f(`{"request_id":`+id+`,"aid":"AID.SET.AWAY.v1","input_json":"["}`, `{"ok":false,"error":"invalid field: input_json: not a JSON object"`+echo)
		f(`{"request_id":`+id+`,"aid":"AID.AWAY.v1"}`, okReply[:len(okReply)-1]+echo)
		f(`{"request_id":`+id+`,"aid":"_health"}`, `{"ok":true,"spec_version":"1.4.2","tools":16`+echo)
	}
	f(`{"request_id":"a","request_id":"b","aid":"AID.NOOP.v1"}`, `{"ok":false,"error":"duplicate key: request_id","request_id":"a"}`)
	f(`{"request_id":[],"aid":"_health"}`, fault("invalid field: request_id: must be a string or integer"))
	f(`{"request_id":"x",`, fault("invalid JSON"))
}

// Steps 7 to 10, each of which would fail: the first one answers.
func TestOrderOfSteps(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases, c.Queue = EnforceOn, 1 })
	p, other := r.open(Stdin), r.open(Stdin)
	const aid = `{"aid":"AID.EXT.WRITE.v1"`
	lease := `{"ok":false,"error":"lease_required","tier":1,"aid":"AID.EXT.WRITE.v1"}`
	p.want(aid+`,"ds_state":{"slots":{"8":{}}}}`, fault(`invalid ds_state: bad slot \"8\"`)) // 6
	p.want(aid+`}`, lease)                                                                   // 10
	other.begin(`{"aid":"AID.WAIT.v1"}`)
	r.awayBegun()
	p.want(aid+`}`, fault("overloaded")) // 9
	for range 2 {
		r.breaker.Done(false, brokenDispatch)
	}
	p.want(aid+`,"idempotency_key":"k"}`, toolReply("false", "BREAKER_TRIP", "{}", "circuit breaker open for AID.EXT.WRITE.v1", emptyDelta)) // 8
	close(r.gate)
	other.end()
	if got := r.srv.Stats(); got.InFlight != 0 || got.IdempotencyEntries != 0 || got.BreakersOpen != 2 {
		t.Errorf("%+v", got)
	}
}

// The request's own ds_state is applied if and only if the reply has a status (D16), and a tool's
// change only with OK (D15).
func TestStateOfSession(t *testing.T) {
	r := newRig(t, nil)
	f := func(line, reply, want string) {
		t.Helper()
		p := r.open(Stdin)
		p.ask(`{"aid":"AID.NOOP.v1","ds_state":{"slots":{"0":{"type":"old"}}}}`)
		p.want(line, reply)
		if got := p.state(); got != want {
			t.Errorf("%s\nleaves %s\nwant %s", line, got, want)
		}
	}
	slot := func(n, kind string) string {
		return `"` + n + `":{"type":"` + kind + `","provenance":"","content_json":"","size_bytes":0}`
	}
	old, one := `{"slots":{`+slot("0", "old")+`}}`, `{"slots":{`+slot("0", "old")+`,`+slot("1", "new")+`}}`
	const delta = `,"ds_state":{"delta":true,"slots":{"1":{"type":"new"}}}}`
	written := `"6":{"type":"text","provenance":"set","content_json":"{}","size_bytes":2}`
	failed := toolReply("false", "TOOL_ERROR", "{}", "no", emptyDelta)
	f(`{"aid":"AID.NOOP.v1"}`, okReply, old)
	f(`{"aid":"AID.NOOP.v1"`+delta, okReply, one)
	f(`{"aid":"AID.AWAY.v1"`+delta, okReply, one)
	f(`{"aid":"AID.NOOP.v1","ds_state":{"slots":{}}}`, okReply, `{"slots":{}}`)
	f(`{"aid":"AID.NOOP.v1","ds_state":{}}`, okReply, old)
	f(`{"aid":"AID.FAIL.v1"`+delta, failed, one)
	f(`{"aid":"AID.FAIL.AWAY.v1"`+delta, failed, one)
	f(`{"aid":"AID.NOPE.v1"`+delta, fault("tool not found: AID.NOPE.v1"), old)
	f(`{"aid":"AID.NOOP.v1","idempotency_key":5`+delta, fault("invalid field: idempotency_key: must be a string"), old)
	f(`{"aid":"AID.NOOP.v1","run_id":"r"`+delta, fault("no open run"), old)
	set := toolReply("true", "OK", "{}", "", `,"ds_state":{"delta":true,"slots":{`+written+`},"removed_slots":[]}`)
	for _, aid := range []string{"AID.SET.v1", "AID.SET.AWAY.v1"} {
		f(`{"aid":"`+aid+`"`+delta, set, one[:len(one)-2]+`,`+written+`}}`)
		f(`{"aid":"`+aid+`","ds_state":{"slots":{`+written+`}}}`, okReply, `{"slots":{`+written+`}}`)
	}
	big := strings.Repeat("x", sessionstate.MaxBytes-8)
	f(`{"aid":"AID.NOOP.v1","ds_state":{"slots":{"0":{"content_json":"`+big+`xxxxxxxxx"}}}}`, fault("invalid ds_state: exceeds 1MB limit"), old)
}
