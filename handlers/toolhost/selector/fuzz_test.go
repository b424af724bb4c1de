package selector

import (
	"bytes"
	"encoding/json"
	"testing"

	"trunkline/codec/jsonx"
)

func FuzzParseSelection(f *testing.F) {
	for _, text := range []string{
		"", "<NOOP><END>", "\n <NOOP><END>\r\n", "<ASK_SUP> <END>", "<PICK><SID0007><END>", "<PICK><SID7><END>", "<PICK><SID0007>ok<END>",
		"<PICK><SID0007><INP64>eyJhIjoxfQ==</INP64><END>", "<PICK><SID0007><INP>[1]</INP><END>", `<PICK><SID0007><INP>{"a":"</INP>"}</INP><END>`,
		"<PICK><SID0007><INP></INP><END>", "<PICK><SID0007><INP64>e3 0=</INP64> <END>", "<PICK><SID0007><INP>{\"\xff\":1}</INP><END>",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkSelection(t, text)
		s, _ := parseSelection(text)
		if b := s.appendJSON(nil); !jsonx.Check(b, 2).OK() {
			t.Fatalf("%q is written as %q", text, b)
		}
	})
}

func FuzzReadOpen(f *testing.F) {
	for _, text := range []string{
		`{"goal_id":"g"}`, `{"aid":"_run.open","goal_id":"goal.ERROR_SCAN.v1","candidate_tags":["tag.error"],"run_id":"r1","inputs":{"pattern":"E"}}`,
		`{"goal_id":"g","input_json":" {\"a\" : 1} ","_capabilities":{"allowed_tools":["A*"],"blocked_tools":["A.B"]}}`, `{"goal_id":5}`, `[]`, `null`, `x`,
		`{"goal_id":"g","request_id":12,"control_mode":"BLENDED","spec_version":"1.4.2","profile_id":"B"}`, `{"goal_id":"g","goal_id":"h"}`,
		`{"goal_id":"g","spec_version":"1.4.3"}`, `{"goal_id":"\ud800","candidate_tags":["\u0000",""],"inputs":null}`, `{"goal\u005fid":"g","run_id":""}`,
	} {
		f.Add([]byte(text), []byte(`{"a":{"b":[1.0]},"_system":1}`))
	}
	f.Fuzz(func(t *testing.T, line, patch []byte) {
		r, why := ReadOpen(line)
		if why != "" {
			return
		}
		if !json.Valid(line) || !jsonx.Check(r.Inputs, maxDepth).OK() && r.Inputs != nil {
			t.Fatalf("%q gives inputs %q", line, r.Inputs)
		}
		run, why := Open(&Config{Tools: tools()}, r)
		if why != "" {
			t.Fatalf("%q is read but not opened: %s", line, why)
		}
		for _, b := range [][]byte{run.AppendOpened(nil), run.AppendClosed(nil)} {
			if b = append(b, '}'); !jsonx.Check(b, 3).OK() {
				t.Fatalf("%q answers %q", line, b)
			}
		}
		if isObject(string(bytes.TrimFunc(patch, isSpace))) {
			checkMerge(t, run.inputs, patch)
		}
	})
}
