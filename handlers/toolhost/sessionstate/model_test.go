package sessionstate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/codec/jsonx"
)

// model is the state as a map. What it makes of a request it works out with encoding/json.
type model map[int]Artifact

var (
	integer = regexp.MustCompile(`^-?[0-9]+$`)
	decimal = regexp.MustCompile(`^(-?)([0-9.]+)(?:[eE]([+-]?[0-9]+))?$`)
)

// apply returns what the table of toolhost §3.6 states, and whether the request is valid; it does
// not state why not.
func (m model) apply(raw []byte) (model, bool) {
	if string(bytes.TrimSpace(raw)) == "null" {
		return m, true
	}
	var top, slots map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil {
		return m, false
	}
	text := func(name string) string { return string(bytes.TrimSpace(top[name])) }
	delta := text("delta")
	if delta != "" && delta != "true" && delta != "false" {
		return m, false
	}
	if s := text("slots"); s != "" && (s[0] != '{' || json.Unmarshal(top["slots"], &slots) != nil) {
		return m, false
	}
	removed, ok := modelRemoved(text("removed_slots"))
	if !ok {
		return m, false
	}
	next := model{}
	if delta == "true" || text("slots") == "" {
		for n, a := range m {
			next[n] = a
		}
	}
	for key, value := range slots {
		a, ok := modelArtifact(value)
		if len(key) != 1 || !strings.Contains("01234567", key) || !ok {
			return m, false
		}
		next[int(key[0]-'0')] = a
	}
	if delta == "true" {
		for _, n := range removed {
			delete(next, n)
		}
	}
	total := 0
	for _, a := range next {
		total += len(a.Type) + len(a.Provenance) + len(a.Content)
	}
	if total > 1048576 {
		return m, false
	}
	return next, true
}

func modelRemoved(text string) (numbers []int, ok bool) {
	if text == "" {
		return nil, true
	}
	var elements []json.RawMessage
	if text[0] != '[' || json.Unmarshal([]byte(text), &elements) != nil {
		return nil, false
	}
	for _, e := range elements {
		n, err := strconv.Atoi(string(e))
		if !integer.Match(e) || err != nil || n < 0 || n > 7 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

func modelArtifact(raw json.RawMessage) (a Artifact, ok bool) {
	var members map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		return a, false
	}
	for name, to := range map[string]*string{"type": &a.Type, "provenance": &a.Provenance, "content_json": &a.Content} {
		if v := members[name]; v != nil && (v[0] != '"' || json.Unmarshal(v, to) != nil) {
			return a, false
		}
	}
	v := string(members["size_bytes"])
	if v == "" {
		return a, true
	}
	a.Size, ok = modelSize(v)
	return a, ok
}

// modelSize reckons with fractions, unless the exponent is so large that it alone decides.
func modelSize(v string) (n int64, ok bool) {
	number := decimal.FindStringSubmatch(v)
	if number == nil {
		return 0, false
	}
	if strings.Trim(number[2], "0.") == "" {
		return 0, true
	}
	exponent, err := strconv.Atoi(cmp.Or(number[3], "0"))
	if most := len(v) + 400; err != nil || exponent > most || exponent < -most {
		return 0, number[1] == "" && strings.HasPrefix(number[3], "-")
	}
	exact, _ := new(big.Rat).SetString(v)
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	return whole.Int64(), exact.Sign() >= 0 && whole.IsInt64() && whole.Int64() <= 9007199254740991
}

// state returns the State that holds the same as m.
func (m model) state() (s State) {
	for n, a := range m {
		s.Set(n, a)
	}
	return s.Clone()
}

// differs shows how s and m differ, "" if they do not.
func (m model) differs(s *State) string {
	for n := range Slots {
		a, ok := s.Get(n)
		want, wanted := m[n]
		if ok != wanted || ok && *a != want {
			return fmt.Sprintf("slot %d is %+v, want %+v (%v)", n, a, want, wanted)
		}
	}
	return ""
}

// checkApply applies raw, which is valid JSON, to s and to m and compares them; it returns what
// both became.
func checkApply(t interface{ Fatalf(string, ...any) }, s State, m model, raw []byte) (State, model) {
	before := s
	want, ok := m.apply(raw)
	next, why := s.Apply(raw)
	if s != before {
		t.Fatalf("%q changed the old state", raw)
	}
	if (why == "") != ok {
		t.Fatalf("%q: %q, but the model says %v", raw, why, ok)
	}
	if d := want.differs(&next); d != "" {
		t.Fatalf("%q: %s (%q)", raw, d, why)
	}
	if why != "" && next != s {
		t.Fatalf("%q is refused but the state is another", raw)
	}
	text := next.AppendSnapshot(nil)
	if p := jsonx.Check(text, 3); !p.OK() {
		t.Fatalf("%q leads to a snapshot that is not JSON: %v: %q", raw, p, text)
	}
	var empty State
	again, why := empty.Apply(text)
	if d := want.differs(&again); d != "" || why != "" {
		t.Fatalf("%q: its snapshot %q comes back otherwise: %s %q", raw, text, d, why)
	}
	checkDelta(t, s, next, want)
	return next, want
}

// checkDelta checks that the delta from before to after, written to a clone of before, leads there.
func checkDelta(t interface{ Fatalf(string, ...any) }, before, after State, want model) {
	tool := before.Clone()
	tool, why := tool.Apply(after.AppendSnapshot(nil))
	if why != "" {
		t.Fatalf("a snapshot is refused: %q", why)
	}
	delta := AppendDelta(nil, &before, &tool)
	merged, why := before.Apply(delta)
	if d := want.differs(&merged); d != "" || why != "" {
		t.Fatalf("delta %q leads elsewhere: %s %q", delta, d, why)
	}
	same := want.differs(&before) == ""
	if same != (string(delta) == EmptyDelta) {
		t.Fatalf("delta %q between states that are equal: %v", delta, same)
	}
}

// oneOf draws one of texts.
func oneOf(texts ...string) *rapid.Generator[string] { return rapid.SampledFrom(texts) }

// large makes a few such members exceed the limit.
var large = `"` + strings.Repeat("x", 300<<10) + `"`

func drawArtifact(t *rapid.T) string {
	if rapid.IntRange(0, 30).Draw(t, "bad artifact") == 0 {
		return oneOf("null", "5", "[]", `"x"`).Draw(t, "artifact")
	}
	text := oneOf(`""`, `"t"`, `"t"`, `"p:q|"`, `"{\"a\":1}"`, `"\ud800\u0000\u00e9"`, `"\n\/"`)
	var b []string
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		name := oneOf("type", "provenance", "content_json", `\u0074ype`, "size_bytes", "size_bytes", "other").Draw(t, "name")
		value := text.Draw(t, "value")
		if rapid.IntRange(0, 12).Draw(t, "large") == 0 {
			value = large
		}
		if name == "size_bytes" {
			value = oneOf("0", "7", "7.9", "1e3", "9007199254740991", "5", "6", "-0.0").Draw(t, "size")
		}
		if rapid.IntRange(0, 40).Draw(t, "bad member") == 0 {
			value = oneOf("null", "-1", "9007199254740992", "true", "[]", "1e999").Draw(t, "bad value")
		}
		b = append(b, `"`+name+`":`+value)
	}
	return "{" + strings.Join(b, ",") + "}"
}

func drawRequest(t *rapid.T) string {
	var slots, removed, top []string
	for range rapid.IntRange(0, 5).Draw(t, "slots") {
		key := oneOf("0", "1", "2", "3", "4", "5", "6", "7", `\u0037`).Draw(t, "key")
		if rapid.IntRange(0, 40).Draw(t, "bad key") == 0 {
			key = oneOf("8", "07", "-1", "", " 1").Draw(t, "wrong key")
		}
		slots = append(slots, `"`+key+`":`+drawArtifact(t))
	}
	for range rapid.IntRange(0, 3).Draw(t, "removed") {
		removed = append(removed, oneOf("0", "1", "2", "3", "4", "5", "6", "7", "-0").Draw(t, "number"))
	}
	if rapid.IntRange(0, 20).Draw(t, "bad number") == 0 {
		removed = append(removed, oneOf("8", "-1", "6.0", `"6"`, "null").Draw(t, "wrong number"))
	}
	if d := oneOf("", "true", "true", "true", "false", "null").Draw(t, "delta"); d != "" {
		top = append(top, `"delta":`+d)
	}
	if rapid.IntRange(0, 5).Draw(t, "with slots") > 0 {
		top = append(top, `"slots":{`+strings.Join(slots, ", ")+`}`)
	}
	if rapid.Bool().Draw(t, "with removed") {
		top = append(top, `"removed_slots":[`+strings.Join(removed, ",")+`]`)
	}
	return "{" + strings.Join(rapid.Permutation(top).Draw(t, "order"), " , ") + "}"
}

func TestApplyAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := State{}, model{}
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			s, m = checkApply(t, s, m, []byte(drawRequest(t)))
		}
	})
}

func TestToolWritesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot := rapid.IntRange(0, Slots-1)
		artifact := rapid.Custom(func(t *rapid.T) Artifact {
			text := oneOf("", "a", "b\n")
			return Artifact{text.Draw(t, "type"), text.Draw(t, "prov"), text.Draw(t, "content"), int64(rapid.IntRange(0, 2).Draw(t, "size"))}
		})
		session, m := State{}, model(rapid.MapOf(slot, artifact).Draw(t, "state"))
		session = m.state()
		tool := session.Clone()
		for range rapid.IntRange(0, 6).Draw(t, "writes") {
			n := slot.Draw(t, "slot")
			if rapid.Bool().Draw(t, "remove") {
				tool.Remove(n)
				delete(m, n)
				continue
			}
			a := artifact.Draw(t, "artifact")
			tool.Set(n, a)
			m[n] = a
		}
		delta := AppendDelta(nil, &session, &tool)
		caller, why := session.Apply(delta)
		if d := m.differs(&caller); d != "" || why != "" {
			t.Fatalf("delta %s: %s %q", delta, d, why)
		}
	})
}
