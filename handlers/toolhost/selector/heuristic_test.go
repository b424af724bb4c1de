package selector

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func TestHeuristic(t *testing.T) {
	all := []tool.Descriptor{d("ERR", "error"), d("ERR2", "error"), d("FS", "fs"), d("GENESIS.COMPILE_SHARED", "genesis"), d("GENESIS.LOAD_PLUGIN", "genesis"),
		d("GENESIS.WRITE_FILE", "genesis"), d("GPU", "gpu"), d("META", "meta"), d("NET", "net"), d("NOOP", "meta", "error", "gpu", "runtime", "report"),
		d("REP", "report"), d("RUN", "runtime"), d("RUN2", "runtime", "report"), d("SHELL", "shell")}
	f := func(goal string, s *sessionstate.State, without, want string) {
		t.Helper()
		var list []tool.Descriptor
		for _, x := range all {
			if !strings.Contains(" "+without+" ", " "+x.AID[4:len(x.AID)-3]+" ") {
				list = append(list, x)
			}
		}
		var tags []string
		for _, x := range all {
			tags = append(tags, x.Tags...)
		}
		m := newMenu(candidates(list, nil, nil), &stepTags{base: baseTags("", tags)})
		v := viewOf(s)
		sel, got := heuristic(m, goal, &v), "-"
		if it := m.sid(sel.SID); it != nil {
			got = strings.TrimSuffix(it.AID[4:], ".v1")
		}
		if parsed, ok := parseSelection(sel.Raw); got != want || !ok || parsed != sel {
			t.Errorf("%s without %q: %s %+v, want %s", goal, without, got, sel, want)
		}
	}
	const gen = "goal.GENESIS.v1"
	none := state("", "")

	// Rule 1: by stage; a goal that has the name anywhere.
	f(gen, none, "", "GENESIS.WRITE_FILE")
	f("x."+gen, none, "", "GENESIS.WRITE_FILE")
	f(gen, state("6", ""), "", "GENESIS.WRITE_FILE")
	f(gen, state("", "WROTE"), "", "GENESIS.COMPILE_SHARED")
	f(gen, state("0", "COMPILED"), "", "GENESIS.LOAD_PLUGIN")
	f(gen, state("", "OTHER"), "", "ERR")
	f(gen, none, "GENESIS.WRITE_FILE", "ERR")
	f(gen, state("0", "WROTE"), "GENESIS.COMPILE_SHARED", "REP")
	f("goal.genesis", none, "", "ERR")
	// Rule 2.
	f(gen, state("", "LOADED"), "", "RUN")
	f(gen, state("", "LOADED"), "RUN", "RUN2")
	f(gen, state("", "LOADED"), "RUN RUN2", "-")
	f(gen, state("0", "LOADED"), "", "-")
	f("g", state("", "LOADED"), "", "ERR")
	// Rule 3.
	f("g", state("0", ""), "", "REP")
	f("g", state("0", ""), "REP", "RUN2")
	f("g", state("0", ""), "REP RUN2", "ERR")
	f("g", state("02", ""), "", "ERR")
	f("g", state("2", ""), "", "ERR")
	// Rule 4, in its order, and rule 5.
	f("g", none, "", "ERR")
	f("g", none, "ERR", "ERR2")
	f("g", none, "ERR ERR2", "GPU")
	f("g", none, "ERR ERR2 GPU", "FS")
	f("g", none, "ERR ERR2 GPU FS", "SHELL")
	f("g", none, "ERR ERR2 GPU FS SHELL", "NET")
	f("g", none, "ERR ERR2 GPU FS SHELL NET", "META")
	f("g", none, "ERR ERR2 GPU FS SHELL NET META", "-")
}

// TestHeuristicIsSound: whatever is registered, the choice is in the menu, is never the no-op and
// is the same when asked again.
func TestHeuristicIsSound(t *testing.T) {
	tags := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"error", "gpu", "fs", "meta", "report", "runtime", "genesis", "x"}), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		var list []tool.Descriptor
		for _, aid := range []string{"A", "B", "GENESIS.WRITE_FILE", "NOOP", "Z"} {
			if rapid.Bool().Draw(t, aid) {
				list = append(list, d(aid, tags.Draw(t, "tags")...))
			}
		}
		goal := rapid.SampledFrom([]string{"g", genesis, "x" + genesis}).Draw(t, "goal")
		v := viewOf(state(rapid.SampledFrom([]string{"", "0", "02", "06"}).Draw(t, "slots"), rapid.SampledFrom([]string{"", "LOADED", "WROTE"}).Draw(t, "stage")))
		blocked := rapid.SampledFrom([][]string{nil, {"AID.A.v1"}, {"*"}}).Draw(t, "blocked")
		m := newMenu(candidates(list, nil, blocked), &stepTags{baseTags(goal, []string{"tag.error", "tag.gpu"}), v.wantsReport()})
		sel := heuristic(m, goal, &v)
		it := m.sid(sel.SID)
		if sel != heuristic(m, goal, &v) || (sel.Kind == Pick) != (it != nil) || it != nil && it.AID == noopAID {
			t.Fatalf("%+v of %s", sel, m.appendJSON(nil))
		}
	})
}
