package sessionstate

import (
	"fmt"
	"strings"
	"testing"
)

// start is the state that most tests begin with.
func start() State {
	var s State
	s.Set(1, Artifact{"text", "one", `{"a":1}`, 7})
	s.Set(6, Artifact{"report", "six", "", 0})
	return s.Clone()
}

func snapshot(s *State) string { return string(s.AppendSnapshot(nil)) }

const (
	ds1 = `"1":{"type":"text","provenance":"one","content_json":"{\"a\":1}","size_bytes":7}`
	ds6 = `"6":{"type":"report","provenance":"six","content_json":"","size_bytes":0}`
)

func TestApply(t *testing.T) {
	f := func(raw string, want ...string) {
		t.Helper()
		s := start()
		next, why := s.Apply([]byte(raw))
		if got, want := snapshot(&next), `{"slots":{`+strings.Join(want, ",")+`}}`; why != "" || got != want {
			t.Errorf("%s: %s %q, want %s", raw, got, why, want)
		}
		if before := start(); snapshot(&s) != snapshot(&before) {
			t.Errorf("%s changed the old state to %s", raw, snapshot(&s))
		}
	}
	empty := func(n int) string {
		return fmt.Sprintf(`"%d":{"type":"","provenance":"","content_json":"","size_bytes":0}`, n)
	}
	typed := func(n int, kind string) string { return strings.Replace(empty(n), `""`, `"`+kind+`"`, 1) }

	// No change.
	f(`null`, ds1, ds6)
	f(`{}`, ds1, ds6)
	f(` {"other":[{"delta":5}],"":null} `, ds1, ds6)
	f(`{"delta":false}`, ds1, ds6)
	f(`{"delta":true}`, ds1, ds6)
	f(EmptyDelta, ds1, ds6)

	// Snapshots.
	f(`{"slots":{}}`)
	f(`{"delta":false,"slots":{}}`)
	f(`{"slots":{"7":{},"0":{}}}`, empty(0), empty(7))
	f(`{"slots":{"6":{"type":"t"}}}`, typed(6, "t"))
	f(`{"slots":{"2":{}},"removed_slots":[2]}`, empty(2))
	f(`{"removed_slots":[6]}`, ds1, ds6)

	// Deltas: set, then remove.
	f(`{"delta":true,"slots":{"6":{"type":"x"},"2":{}}}`, ds1, empty(2), typed(6, "x"))
	f(`{"delta":true,"removed_slots":[6,6,5]}`, ds1)
	f(`{"delta":true,"slots":{"2":{},"6":{"type":"x"}},"removed_slots":[6,1]}`, empty(2))
	f(`{"removed_slots":[6],"slots":{"6":{"type":"x"}},"delta":true}`, ds1)
	f(`{"delta":true,"removed_slots":[-0]}`, ds1, ds6)

	// Unknown members, repeated ones and escapes.
	f(`{"slots":{"3":{"type":"t","size":"x","extra":{"type":1}}}}`, typed(3, "t"))
	f(`{"slots":{"3":{"type":5,"type":"a","type":"b"}}}`, typed(3, "b"))
	f(`{"slots":{"3":5,"3":{"type":"a"},"3":{"type":"b"}}}`, typed(3, "b"))
	f(`{"slots":{"3":{"type":"a"},"3":{}}}`, empty(3))
	f(`{"slots":[],"slots":{"3":{}},"delta":7,"delta":true}`, ds1, empty(3), ds6)
	f(`{"slots":{"\u0033":{"\u0074\u0079\u0070\u0065":"t"}}}`, typed(3, "t"))
	f(`{"\u0073\u006c\u006f\u0074\u0073":{}}`)
	f(`{"slots":{"3":{"type":"\ud800\u0000\ud83d\ude00\n\/"}}}`, typed(3, "\ufffd\\u0000\U0001f600\\n/"))
}

func TestApplySetting(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		s := start()
		next, why := s.ApplySetting([]byte(raw))
		if why != "" || snapshot(&next) != want {
			t.Errorf("%s: %s %q, want %s", raw, snapshot(&next), why, want)
		}
	}
	f(`{"slots":{}}`, `{"slots":{`+ds1+`,`+ds6+`}}`)
	f(`{"slots":{"6":{}}}`, `{"slots":{`+ds1+`,"6":{"type":"","provenance":"","content_json":"","size_bytes":0}}}`)
	f(`{"delta":true,"removed_slots":[1]}`, `{"slots":{`+ds6+`}}`)
}

func TestLimitOfTheResult(t *testing.T) {
	artifact := func(n int) string {
		return `{"type":"ab","provenance":"c","content_json":"` + strings.Repeat("x", n-3) + `"}`
	}
	f := func(s State, raw string, bytes int, ok bool) {
		t.Helper()
		before := s.Bytes()
		next, why := s.Apply([]byte(raw))
		if ok && (why != "" || next.Bytes() != bytes) {
			t.Errorf("%.60s: %d bytes %q, want %d", raw, next.Bytes(), why, bytes)
		}
		if !ok && (why != "exceeds 1MB limit" || next.Bytes() != before) {
			t.Errorf("%.60s: %d bytes %q, want it refused", raw, next.Bytes(), why)
		}
	}
	f(State{}, `{"slots":{"0":`+artifact(MaxBytes)+`}}`, MaxBytes, true)
	f(State{}, `{"slots":{"0":`+artifact(MaxBytes+1)+`}}`, 0, false)
	// Bytes count as they are stored, not as they are spelled.
	f(State{}, `{"slots":{"0":{"content_json":"`+strings.Repeat(`\u0041`, MaxBytes)+`"}}}`, MaxBytes, true)
	f(State{}, `{"slots":{"0":{"content_json":"`+strings.Repeat(`\u0041`, MaxBytes+1)+`"}}}`, 0, false)

	var half State
	half.Set(0, Artifact{Content: strings.Repeat("y", MaxBytes/2)})
	half.Set(1, Artifact{Content: "z"})
	f(half, `{"delta":true,"slots":{"2":`+artifact(MaxBytes/2-1)+`}}`, MaxBytes, true)
	f(half, `{"delta":true,"slots":{"2":`+artifact(MaxBytes/2)+`}}`, 0, false)
	f(half, `{"delta":true,"slots":{"2":`+artifact(MaxBytes/2)+`},"removed_slots":[1]}`, MaxBytes, true)
	f(half, `{"delta":true,"slots":{"2":`+artifact(MaxBytes)+`},"removed_slots":[2]}`, MaxBytes/2+1, true)
	f(half, `{"slots":{"2":`+artifact(MaxBytes)+`}}`, MaxBytes, true)
	// What a repeated slot stated first does not count.
	f(half, `{"slots":{"2":`+artifact(MaxBytes+1)+`,"2":`+artifact(5)+`}}`, 5, true)
}

func TestSharedContentIsCopied(t *testing.T) {
	raw := []byte(`{"slots":{"0":{"type":"abc","content_json":"d\u0065f"}}}`)
	var s State
	next, _ := s.Apply(raw)
	want := snapshot(&next)
	for i := range raw {
		raw[i] = 0xcc
	}
	if got := snapshot(&next); got != want {
		t.Errorf("the state is %q after the request was overwritten, want %q", got, want)
	}
}
