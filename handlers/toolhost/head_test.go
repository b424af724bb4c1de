package toolhost

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/handlers/toolhost/tool"
)

// drawUsual makes a line as nearly all clients write them.
func drawUsual(t *rapid.T) string {
	aids := []string{"AID.NOOP.v1", "AID.NOOP.v1", "AID.COUNT.v1", "AID.SET.v1", "AID.INPUT.v1", "AID.FAIL.v1", "AID.MUTE.v1", "AID.PANIC.v1", "AID.AWAY.v1",
		"AID.SET.AWAY.v1", "AID.WRITE.v1", "AID.EXT.v1", "AID.NOPE.v1", "_health", "_run.open", "_run.close"}
	line := `{"aid":"` + rapid.SampledFrom(aids).Draw(t, "aid") + `"`
	for _, m := range []string{`,"idempotency_key":"k"`, `,"idempotency_key":"l\u006c"`, `,"inputs":{"a":1}`, `,"inputs":{ "a" : 1 }`, `,"input_json":"{\"b\":\"\u00e9\\n\"}"`,
		`,"input_json":" [] "`, `,"ds_state":{"slots":{"6":{"type":"é"},"1":{}}}`, `,"ds_state":{"delta":true,"removed_slots":[6]}`, `,"request_id":"r"`, `,"goal_id":"g"`, `,"aid":"x"`} {
		if rapid.IntRange(0, 9).Draw(t, "with") == 0 {
			line += m
		}
	}
	return line + rapid.SampledFrom([]string{"}", "}", "}", "}", "} ", "}\r", "", ",}"}).Draw(t, "end")
}

// A line that takes every shortcut (the head of the tool before, a bare line, the memo of keys, no
// subscriber) is answered as one that takes none, and leaves the same state.
func TestShortcutsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var lines []string
		for range rapid.IntRange(1, 12).Draw(rt, "lines") {
			line := drawUsual(rt)
			for range rapid.IntRange(1, 3).Draw(rt, "times") {
				lines = append(lines, line)
			}
		}
		enforce := rapid.SampledFrom([]Enforcement{EnforceOn, EnforceOff}).Draw(rt, "leases")
		quick := newRig(t, func(c *Config) { c.EnforceLeases, c.Events = enforce, nil })
		slow := newRig(t, func(c *Config) { c.EnforceLeases = enforce })
		defer quick.srv.Close()
		defer slow.srv.Close()
		p, q := quick.open(Unix), slow.open(Unix)
		defer p.close()
		defer q.close()
		got := p.ask(lines...)
		var want []string
		for _, line := range lines {
			slow.srv.memo = idem.NewMemo()
			want = append(want, q.ask(strings.Replace(line, "{", "{ ", 1)))
		}
		if tokenless(got) != tokenless(strings.Join(want, "\n")) {
			rt.Fatalf("%s\n got %s\nwant %s", strings.Join(lines, "\n"), got, strings.Join(want, "\n"))
		}
		if p.state() != q.state() || quick.runs.Load() != slow.runs.Load() {
			rt.Fatalf("%s\n got %s, %d runs\nwant %s, %d runs", strings.Join(lines, "\n"), p.state(), quick.runs.Load(), q.state(), slow.runs.Load())
		}
		a, b := quick.srv.Stats(), slow.srv.Stats()
		if fmt.Sprint(a.IdempotencyEntries, a.IdempotencyHits, counted(a)) != fmt.Sprint(b.IdempotencyEntries, b.IdempotencyHits, counted(b)) {
			rt.Fatalf("%s\n got %+v\nwant %+v", strings.Join(lines, "\n"), a, b)
		}
	})
}

// counted lists what the tools have counted.
func counted(st Stats) (list []string) {
	for _, t := range st.Tools {
		list = append(list, fmt.Sprint(t.AID, t.OK, t.Fail))
	}
	return list
}

// Only names that every client would spell so have a head, and none that may be an operation.
func TestHeads(t *testing.T) {
	for aid, want := range map[string]string{
		"AID.NOOP.v1": `{"aid":"AID.NOOP.v1"`, "a\"b": "", "a\nb": "", "é": `{"aid":"é"`, "\xff": "", "_x": "", "": "", strings.Repeat("x", maxAID+1): "",
	} {
		if got := string(headOf(aid)); got != want {
			t.Errorf("the head of %q is %q, want %q", aid, got, want)
		}
	}
}

// The limit of a line is that of a bare one too.
func TestBareLineOverLimit(t *testing.T) {
	for limit, want := range map[int]string{21: okReply + "\n" + okReply, 20: fault(errLongLine)} {
		r := newRig(t, func(c *Config) { c.MaxLineBytes = limit })
		if got := r.open(Unix).ask(`{"aid":"AID.NOOP.v1"}`, `{"aid":"AID.NOOP.v1"}`); got != want {
			t.Errorf("limit %d: %s", limit, got)
		}
	}
}

// TestBareLinesAreBounded: bare lines with large replies end a turn as all others do.
func TestBareLinesAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Events = nil })
	defer r.srv.Close()
	p := r.open(Unix)
	defer p.close()
	const line = `{"aid":"AID.NOOP.v1"}`
	p.ask(line)
	text := []byte(`"` + strings.Repeat("x", 300<<10) + `"`)
	p.s.(*session).last.Tool = toolFunc(func(context.Context, *tool.Call) tool.Result { return tool.Result{Output: text} })
	used, out, v := p.s.Feed([]byte(strings.Repeat(line+"\n", 2*maxBare)), nil, connection.Now())
	if want := 4; v != connection.Yield || used != want*(len(line)+1) || bytes.Count(out, []byte("\n")) != want {
		t.Errorf("%d lines taken, %d bytes of replies, verdict %v, want %d lines", used/(len(line)+1), len(out), v, want)
	}
}

// TestKeyUsedOnceIsNotRemembered: only a repetition costs memory for the next one.
func TestKeyUsedOnceIsNotRemembered(t *testing.T) {
	r := newRig(t, nil)
	defer r.srv.Close()
	p := r.open(Unix)
	defer p.close()
	for _, remembered := range []bool{false, true, true} {
		p.ask(`{"aid":"AID.COUNT.v1","idempotency_key":"k"}`)
		name := idem.AppendName(nil, p.s.(*session).principal, []byte("AID.COUNT.v1"), []byte("k"))
		if id := r.srv.memo.Find(name); (id != nil) != remembered {
			t.Errorf("remembered: %v, want %v", id != nil, remembered)
		}
	}
}
