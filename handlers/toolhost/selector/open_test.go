package selector

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadOpen(t *testing.T) {
	f := func(members string, change func(*Request)) {
		t.Helper()
		want := Request{GoalID: "g", SpecVersion: "1.4.2", ProfileID: "A"}
		change(&want)
		line := []byte(`{"aid":"_run.open","goal_id":"g"` + members + "}")
		got, why := ReadOpen(line)
		for i := range line {
			line[i] = 0xcc // nothing of the line is kept
		}
		if diff := cmp.Diff(want, got); why != "" || diff != "" {
			t.Errorf("%s: %s\n%s", members, why, diff)
		}
	}
	same := func(*Request) {}
	f(``, same)
	f(`,"spec_version":null,"profile_id":null,"run_id":null,"candidate_tags":null,"control_mode":null,"input_json":null,"inputs":null,"_capabilities":null`, same)
	f(`,"unknown":{"goal_id":1,"goal_id":2},"ds_state":5,"idempotency_key":[]`, same)
	f(`,"spec_version":"1.4.2","profile_id":"prof_2-B","run_id":"a.B_9-"`, func(r *Request) { r.ProfileID, r.RunID = "prof_2-B", "a.B_9-" })
	f(`,"request_id":"r\u00e9\n"`, func(r *Request) { r.RequestID, r.HasRequestID = "r\u00e9\n", true })
	f(`,"request_id":""`, func(r *Request) { r.HasRequestID = true })
	f(`,"request_id":-9223372036854775808`, func(r *Request) { r.RequestID, r.HasRequestID = "-9223372036854775808", true })
	f(`,"candidate_tags":[]`, same)
	f(`,"candidate_tags":["tag.b","","tag.b","\u0041"]`, func(r *Request) { r.CandidateTags = []string{"tag.b", "", "tag.b", "A"} })
	f(`,"control_mode":"FALLBACK_ONLY"`, same)
	f(`,"control_mode":"SHADOW_POLICY"`, func(r *Request) { r.Mode = ShadowPolicy })
	f(`,"control_mode":"BLENDED"`, func(r *Request) { r.Mode = Blended })
	f(`,"control_mode":"POLICY_\u004fNLY"`, func(r *Request) { r.Mode = PolicyOnly })

	// The inputs: exact bytes, or the decoded text without the space around it.
	inputs := func(text string) func(*Request) { return func(r *Request) { r.Inputs = []byte(text) } }
	f(`,"inputs": { "a" : 1.0, "a":"\u0041" } `, inputs(`{ "a" : 1.0, "a":"\u0041" }`))
	f(`,"input_json":" {\"a\" :\t1}\n"`, inputs(`{"a" :	1}`))
	f(`,"input_json":"{\"a\":1}","inputs":{"b":2}`, inputs(`{"a":1}`))
	f(`,"input_json":"","inputs":{"b":2}`, inputs(`{}`))
	f(`,"input_json":" \t\r\n"`, inputs(`{}`))
	f(`,"input_json":null,"inputs":{"b":2}`, inputs(`{"b":2}`))

	f(`,"_capabilities":{}`, same)
	f(`,"_capabilities":{"allowed_tools":null,"blocked_tools":[],"other":1}`, same)
	f(`,"_capabilities":{"allowed_tools":["A*","B"],"blocked_tools":["C"]}`, func(r *Request) { r.Allowed, r.Blocked = []string{"A*", "B"}, []string{"C"} })
	f(`,"_capabilities":{"allowed_tools":5,"\u0061llowed_tools":["A"]}`, func(r *Request) { r.Allowed = []string{"A"} })
}

func TestReadOpenRefuses(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		r, why := ReadOpen([]byte(line))
		if why != want || cmp.Diff(Request{}, r) != "" {
			t.Errorf("%.80s: %q, want %q", line, why, want)
		}
	}
	with := func(members, want string) {
		t.Helper()
		f(`{"goal_id":"g",`+members+`}`, want)
	}
	field := func(members, want string) { t.Helper(); with(members, "invalid field: "+want) }

	f(`{"goal_id":"g"`, "invalid JSON")
	f(`null`, "invalid JSON")
	f(`[]`, "missing aid")
	with(`"goal_id":"h"`, "duplicate key: goal_id")
	with(`"_capabilities":null,"_capabilities":null`, "duplicate key: _capabilities")

	f(`{}`, "invalid field: goal_id: required")
	f(`{"goal_id":null}`, "invalid field: goal_id: required")
	f(`{"goal_id":5}`, "invalid field: goal_id: must be a string")
	f(`{"goal_id":""}`, "invalid field: goal_id: must not be empty")
	f(`{"goal_id":"`+strings.Repeat("g", maxGoalID+1)+`"}`, "invalid field: goal_id: too long")
	f(`{"goal_id":"`+strings.Repeat(`\u00e9`, maxGoalID/2)+`g"}`, "invalid field: goal_id: too long")

	with(`"spec_version":"1.4.3"`, "unsupported spec_version: 1.4.3")
	with(`"spec_version":""`, "unsupported spec_version: ")
	with(`"spec_version":"`+strings.Repeat("é", 200)+`"`, "unsupported spec_version: "+strings.Repeat("é", 128))
	with(`"spec_version":"x`+strings.Repeat("é", 200)+`"`, "unsupported spec_version: x"+strings.Repeat("é", 127))
	field(`"spec_version":1.4`, "spec_version: must be a string")

	profile, id := "profile_id: must be 1..16 bytes of [A-Za-z0-9_-]", "run_id: must be 1..64 bytes of [A-Za-z0-9._-]"
	for _, v := range []string{"", "a.b", "a b", "é", "@", "[", "a\\u0000", strings.Repeat("a", maxProfileID+1)} {
		field(`"profile_id":"`+v+`"`, profile)
	}
	for _, v := range []string{"", "a/b", "a b", "é", "`", "{", strings.Repeat("a", maxRunID+1)} {
		field(`"run_id":"`+v+`"`, id)
	}
	field(`"profile_id":5`, "profile_id: must be a string")
	field(`"run_id":{}`, "run_id: must be a string")

	for _, v := range []string{"null", "1.5", "1e3", "9223372036854775808", "true", "[]", `"` + strings.Repeat("r", maxRequestID+1) + `"`} {
		field(`"request_id":`+v, "request_id: must be a string or integer")
	}
	for _, v := range []string{`"tag"`, `{}`, `[5]`, `["a",null]`, `[["a"]]`} {
		field(`"candidate_tags":`+v, "candidate_tags: must be an array of strings")
	}
	for _, v := range []string{`""`, `"blended"`, `"BLENDED "`, `1`, `[]`} {
		field(`"control_mode":`+v, "control_mode: unknown")
	}
	field(`"input_json":{}`, "input_json: must be a string")
	for _, v := range []string{"[1]", "x", "{", "{}x", "null", `{\"a\":\"\u0001\"}`, strings.Repeat(`{\"a\":`, 33) + "1" + strings.Repeat("}", 33)} {
		field(`"input_json":"`+v+`"`, "input_json: not a JSON object")
	}
	field(`"inputs":[]`, "inputs: must be an object")
	field(`"input_json":"{}","inputs":"x"`, "inputs: must be an object")
	field(`"_capabilities":[]`, "_capabilities: must be an object")
	field(`"_capabilities":{"allowed_tools":"A"}`, "_capabilities: allowed_tools must be an array of strings")
	field(`"_capabilities":{"allowed_tools":[],"blocked_tools":[1]}`, "_capabilities: blocked_tools must be an array of strings")

	// The first in order, types before values.
	f(`{"_capabilities":1,"inputs":1,"control_mode":1,"run_id":1,"goal_id":1,"request_id":[]}`, "invalid field: request_id: must be a string or integer")
	f(`{"_capabilities":1,"inputs":1,"control_mode":1,"run_id":1}`, "invalid field: goal_id: required")
	with(`"_capabilities":1,"inputs":1,"control_mode":1,"spec_version":"2"`, "invalid field: control_mode: unknown")
}

func TestReadOpenAtTheLimits(t *testing.T) {
	f := func(members string, fits bool) {
		t.Helper()
		_, why := ReadOpen([]byte(`{"goal_id":"` + strings.Repeat("g", maxGoalID) + `",` + members + "}"))
		if (why == "") != fits || !fits && !strings.HasSuffix(why, ": exceeds 1MB limit") {
			t.Errorf("%.40s of %d bytes: %q", members, len(members), why)
		}
	}
	f(fmt.Sprintf(`"profile_id":"%s","run_id":"%s","request_id":"%s"`, strings.Repeat("p", maxProfileID), strings.Repeat("r", maxRunID), strings.Repeat("q", maxRequestID)), true)
	f(`"request_id":"`+strings.Repeat(`\u0041`, maxRequestID)+`"`, true)
	text := func(n int) string { return strings.Repeat("x", n) }
	f(`"inputs":{"a":"`+text(maxPart-8)+`"}`, true)
	f(`"inputs":{"a":"`+text(maxPart-7)+`"}`, false)
	f(`"input_json":"{\"a\":\"`+text(maxPart-8)+`\"}"`, true)
	f(`"input_json":"{\"a\":\"`+text(maxPart-7)+`\"}"`, false)
	f(`"candidate_tags":["`+text(maxPart-4)+`"]`, true)
	f(`"candidate_tags":["`+text(maxPart-3)+`"]`, false)
	f(`"_capabilities":{"a":"`+text(maxPart-8)+`"}`, true)
	f(`"_capabilities":{"a":"`+text(maxPart-7)+`"}`, false)
}

func TestOpen(t *testing.T) {
	f := func(r Request, want string) {
		t.Helper()
		run, why := Open(&Config{}, r)
		if why != want || (run == nil) != (why != "") {
			t.Errorf("%+v: %q, want %q", r, why, want)
		}
	}
	good := Request{GoalID: "g", SpecVersion: specVersion, ProfileID: "A", RunID: "r"}
	with := func(change func(*Request)) Request { r := good; change(&r); return r }
	f(good, "")
	f(with(func(r *Request) { r.GoalID = "" }), "invalid field: goal_id: must not be empty")
	f(with(func(r *Request) { r.SpecVersion = "2" }), "unsupported spec_version: 2")
	f(with(func(r *Request) { r.ProfileID = "" }), "invalid field: profile_id: must be 1..16 bytes of [A-Za-z0-9_-]")
	f(with(func(r *Request) { r.RunID = "/" }), "invalid field: run_id: must be 1..64 bytes of [A-Za-z0-9._-]")
}

func TestRunIDs(t *testing.T) {
	cfg := &Config{}
	first, second := open(t, cfg, `{"goal_id":"g"}`).ID(), open(t, cfg, `{"goal_id":"g"}`).ID()
	uuid4 := regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	if first == second || !uuid4.MatchString(first) || !uuid4.MatchString(second) {
		t.Errorf("ids %q and %q", first, second)
	}
	if id := open(t, cfg, `{"goal_id":"g","run_id":"given"}`).ID(); id != "given" {
		t.Errorf("id %q, not the caller's", id)
	}
}

func TestModes(t *testing.T) {
	for i, name := range []string{"FALLBACK_ONLY", "SHADOW_POLICY", "BLENDED", "POLICY_ONLY"} {
		if got := Mode(i).String(); got != name {
			t.Errorf("mode %d is %q, want %q", i, got, name)
		}
	}
}
