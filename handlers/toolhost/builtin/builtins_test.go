package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

// TestDescriptors is the table of toolhost §4.7 for the tools that are not about memory.
func TestDescriptors(t *testing.T) {
	b := newBench(t)
	f := func(aid, name string, deterministic bool, effects, tags, replay string, tier int, fast, hidden bool) {
		t.Helper()
		tl, ok := b.byID[aid]
		got := fmt.Sprint(tl.AID, tl.Name, tl.Deterministic, tl.SideEffects, tl.Tags, tl.ReplayInputs, tl.Tier, tl.Fast, tl.Hidden, tl.External)
		want := fmt.Sprint(aid, name, deterministic, strings.Fields(effects), strings.Fields(tags), strings.Fields(replay), tier, fast, hidden, false)
		if !ok || got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	const in, out = "filesystem_read", "filesystem_write"
	f("AID.NOOP.v1", "noop", true, "none", "tag.meta", "", 0, true, false)
	f("AID.ASK_SUP.v1", "ask_user_for_clarification", true, "none", "tag.meta", "", 0, true, false)
	f("AID.ERROR_SCAN.v1", "error_scan_csv", true, in, "tag.log tag.scan tag.error", "input_path_fingerprint", 0, false, false)
	f("AID.REPORT_SUMMARY.v1", "report_summary", true, "none", "tag.report tag.error", "", 0, false, false)
	f("AID.FILE.READ.v1", "file_read", true, in, "tag.fs tag.meta", "path_fingerprint", 0, false, false)
	f("AID.FILE.WRITE.v1", "file_write", false, out, "tag.fs tag.meta", "", 1, false, false)
	f("AID.PROC.SELF_METRICS.v1", "proc_self_metrics", false, "process_introspection", "tag.meta tag.debug tag.ops", "", 2, false, false)
	f("AID.HASH.DIGEST.v1", "hash_digest", true, in, "tag.meta tag.hash", "", 0, false, false)
	f("AID.TEST.ECHO.v1", "Test Echo Tool", true, "none", "tag.test", "", 0, true, true)
}

func TestBuiltinsAreSortedAndDistinct(t *testing.T) {
	var ids []string
	for _, tl := range Builtins(newBench(t).env) {
		ids = append(ids, tl.AID)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("not sorted, or one twice: %v", ids)
	}
}

func TestNoop(t *testing.T) {
	b := newBench(t)
	if s := b.want("AID.NOOP.v1", `{"any":[1]}`, ""); *s != (sessionstate.State{}) {
		t.Errorf("it wrote the state: %+v", s)
	}
}

func TestAskSup(t *testing.T) {
	b := newBench(t)
	for _, input := range []string{`{}`, `{"q": "wh\u0000y?", "n":1.50}`, `{"ö":1}`} {
		s := b.want("AID.ASK_SUP.v1", input, input)
		b.wantSlot(s, 1, sessionstate.Artifact{Type: "ask_sup", Provenance: "ask_sup", Content: input, Size: int64(len(input))})
	}
}

// TestInputIsNotKept: the input is lent, and the output belongs to the caller.
func TestInputIsNotKept(t *testing.T) {
	b := newBench(t)
	f := func(aid string, slot int) {
		t.Helper()
		input, s := []byte(`{"x":1}`), new(sessionstate.State)
		call := callOf(aid, input, s)
		r := b.byID[aid].Run(t.Context(), call)
		before, _ := s.Get(slot)
		kept := before.Content
		clear(input)
		clear(r.Output)
		if after, _ := s.Get(slot); strings.Contains(kept, "\x00") || after.Content != kept {
			t.Errorf("%s keeps what it was lent: %q", aid, after.Content)
		}
	}
	f("AID.ASK_SUP.v1", 1)
	f("AID.TEST.ECHO.v1", 6)
}

func TestEcho(t *testing.T) {
	b := newBench(t)
	s := b.want("AID.TEST.ECHO.v1", `{"x":1}`, `{"ok":true}`) // toolhost §9 A
	b.wantSlot(s, 6, sessionstate.Artifact{Type: "text", Provenance: "test_plugin", Content: `{"echo":{"x":1}}`, Size: 16})
	sha, fast := s.Digest()
	if string(sha[:]) != "d48bf0e2ff4d4de091d479f5a310d29e8560c7744c7a1695d86c0edb23d2baab" || string(fast[:]) != "6b32d1d3e296fab8" {
		t.Errorf("digest %s, fast %s", sha, fast)
	}
	s = b.want("AID.TEST.ECHO.v1", `{"k": "v"}`, `{"ok":true}`) // toolhost §9 C
	b.wantSlot(s, 6, sessionstate.Artifact{Type: "text", Provenance: "test_plugin", Content: `{"echo":{"k": "v"}}`, Size: 19})
}

func TestArgs(t *testing.T) {
	f := func(input, text string, n int64, flag bool) {
		t.Helper()
		a := pick([]byte(input), "text", "n", "flag")
		got, ok := a.text("text")
		if !ok {
			got = "-"
		}
		if got != text || a.integer("n", 7) != n || a.boolean("flag", true) != flag {
			t.Errorf("%s: got %q %d %v", input, got, a.integer("n", 7), a.boolean("flag", true))
		}
	}
	f(`{}`, "-", 7, true)
	f(`{"text":1,"n":"1","flag":"false"}`, "-", 7, true)
	f(`{"text":null,"n":null,"flag":null}`, "-", 7, true)
	f(`{"text":["a"],"n":[1],"flag":{}}`, "-", 7, true)
	f(`{"text":"a","n":1,"flag":false}`, "a", 1, false)
	f(`{"te\u0078t":"a\u0000\ud800","\u006e":3,"other":{"n":4}}`, "a\x00�", 3, true)
	f(`{"text":"a","text":"b","n":1,"n":true}`, "b", 7, true) // the last counts, whatever it is
	f(`{"n":3.0}`, "-", 3, true)
	f(`{"n":3e2}`, "-", 300, true)
	f(`{"n":3.5}`, "-", 7, true)
	f(`{"n":-9223372036854775808}`, "-", -9223372036854775808, true)
	f(`{"n":9223372036854775808}`, "-", 7, true)
	f(`{"`+strings.Repeat(`\u0074`, 40)+`":1,"n":2}`, "-", 2, true)
}
