package envelopetest_test

import (
	"sync"
	"testing"
)

// What the engine promises as a piece of Go: replies and errors stay, and goroutines may share it.

// texts of many lengths and both outcomes, so that reused memory would show.
func mixedTexts(t reporter) []string {
	all := []string{baseText, `{"raw_input":1}`, `{`, `[]`}
	for _, over := range []string{asking, confirming, judge(`{"verdict":"reintent"}`), judge(`{"verdict":"odd"}`), `{"iteration":"x"}`,
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
