package sessionstate

import (
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		s := start()
		next, why := s.Apply([]byte(raw))
		if why != want {
			t.Errorf("%s: %q, want %q", raw, why, want)
		}
		if next != s {
			t.Errorf("%s is refused but changes the state to %s", raw, snapshot(&next))
		}
	}
	slot := func(key, want string) { t.Helper(); f(`{"slots":{"0":{},"`+key+`":{}}}`, `bad slot "`+want+`"`) }
	number := func(n, want string) { t.Helper(); f(`{"delta":true,"removed_slots":[0,`+n+`]}`, want) }
	member := func(text, want string) {
		t.Helper()
		f(`{"delta":true,"slots":{"0":{"type":"t"},"3":`+text+`}}`, "slot 3: "+want)
	}

	f(`[]`, "must be an object")
	f(`"x"`, "must be an object")
	f(`5`, "must be an object")
	f(`true`, "must be an object")
	f(``, "must be an object")

	f(`{"delta":1}`, "delta must be a boolean")
	f(`{"delta":"true"}`, "delta must be a boolean")
	f(`{"delta":null,"slots":{}}`, "delta must be a boolean")
	f(`{"delta":{}}`, "delta must be a boolean")

	f(`{"slots":[]}`, "slots must be an object")
	f(`{"slots":null}`, "slots must be an object")
	f(`{"delta":true,"slots":"x"}`, "slots must be an object")

	const integers = "removed_slots must be an array of integers"
	f(`{"delta":true,"removed_slots":{}}`, integers)
	f(`{"delta":true,"removed_slots":null}`, integers)
	f(`{"delta":true,"removed_slots":6}`, integers)
	f(`{"slots":{},"removed_slots":["6"]}`, integers)
	number(`"6"`, integers)
	number(`null`, integers)
	number(`true`, integers)
	number(`[6]`, integers)
	number(`6.5`, integers)
	number(`6.0`, integers)
	number(`6e0`, integers)
	number(`9223372036854775808`, integers)
	number(`1e400`, integers)

	slot("8", "8")
	slot("9", "9")
	slot("07", "07")
	slot("-1", "-1")
	slot("-0", "-0")
	slot("+1", "+1")
	slot("1x", "1x")
	slot(" 1", " 1")
	slot("1 ", "1 ")
	slot("", "")
	slot("/", "/")
	slot(":", ":")
	slot("255", "255")
	slot("DS1", "DS1")
	slot("1.0", "1.0")
	slot(`1\u0000`, "1\x00")
	slot(`\u0038`, "8")
	slot(`\\u0037`, `\u0037`)
	slot("\u0661", "\u0661") // a digit, but not one of ours
	number("8", `bad slot "8"`)
	number("-1", `bad slot "-1"`)
	number("9223372036854775807", `bad slot "9223372036854775807"`)
	f(`{"slots":{},"removed_slots":[8]}`, `bad slot "8"`) // judged although a snapshot removes by itself

	member(`[]`, "must be an object")
	member(`null`, "must be an object")
	member(`"x"`, "must be an object")
	member(`{"type":1}`, "type")
	member(`{"type":null}`, "type")
	member(`{"provenance":[]}`, "provenance")
	member(`{"content_json":{"a":1}}`, "content_json")
	member(`{"content_json":null}`, "content_json")
	member(`{"size_bytes":"1"}`, "size_bytes")
	member(`{"size_bytes":-1}`, "size_bytes")
	member(`{"type":"t","type":false}`, "type")
	f(`{"slots":{"3":{},"3":0}}`, "slot 3: must be an object")
	f(`{"delta":true,"slots":{"3":0},"removed_slots":[3]}`, "slot 3: must be an object")
}

func TestFirstRefusalIsNamed(t *testing.T) {
	big := strings.Repeat("x", MaxBytes+1)
	parts := []struct{ delta, slots, removed, slot8, slot5, why string }{
		{"0", "[]", `["x"]`, "", "", "delta must be a boolean"},
		{"true", "[]", `["x"]`, "", "", "slots must be an object"},
		{"true", "", `[9,"x"]`, `,"8":0`, `0`, "removed_slots must be an array of integers"},
		{"true", "", `[9,-4]`, `,"8":0`, `0`, `bad slot "8"`},
		{"true", "", `[9,-4]`, "", `0`, `bad slot "9"`},
		{"true", "", `[1]`, "", `{"size_bytes":"x","content_json":1,"provenance":1,"type":1}`, "slot 2: provenance"},
		{"true", "", `[1,2]`, "", `{"size_bytes":"x","content_json":1}`, "slot 2: provenance"},
	}
	for _, p := range parts {
		slots := p.slots
		if slots == "" {
			slots = `{"5":` + p.slot5 + `,"2":{"size_bytes":-1,"provenance":2}` + p.slot8 + `,"4":{"type":"` + big + `"}}`
		}
		raw := `{"removed_slots":` + p.removed + `,"slots":` + slots + `,"delta":` + p.delta + `}`
		var s State
		if _, why := s.Apply([]byte(raw)); why != p.why {
			t.Errorf("%.80s: %q, want %q", raw, why, p.why)
		}
	}
	var s State
	raw := `{"delta":true,"slots":{"5":{"size_bytes":"x","content_json":1},"4":{"type":"` + big + `"}}}`
	if _, why := s.Apply([]byte(raw)); why != "slot 5: content_json" {
		t.Errorf("wrong member and too large: %q", why)
	}
}

func TestBadSlotTextIsBounded(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		var s State
		if _, why := s.Apply([]byte(`{"slots":{"` + key + `":{}}}`)); why != `bad slot "`+want+`"` {
			t.Errorf("key of %d bytes: %q, want %q", len(key), why, want)
		}
	}
	x := strings.Repeat("x", maxKeyText)
	f(x, x)
	f(x+"y", x)
	f(x[1:]+"\u00e9", x[1:])
	f(strings.Repeat(`\u0041`, maxKeyText+1), strings.Repeat("A", maxKeyText))
	f(strings.Repeat(`\u0041`, 1<<16), strings.Repeat("A", maxKeyText))
	f(strings.Repeat(`\ud83d\ude00`, 1<<16), strings.Repeat("\U0001f600", maxKeyText/4))
	f("a"+strings.Repeat(`\ud83d\ude00`, 1<<16), "a"+strings.Repeat("\U0001f600", maxKeyText/4-1))
}
