package conformance

import (
	"strconv"
	"strings"
	"testing"
)

// TestPayloads4 has the fields of payloads: missing, of another type, in another case (exacta §4,
// §8).
func TestPayloads4(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		n := 0
		f := func(command, payload, field string) {
			t.Helper()
			r := c.ask(command, payload).want("", "IPC-009 "+field+":")
			if r.end.OK || r.end.Error.Message != "The request payload is invalid: "+field+"." {
				t.Errorf("got %s", r.end.line)
			}
			n++
		}
		ids := map[string]string{"GeneratePlan": "intent_id", "ValidatePlan": "plan_id", "ApprovePlan": "plan_id", "RejectPlan": "plan_id", "ExecutePlan": "plan_id",
			"Pause": "execution_id", "Resume": "execution_id", "Cancel": "execution_id"}
		for command, field := range ids {
			f(command, `{}`, field)
			for _, v := range []string{`5`, `null`, `"x"`, `""`, `[]`, `"` + noID + `0"`} {
				f(command, `{"`+field+`":`+v+`}`, field)
			}
			f(command, `{"`+strings.ToUpper(field)+`":"`+noID+`"}`, field)
			f(command, `{"project_id":5,"`+field+`":5}`, "project_id")
			f(command, `{"PROJECT_ID":"`+noID+`","project_id":"x","`+field+`":"`+noID+`"}`, "project_id")
		}
		for _, v := range []string{`5`, `null`, `["x"]`, `{}`, `true`} {
			f("ExtractIntent", `{"user_input":`+v+`}`, "user_input")
			f("ApplyDiffSet", `{"diffs":`+strings.Replace(v, `["x"]`, `["x",5]`, 1)+`}`, "diffs")
		}
		f("ExtractIntent", `{}`, "user_input")
		f("ExtractIntent", `{"User_input":"x"}`, "user_input")
		f("ApplyDiffSet", `{}`, "diffs")
		f("ApplyDiffSet", `{"diffs":[]}`, "diffs")
		for _, v := range []string{`0`, `3601`, `1.5`, `"5"`, `true`, `null`} {
			f("Preview", `{"timeout_seconds":`+v+`}`, "timeout_seconds")
		}
		c.ask("CloseProject", `{"project_id":"x"}`).want("", "IPC-009 project_id:")
		// ids are compared in lower case
		upper := strings.ToUpper(c.project)
		c.ask("Pause", `{"project_id":"`+upper+`","execution_id":"`+noID+`"}`).is("ST-001 ")
	})
}

// TestReopened4_2 repeats requests about a project that was closed and opened again: its events
// before are gone, its counter is not.
func TestReopened4_2(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		c.joined = true
		c.intent("create n.txt")
		closes := c.line(c.id(), "CloseProject", `{"x":[1,2],"y":{}}`)
		c.message(closes).is(`{"closed":true}`)
		r := c.opens(`"stream_seq":5`)
		c.message(strings.Replace(closes, `[1,2],"y":{}`, ` [1, 2.0] ,"y":{}`, 1)).want("", `{"closed":true}`) // it stays open
		for after, code := range map[int]string{3: "IPC-007 ", 4: "{…}", 5: "{…}", 6: "IPC-007 "} {
			if got := c.subscribe(`,"after_stream_seq":` + strconv.Itoa(after)).is(code); code == "{…}" && !strings.Contains(got.outcome(), `"oldest_stream_seq":5,"last_stream_seq":5`) {
				t.Errorf("got %s", got.end.line)
			}
		}
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
		if r.end.Project != "" {
			t.Errorf("got %s", r.end.line)
		}
	})
}
