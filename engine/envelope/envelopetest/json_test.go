package envelopetest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"trunkline/engine/envelope"
)

type object = map[string]any

// reporter is what the helpers need of a test; rapid's has no more.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const (
	clock   = "2026-01-02T03:04:05.000000Z"
	idDigit = "00000000000000ff"
)

// spec is the model under the clock and ids of newEngine.
func spec() model { return model{now: clock, id: idDigit, stages: sixStages} }

// newEngine is an engine whose clock stands still and whose ids all have the same digits. The tests
// share it, because what it reuses between calls is part of what is tested.
var newEngine = sync.OnceValue(func() *envelope.Engine {
	return engineAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), idDigit)
})

// laterEngine is another process an hour later: nothing of a reply may depend on when and where it
// is stepped again.
var laterEngine = sync.OnceValue(func() *envelope.Engine {
	return engineAt(time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC), "eeeeeeeeeeeeeeee")
})

func engineAt(now time.Time, digits string) *envelope.Engine {
	return envelope.NewEngine(envelope.Options{
		Now:        func() time.Time { return now },
		NewID:      func(dst []byte) []byte { return append(dst, digits...) },
		StageOrder: slices.Clone(sixStages),
	})
}

// parse reads one JSON object, numbers as their literals.
func parse(t reporter, text string) object {
	t.Helper()
	var m object
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("cannot parse %s: %v", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one value: %s", text)
	}
	return m
}

// print is the compact text of a value.
func print(t reporter, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatalf("cannot print %v: %v", v, err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// short is a text fit for a failure message.
func short(text string) string {
	if len(text) <= 1200 {
		return text
	}
	return text[:800] + " … " + text[len(text)-300:]
}

// with is base with the members of each text laid over it.
func with(t reporter, base object, over ...string) object {
	t.Helper()
	out := clone(base).(object)
	for _, text := range over {
		if text != "" {
			maps.Copy(out, parse(t, text))
		}
	}
	return out
}

// process runs one step of a text that must be taken, checks that a second step changes no byte,
// and gives text and meaning.
func process(t reporter, text string) (string, object) {
	t.Helper()
	out, m, err := parsedStep(t, text)
	if err != nil {
		t.Fatalf("refused: %s %s %s\ninput: %s", err.Code, err.Message, err.Field, short(text))
	}
	again, _, err := laterEngine().Process(nil, []byte(out))
	if err != nil {
		t.Fatalf("refused its own reply: %s %s %s\ninput: %s\nreply: %s", err.Code, err.Message, err.Field, short(text), short(out))
	}
	if string(again) != out {
		t.Fatalf("the second step changes the reply\ninput:  %s\nfirst:  %s\nsecond: %s", short(text), short(out), short(string(again)))
	}
	return out, m
}

// step is one call of the engine.
func step(t reporter, text string) (string, *envelope.Error) {
	t.Helper()
	out, _, err := parsedStep(t, text)
	return out, err
}

// parsedStep is step; it also checks that dst's bytes stay, that src is not written to, and the
// reason beside the reply (§4.2).
func parsedStep(t reporter, text string) (string, object, *envelope.Error) {
	t.Helper()
	src := []byte(text)
	out, bounds, err := newEngine().Process([]byte("before"), src)
	if string(src) != text {
		t.Fatalf("the input was written to: %s became %s", text, src)
	}
	if err != nil {
		return "", nil, err
	}
	body, ok := strings.CutPrefix(string(out), "before")
	if !ok {
		t.Fatalf("the reply does not follow dst: %s", out)
	}
	m := parse(t, body)
	reason := reasonOf(m)
	if !reasons[reason] {
		reason = ""
	}
	if bounds.Exchange() != reason {
		t.Fatalf("bounds = %q, want %q for %s", bounds.Exchange(), reason, body)
	}
	return body, m, nil
}

// reasonOf is the canonical reason of an envelope in either shape.
func reasonOf(m object) string {
	if bounds, ok := m["bounds"].(object); ok && m["identity"] != nil {
		m = bounds
	}
	s, _ := m["terminal_reason"].(string)
	return canonical(s)
}

// diff compares two envelopes by meaning; want may hold "*" for any text.
func diff(want, got object) string {
	return cmp.Diff(want, got, cmp.FilterValues(func(a, b any) bool {
		return a == "*" && is[string](b) || b == "*" && is[string](a)
	}, cmp.Ignore()), cmp.FilterPath(inInterrupt, cmp.Comparer(sameInterrupt)))
}

func inInterrupt(p cmp.Path) bool {
	i, ok := p.Index(-1).(cmp.MapIndex)
	return ok && i.Key().String() == "interrupt"
}

// sameInterrupt takes an absent member and a null one as the same (envelope §3.5: both are
// optional).
func sameInterrupt(a, b any) bool {
	m, ok := a.(object)
	n, also := b.(object)
	if !ok || !also {
		return cmp.Equal(a, b)
	}
	null := func(_ string, v any) bool { return v == nil }
	m, n = maps.Clone(m), maps.Clone(n)
	maps.DeleteFunc(m, null)
	maps.DeleteFunc(n, null)
	return cmp.Equal(m, n)
}

func want(t reporter, input string, want, got object) {
	t.Helper()
	if d := diff(want, got); d != "" {
		t.Errorf("input: %s\n(-want +got)\n%s", short(input), d)
	}
}
