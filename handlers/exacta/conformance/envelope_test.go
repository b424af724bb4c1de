package conformance

import (
	"fmt"
	"strings"
	"testing"
)

const (
	noID    = "00000000-0000-4000-8000-0000000000ff" // of nothing
	goodEnd = `,"sent_at":"2026-01-15T00:00:00Z","command":"Pause","payload":{}}`
)

// TestUnreadable3_1 sends what is no message (exacta §2.1, §3.1, §8): each has an IPC-001 of its
// own with a null request_id, and the connection stays open.
func TestUnreadable3_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		f := func(message, detail string) {
			t.Helper()
			if r := c.message(message); r.end.Request != nil || r.end.Type != "response" {
				t.Errorf("%.60s: got %s", message, r.end.line)
			} else {
				r.want("", "IPC-001 "+detail)
			}
			c.ask("Pause", "").is("IPC-009 execution_id:") // 32 in a row would close a socket
		}
		nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
		for _, message := range []string{`{nope`, `{}}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":-Infinity}`, `{"a":1,"a":1}`, `{"a":{"b":1,"\u0062":2}}`,
			`{"a":[{"b":1,"b":2}]}`, `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"\ud800":1}`, nested(33), `{"a":1} {"a":1}`, `{"a":1}x`, `{"a":01}`, `{"a":1.}`,
			`{"a":+1}`, `{'a':1}`, `{"a":"` + "\t" + `"}`, `{"a":"\x"}`, `{"a":1,}`, `{"a" 1}`, `// x`, `{"ipc_version":"1.0"`} {
			f(message, "invalid_json")
		}
		f(nested(32), "missing:ipc_version")
		f(`{"a":"\ud83d\ude00"}`, "missing:ipc_version")
		if via.lines {
			f("{\"a\":\"\xff\"}", "invalid_utf8")
			f("{\"a\":\"\xed\xa0\x80\"}", "invalid_utf8")
			f("{\"a\xff\":1", "invalid_utf8")
		}
		f("\uFEFF"+`{"a":1}`, "missing:ipc_version") // skipped, as RFC 8259 §8.1 allows
		f("\uFEFF\uFEFF"+`{"a":1}`, "invalid_json")
		for _, message := range []string{`[]`, `12`, `null`, `"x"`, `true`, `[{"ipc_version":"1.0"}]`} {
			f(message, "not_an_object")
		}
	})
}

// envelope is a request whose members are set one by one.
type envelope struct{ version, kind, id, sentAt, command, payload, timeout, extra, around string }

func (e *envelope) String() string {
	text := "{"
	for _, m := range [][2]string{{"ipc_version", e.version}, {"type", e.kind}, {"request_id", e.id}, {"sent_at", e.sentAt}, {"command", e.command},
		{"payload", e.payload}, {"timeout_ms", e.timeout}, {"z", e.extra}} {
		if m[1] != "" {
			text += `"` + m[0] + `":` + m[1] + ","
		}
	}
	return fmt.Sprintf(e.around, strings.TrimSuffix(text, ",")+"}")
}

func (c *client) envelope() *envelope {
	return &envelope{version: `"1.0"`, kind: `"request"`, id: quote(c.id()), sentAt: `"2026-01-15T00:00:00Z"`, command: `"ExecutePlan"`,
		payload: `{"project_id":"` + c.project + `","plan_id":"` + noID + `"}`, around: "%s"}
}

// TestEnvelope3_2 has the table of the members of a request (exacta §3.2, §8).
func TestEnvelope3_2(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		n := 0
		f := func(outcome string, change func(e *envelope)) {
			t.Helper()
			e := c.envelope()
			change(e)
			r := c.message(e.String()).is(outcome)
			if readable := !strings.Contains(outcome, "request_id"); readable != (r.end.Request != nil) {
				t.Errorf("request_id: %s", r.end.line)
			}
			if n++; n%16 == 0 {
				c.ask("Pause", "").is("IPC-009")
			}
		}
		served := "ST-001"
		f(served, func(*envelope) {})
		for name, member := range map[string]func(e *envelope) *string{
			"ipc_version": func(e *envelope) *string { return &e.version }, "type": func(e *envelope) *string { return &e.kind },
			"request_id": func(e *envelope) *string { return &e.id }, "sent_at": func(e *envelope) *string { return &e.sentAt },
			"command": func(e *envelope) *string { return &e.command }, "payload": func(e *envelope) *string { return &e.payload }} {
			f("IPC-001 missing:"+name, func(e *envelope) { *member(e) = "" })
			f("IPC-001 invalid:"+name, func(e *envelope) { *member(e) = "5" })
			f("IPC-001 invalid:"+name, func(e *envelope) { *member(e) = "null" })
			f("IPC-001 invalid:"+name, func(e *envelope) { *member(e) = "[]" })
		}
		for _, v := range []string{`"1"`, `"01.0"`, `1.0`, `"1.00"`, `"1.0.0"`, `""`, `"1.10000"`, `"10000.0"`, `" 1.0"`, `"1.0 "`, `"v1.0"`, `"1,0"`, `"-1.0"`} {
			f("IPC-001 invalid:ipc_version", func(e *envelope) { e.version = v })
		}
		for _, v := range []string{`"2.0"`, `"0.9"`, `"10.0"`, `"9999.9999"`} {
			f("IPC-002 ", func(e *envelope) { e.version = v })
		}
		f("IPC-002 ", func(e *envelope) { e.version, e.kind, e.command = `"3.1"`, "7", "" })
		for _, v := range []string{`"1.7"`, `"1.9999"`, `"\u0031.0"`} {
			f(served, func(e *envelope) { e.version = v })
		}
		for _, v := range []string{`"response"`, `"event"`, `"Request"`, `""`, `"request "`} {
			f("IPC-001 invalid:type", func(e *envelope) { e.kind = v })
		}
		for _, v := range []string{`"1111"`, `"00000000-0000-0000-0000-000000000000"`, `"00000000-0000-4000-8000-00000000000g"`, `"0000000000004000800000000000000a"`,
			`"{00000000-0000-4000-8000-00000000000a}"`, `"00000000-0000-4000-8000-00000000000a "`, `""`} {
			f("IPC-001 invalid:request_id", func(e *envelope) { e.id = v })
		}
		f(served, func(e *envelope) { e.id = `"ABCDEF00-0000-1000-0000-00000000000A"` })
		for _, v := range []string{`"yesterday"`, `17`, `"2026-01-15"`, `"2026-01-15 00:00:00Z"`, `"2026-13-15T00:00:00Z"`, `"2026-01-15T25:00:00Z"`, `"2026-01-15T00:00:00.Z"`,
			`"2026-01-15T00:00:00.0123456789Z"`, `"2026-01-15T00:00:00+1"`, `"2026-01-15T00:00:00z "`, `""`, `"2026-02-30T00:00:00Z"`, `"2026-01-15T00Z"`} {
			f("IPC-001 invalid:sent_at", func(e *envelope) { e.sentAt = v })
		}
		for _, v := range []string{`"2026-01-15T00:00Z"`, `"2026-01-15T00:00"`, `"2026-01-15T00:00:00"`, `"2026-01-15T00:00:00.1Z"`, `"2026-01-15T00:00:00.123456789Z"`,
			`"2026-01-15T00:00:00+01"`, `"2026-01-15T00:00:00-0130"`, `"2026-01-15T00:00:00+01:30"`, `"1999-12-31T23:59:59Z"`, `"9999-12-31T23:59:59Z"`} {
			f(served, func(e *envelope) { e.sentAt = v })
		}
		for _, v := range []string{"openProject", "Rollback", "", "OpenProject ", "EXECUTEPLAN"} {
			f("IPC-003 ", func(e *envelope) { e.command = quote(v) })
		}
		for _, v := range []string{`[]`, `null`, `"x"`, `1`, `true`} {
			f("IPC-001 invalid:payload", func(e *envelope) { e.payload = v })
		}
		for _, v := range []string{`0`, `"5"`, `1.5`, `true`, `3600001`, `-1`, `1e3`, `1.0`, `null`, `[]`, `99999999999999999999`} {
			f("IPC-009 timeout_ms:", func(e *envelope) { e.timeout = v })
			f("IPC-009 timeout_ms:", func(e *envelope) { e.payload = strings.TrimSuffix(e.payload, "}") + `,"timeout_ms":` + v + "}" })
		}
		for _, v := range []string{`1`, `3600000`} {
			f(served, func(e *envelope) { e.timeout = v })
			f(served, func(e *envelope) { e.payload = strings.TrimSuffix(e.payload, "}") + `,"timeout_ms":` + v + "}" })
		}
		f(served, func(e *envelope) { e.extra = `{"unknown":[1e300,"x"]}` })
	})
}

// TestUnknownCommand3_7 shows the first 64 characters of a name.
func TestUnknownCommand3_7(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		f := func(name, shown string) {
			t.Helper()
			e := c.envelope()
			e.command = quote(name)
			if r := c.message(e.String()); r.end.OK || r.end.Error.Message != "Unknown command: "+shown+"." {
				t.Errorf("got %s", r.end.line)
			}
		}
		f("Nope", "Nope")
		f(strings.Repeat("é", 64), strings.Repeat("é", 64))
		f(strings.Repeat("é", 65), strings.Repeat("é", 64))
		f("<&>\u2028\"\\\n\x01", "<&>\u2028\"\\\n\x01")
	})
}

// fault is a fault of a message, at a step of exacta §3.6.
type fault struct {
	step    int
	member  string // which it spoils
	outcome string
	spoil   func(c *client, e *envelope)
}

var faults = []fault{
	{2, "extra", "IPC-001 invalid_utf8", func(_ *client, e *envelope) { e.extra = "\"\xff\"" }},
	{3, "extra", "IPC-001 invalid_json", func(_ *client, e *envelope) { e.extra = `{"a":1,"a":1}` }},
	{4, "around", "IPC-001 not_an_object", func(_ *client, e *envelope) { e.around = "[%s]" }},
	{5, "version", "IPC-001 missing:ipc_version", func(_ *client, e *envelope) { e.version = "" }},
	{5, "version", "IPC-001 invalid:ipc_version", func(_ *client, e *envelope) { e.version = `"1"` }},
	{6, "version", "IPC-002 ", func(_ *client, e *envelope) { e.version = `"2.0"` }},
	{7, "kind", "IPC-001 missing:type", func(_ *client, e *envelope) { e.kind = "" }},
	{7, "kind", "IPC-001 invalid:type", func(_ *client, e *envelope) { e.kind = `"event"` }},
	{8, "id", "IPC-001 missing:request_id", func(_ *client, e *envelope) { e.id = "" }},
	{8, "id", "IPC-001 invalid:request_id", func(_ *client, e *envelope) { e.id = "5" }},
	{9, "sentAt", "IPC-001 missing:sent_at", func(_ *client, e *envelope) { e.sentAt = "" }},
	{9, "sentAt", "IPC-001 invalid:sent_at", func(_ *client, e *envelope) { e.sentAt = "17" }},
	{10, "command", "IPC-001 missing:command", func(_ *client, e *envelope) { e.command = "" }},
	{10, "command", "IPC-003 ", func(_ *client, e *envelope) { e.command = `"executePlan"` }},
	{11, "payload", "IPC-001 missing:payload", func(_ *client, e *envelope) { e.payload = "" }},
	{11, "payload", "IPC-001 invalid:payload", func(_ *client, e *envelope) { e.payload = "[]" }},
	{12, "timeout", "IPC-009 timeout_ms:", func(_ *client, e *envelope) { e.timeout = "0" }},
	{13, "id", "IPC-006 ", func(c *client, e *envelope) { e.id = quote(used) }},
	{14, "payload", "IPC-009 plan_id:", func(c *client, e *envelope) { e.payload = `{"project_id":"` + noID + `","plan_id":7}` }},
	{16, "payload", "ST-003 ", func(_ *client, e *envelope) { e.payload = `{"project_id":"` + noID + `","plan_id":"` + noID + `"}` }},
}

// used is a request_id that another request had.
const used = "77777777-0000-4000-8000-000000000001"

// TestOrder3_6 sends messages with two faults: the one of the earlier check is answered.
func TestOrder3_6(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		c.sends(c.line(used, "Build", `{"timeout_seconds":1,"configuration":"Debug"}`))
		c.await(used)
		for i, first := range faults {
			if first.step == 2 && !via.lines {
				continue
			}
			for _, second := range faults[i+1:] {
				if second.member == first.member || second.step == first.step {
					continue
				}
				e := c.envelope()
				first.spoil(c, e)
				second.spoil(c, e)
				if got := c.message(e.String()).outcome(); !strings.HasPrefix(got, first.outcome) {
					t.Errorf("%d and %d: got %s, want %s: %s", first.step, second.step, got, first.outcome, e)
				}
			}
			c.ask("Pause", "").is("IPC-009") // 32 unreadable lines in a row would close a socket
		}
	})
}

// TestLateOrder3_6 has the steps 14 to 20, which are about what a request asks for.
func TestLateOrder3_6(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		// 14 before 16: a bad field of an unknown project
		c.ask("Build", `{"project_id":"`+noID+`","configuration":"debug"}`).want("", "IPC-009 configuration:")
		// project_id is a field too
		c.ask("Build", `{"project_id":"x","configuration":"debug"}`).want("", "IPC-009 project_id:")
		// 16 before 19 and 20
		c.ask("Pause", `{"project_id":"`+noID+`","execution_id":"`+noID+`"}`).want("", "ST-003 ")
		// 19 before 20
		c.ask("ApprovePlan", `{"plan_id":"`+noID+`"}`).want("", "ST-001 ")
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
		// 20 in the right state
		c.plan("create file a.txt")
		c.ask("ApprovePlan", `{"plan_id":"`+noID+`"}`).want("", "VAL-004 ")
		c.ask("Cancel", `{"execution_id":"`+noID+`"}`).want("", "ST-003 ")
	})
}

// TestFlat2_3 has the form of a bridge: members of the envelope inside of the payload.
func TestFlat2_3(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		inside := func(id, more string) string {
			return `{"type":"request","command":"Pause","payload":{"ipc_version":"1.0","request_id":"` + id + `","sent_at":"2026-01-15T00:00:00Z","project_id":"` + c.project + `",` + more + `}`
		}
		f := func(message, id, outcome string) {
			t.Helper()
			if r := c.message(message).is(outcome); id != "" && (r.end.Request == nil || *r.end.Request != id) {
				t.Errorf("got %s", r.end.line)
			}
		}
		id := c.id()
		f(inside(id, `"execution_id":"`+noID+`"`)+"}", id, "ST-001 ")
		// at both levels: the top level counts
		id = c.id()
		f(inside(noID, `"execution_id":"`+noID+`"`)+`,"request_id":"`+id+`"}`, id, "ST-001 ")
		f(inside(c.id(), `"execution_id":"`+noID+`"`)+`,"ipc_version":"2.0"}`, "", "IPC-002 ")
		f(inside(c.id(), `"execution_id":"`+noID+`"`)+`,"sent_at":7}`, "", "IPC-001 invalid:sent_at")
		f(inside(c.id(), `"execution_id":"`+noID+`"`)+`,"request_id":null}`, "", "IPC-001 invalid:request_id")
		// the type and the command are not read there
		f(`{"command":"Pause","payload":{"type":"request","ipc_version":"1.0","request_id":"`+c.id()+`","sent_at":"2026-01-15T00:00:00Z"}}`, "", "IPC-001 missing:type")
		f(`{"type":"request","payload":{"command":"Pause","ipc_version":"1.0","request_id":"`+c.id()+`","sent_at":"2026-01-15T00:00:00Z"}}`, "", "IPC-001 missing:command")
		// of the two times the smaller one counts; both must be good
		f(inside(c.id(), `"execution_id":"`+noID+`","timeout_ms":0`)+`,"timeout_ms":5}`, "", "IPC-009 timeout_ms:")
	})
}
