package selector

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func check(t *testing.T, got []byte, want string) {
	t.Helper()
	if got = append(got, '}'); string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if p := jsonx.Check(got, 3); !p.OK() {
		t.Errorf("%s: %v", got, p)
	}
}

// TestWorkedExample is toolhost §9J.
func TestWorkedExample(t *testing.T) {
	run := open(t, &Config{Tools: tools()},
		`{"aid":"_run.open","goal_id":"goal.ERROR_SCAN.v1","candidate_tags":["tag.error"],"run_id":"r1","inputs":{"pattern":"E"}}`)
	check(t, run.AppendOpened(nil), `{"ok":true,"run_header":{"spec_version":"1.4.2","profile_id":"A","run_id":"r1"},"max_steps":64,"max_invalid_picks":8}`)
	st := run.Select(context.Background(), &sessionstate.State{})
	check(t, st.Append(nil), `{"ok":true,"status":"OK","error":"","run_id":"r1","step":0,"selection":{"kind":"PICK","sid":"SID0001","raw":"<PICK><SID0001><END>"},"pick_aid":"AID.ERROR_SCAN.v1","inputs_json":"{\"pattern\":\"E\"}","menu_digest":"6a2e09e536f2bbc2e3a21337899dbb86d9e121d239b02c72196158935b505a66","state_digest":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`)
	if st.Ended != "" || st.ShadowRaw != "" || run.req.GoalID != "goal.ERROR_SCAN.v1" || run.steps != 1 || run.invalid != 0 {
		t.Errorf("%+v, run %+v", st, run)
	}
	check(t, run.AppendClosed(nil), `{"ok":true,"run_id":"r1","steps":1,"invalid_picks":0}`)
}

func TestOpenedHeader(t *testing.T) {
	f := func(members, want string) {
		t.Helper()
		run := open(t, &Config{}, `{"goal_id":"g","run_id":"r",`+members+`}`)
		check(t, run.AppendOpened(nil), `{"ok":true,"run_header":{"spec_version":"1.4.2","profile_id":`+want+`},"max_steps":64,"max_invalid_picks":8}`)
	}
	f(`"profile_id":"B-2"`, `"B-2","run_id":"r"`)
	f(`"request_id":"q\u0041\""`, `"A","run_id":"r","request_id":"qA\""`)
	f(`"request_id":""`, `"A","run_id":"r","request_id":""`)
	f(`"request_id":12`, `"A","run_id":"r","request_id":"12"`)
}

// settled takes one step in which someone chose sel.
func settled(r *Run, sel Selection) Step {
	st := Step{RunID: r.ID(), Number: r.steps, MenuDigest: "m", StateDigest: "s"}
	r.settle(&st, newMenu(r.tools, &stepTags{base: r.tags}), sel)
	st.Inputs = r.inputs
	return st
}

func TestSettle(t *testing.T) {
	const inputs = `{"a":1}`
	f := func(text, want string, steps, invalid int) {
		t.Helper()
		run := open(t, &Config{Tools: tools()}, `{"goal_id":"g","run_id":"r","inputs":`+inputs+`}`)
		sel, _ := parseSelection(text)
		st := settled(run, sel)
		check(t, st.Append(nil), strings.ReplaceAll(want, "$", `"run_id":"r","step":0,"selection":`))
		if run.steps != steps || run.invalid != invalid {
			t.Errorf("%s: %d steps, %d invalid, want %d, %d", text, run.steps, run.invalid, steps, invalid)
		}
	}
	const kept, tail = `"inputs_json":"{\"a\":1}",`, `"menu_digest":"m","state_digest":"s"`
	f("<PICK><SID0001><END>", `{"ok":true,"status":"OK","error":"",${"kind":"PICK","sid":"SID0001","raw":"<PICK><SID0001><END>"},"pick_aid":"AID.NOOP.v1",`+kept+tail+`}`, 1, 0)
	f(`<PICK><SID0001><INP>{"a":2,"_meta":0,"b":[]}</INP><END>`, `{"ok":true,"status":"OK","error":"",${"kind":"PICK","sid":"SID0001","input_patch_json":"{\"a\":2,\"_meta\":0,\"b\":[]}",`+
		`"raw":"<PICK><SID0001><INP>{\"a\":2,\"_meta\":0,\"b\":[]}</INP><END>"},"pick_aid":"AID.NOOP.v1","inputs_json":"{\"a\":2,\"b\":[]}",`+tail+`}`, 1, 0)
	f("<NOOP><END>\n", `{"ok":true,"status":"OK","error":"",${"kind":"NOOP","raw":"<NOOP><END>\n"},`+kept+tail+`,"ended":"noop"}`, 0, 0)
	f("<ASK_SUP><END>", `{"ok":true,"status":"OK","error":"",${"kind":"ASK_SUP","raw":"<ASK_SUP><END>"},`+kept+tail+`,"ended":"ask_sup"}`, 0, 0)
	f("garbage", `{"ok":false,"status":"INVALID_PICK","error":"invalid_pick",${"kind":"INVALID","raw":"garbage"},`+kept+tail+`}`, 1, 1)
	f(`<PICK><SID0002><INP>{"a":2}</INP><END>`, `{"ok":false,"status":"INVALID_PICK","error":"sid_not_in_menu",${"kind":"PICK","sid":"SID0002","input_patch_json":"{\"a\":2}",`+
		`"raw":"<PICK><SID0002><INP>{\"a\":2}</INP><END>"},`+kept+tail+`}`, 1, 1)
	f("<PICK><SID0000><END>", `{"ok":false,"status":"INVALID_PICK","error":"sid_not_in_menu",${"kind":"PICK","sid":"SID0000","raw":"<PICK><SID0000><END>"},`+kept+tail+`}`, 1, 1)
}

// A step keeps its inputs when later steps change those of the run.
func TestStepsKeepTheirInputs(t *testing.T) {
	run := open(t, &Config{Tools: tools()}, `{"goal_id":"g"}`)
	var texts []string
	var steps []Step
	for i := range 3 {
		sel, _ := parseSelection(fmt.Sprintf(`<PICK><SID0001><INP>{"n":%d,"k%d":0}</INP><END>`, i, i))
		st := settled(run, sel)
		steps, texts = append(steps, st), append(texts, string(st.Inputs))
	}
	for i, st := range steps {
		if string(st.Inputs) != texts[i] {
			t.Errorf("inputs of step %d are %s, were %s", i, st.Inputs, texts[i])
		}
	}
	if texts[2] != `{"n":2,"k0":0,"k1":0,"k2":0}` {
		t.Errorf("inputs %s", texts[2])
	}
}

func TestInvalidPicksAreCounted(t *testing.T) {
	run := open(t, &Config{Tools: tools()}, `{"goal_id":"g","run_id":"r"}`)
	for i := range maxInvalidPicks {
		if st := settled(run, Selection{Raw: "x"}); st.Status != tool.InvalidPick || st.Ended != "" || st.Number != i {
			t.Fatalf("invalid pick %d: %+v", i+1, st)
		}
	}
	if st := settled(run, Selection{Kind: Pick, SID: "SID0001"}); st.Status != tool.OK {
		t.Fatalf("a pick between the invalid ones: %+v", st)
	}
	st := settled(run, Selection{Raw: "x"})
	check(t, st.Append(nil), `{"ok":false,"status":"BREAKER_TRIP","error":"max_invalid_picks","run_id":"r","step":9,"inputs_json":"{}","menu_digest":"m","state_digest":"s","ended":"breaker"}`)
	check(t, run.AppendClosed(nil), `{"ok":true,"run_id":"r","steps":10,"invalid_picks":9}`)
}

func TestMaxSteps(t *testing.T) {
	run := open(t, &Config{Tools: tools()}, `{"goal_id":"g","run_id":"r","candidate_tags":["tag.error"]}`)
	var s sessionstate.State
	for i := range maxSteps + 1 {
		s.Set(1, sessionstate.Artifact{Size: int64(i)})
		st := run.Select(context.Background(), &s)
		if i < maxSteps {
			if st.Status != tool.OK || st.Number != i || st.Ended != "" {
				t.Fatalf("step %d: %+v", i, st)
			}
			continue
		}
		want := `{"ok":false,"status":"BREAKER_TRIP","error":"max_steps","run_id":"r","step":64,"inputs_json":"{}","menu_digest":"` + st.MenuDigest + `","state_digest":"` + st.StateDigest + `","ended":"breaker"}`
		check(t, st.Append(nil), want)
	}
	check(t, run.AppendClosed(nil), `{"ok":true,"run_id":"r","steps":64,"invalid_picks":0}`)
}

func TestLoopGuard(t *testing.T) {
	run := open(t, &Config{Tools: tools()}, `{"goal_id":"g","run_id":"r","candidate_tags":["tag.error"]}`)
	step := func(s *sessionstate.State, want string) {
		t.Helper()
		if st := run.Select(context.Background(), s); st.Error != want || (st.Ended == endedBreaker) != (want != "") {
			t.Fatalf("%+v, want %q", st, want)
		}
	}
	one, other := state("1", ""), state("3", "")
	for range maxRepeats {
		step(one, "")
		step(other, "")
	}
	step(state("0", ""), "")
	step(one, "loop_guard")
	check(t, run.AppendClosed(nil), `{"ok":true,"run_id":"r","steps":7,"invalid_picks":0}`)
}

// The state changes the menu: after a scan the report is in it, and after the report it is not.
func TestRunToItsEnd(t *testing.T) {
	list := []tool.Descriptor{d("ERROR_SCAN", "error"), d("NOOP", "meta"), d("REPORT_SUMMARY", "report")}
	run := open(t, &Config{Tools: list}, `{"goal_id":"g"}`)
	step := func(slots, aid, ended string) {
		t.Helper()
		if st := run.Select(context.Background(), state(slots, "")); st.Status != tool.OK || st.PickAID != aid || st.Ended != ended {
			t.Errorf("with %q: %+v, want %q %q", slots, st, aid, ended)
		}
	}
	step("0", "AID.REPORT_SUMMARY.v1", "")
	step("02", "", endedNoop)
}
