package envelopetest_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/envelope"
)

// What the engine promises as a piece of Go: replies and errors stay, and goroutines may share it.

// mixedTexts are texts of many lengths and both outcomes, so that reused memory would show.
func mixedTexts(t reporter) []string {
	all := []string{baseText, `{"raw_input":1}`, `{`, `[]`}
	for _, over := range []string{asking, confirming, applyCritic(`{"verdict":"reintent"}`), applyCritic(`{"verdict":"odd"}`), `{"iteration":"x"}`,
		`{"outputs":{"planner":1}}`, `{"llm_call_count":10}`} {
		m := with(t, base(t), over)
		all = append(all, print(t, m), print(t, nest(t, m)))
	}
	return all
}

type answer struct{ out, reason, code, message, field string }

func TestRepliesStay(t *testing.T) {
	engine := newEngine()
	texts := mixedTexts(t)
	call := func(src []byte) (func() answer, answer) {
		out, bounds, err := engine.Process(nil, src)
		read := func() answer {
			if err != nil {
				return answer{"", "", string(err.Code), err.Message, err.Field}
			}
			return answer{out: string(out), reason: bounds.Exchange()}
		}
		then := read()
		then = answer{clip(then.out), clip(then.reason), clip(then.code), clip(then.message), clip(then.field)}
		return read, then
	}
	for _, text := range texts {
		src := []byte(text)
		read, then := call(src)
		clear(src)
		for _, other := range texts {
			call([]byte(other))
		}
		if now := read(); now != then {
			t.Errorf("the reply changed afterwards\ninput: %s\nthen: %v\nnow:  %v", text, then, now)
		}
	}
}

// clip copies, so that a string over reused memory is caught.
func clip(s string) string { return string(append([]byte(nil), s...)) }

func TestSharedEngine(t *testing.T) {
	engine, texts := newEngine(), mixedTexts(t)
	wanted := make([]answer, len(texts))
	call := func(text string) answer {
		out, bounds, err := engine.Process(nil, []byte(text))
		if err != nil {
			return answer{"", "", string(err.Code), err.Message, err.Field}
		}
		return answer{out: string(out), reason: bounds.Exchange()}
	}
	for i, text := range texts {
		wanted[i] = call(text)
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for round := range 200 {
				i := (worker*7 + round) % len(texts)
				if got := call(texts[i]); got != wanted[i] {
					t.Errorf("%s: %v, want %v", texts[i], got, wanted[i])
				}
			}
		})
	}
	group.Wait()
}

// TestZeroOptions: an engine needs no option to work; ids are then random and times the wall
// clock's, in the server's spelling.
func TestZeroOptions(t *testing.T) {
	engine, seen := envelope.NewEngine(envelope.Options{}), map[any]bool{}
	for range 20 {
		out, _, err := engine.Process(nil, []byte(`{"raw_input":"hi"}`))
		if err != nil {
			t.Fatal(err.Message)
		}
		m := parse(t, string(out))
		if m["current_stage"] != "perception" {
			t.Errorf("current_stage = %v", m["current_stage"])
		}
		for key, prefix := range map[string]string{"envelope_id": "env_", "request_id": "req_", "session_id": "sess_"} {
			id := m[key].(string)
			if seen[id] || !regexp.MustCompile("^"+prefix+"[0-9a-f]{16}$").MatchString(id) {
				t.Errorf("%s = %s", key, id)
			}
			seen[id] = true
		}
		at := m["received_at"].(string)
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`).MatchString(at) || !isTime(at) {
			t.Errorf("received_at = %s", at)
		}
	}
}

// TestOptions: the default order and the clock are the caller's; times are written in UTC whatever
// zone the clock has.
func TestOptions(t *testing.T) {
	zone := time.FixedZone("there", -5*3600)
	engine := envelope.NewEngine(envelope.Options{
		Now:        func() time.Time { return time.Date(2026, 1, 1, 22, 4, 5, 1999, zone) },
		NewID:      func(dst []byte) []byte { return append(dst, idDigit...) },
		StageOrder: []string{"x", "y"},
	})
	f := func(text, stage string) {
		t.Helper()
		out, _, err := engine.Process(nil, []byte(text))
		if err != nil {
			t.Fatalf("%s: %s", text, err.Message)
		}
		m := parse(t, string(out))
		if m["current_stage"] != stage || m["received_at"] != "2026-01-02T03:04:05.000001Z" {
			t.Errorf("%s: stage %v at %v", text, m["current_stage"], m["received_at"])
		}
	}
	f(`{"raw_input":"a"}`, "x")
	f(`{"raw_input":"a","outputs":{"x":{}}}`, "y")
	f(`{"raw_input":"a","outputs":{"x":{},"y":{}}}`, "end")
	f(`{"raw_input":"a","stage_order":["z"]}`, "z")
	nested := func(levels int) string {
		return `{"raw_input":"a","v":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	f(nested(jsonx.MaxDepth), "x")
	if _, _, err := engine.Process(nil, []byte(nested(jsonx.MaxDepth+1))); err == nil || err.Code != "parse_error" {
		t.Errorf("one level too many: %v", err)
	}
}
