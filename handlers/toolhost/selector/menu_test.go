package selector

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func TestMenu(t *testing.T) {
	list := []tool.Descriptor{d("A", "x"), d("B", "y", "x"), d("C", "z"), d("NOOP", "meta"), d("R", "report", "meta")}
	f := func(tags string, report bool, allowed, blocked, want string) {
		t.Helper()
		st := stepTags{strings.Fields(tags), report}
		var got []string
		for _, it := range newMenu(candidates(list, strings.Fields(allowed), strings.Fields(blocked)), &st) {
			got = append(got, it.sid[3:]+strings.TrimSuffix(it.AID[4:], ".v1"))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("tags %q %v, allowed %q, blocked %q: %s, want %s", tags, report, allowed, blocked, s, want)
		}
	}
	f("tag.meta", false, "", "", "0001NOOP 0002R")
	f("tag.meta tag.x", false, "", "", "0001A 0002B 0003NOOP 0004R")
	// AID.NOOP.v1 comes last when no tag brings it in, and once in any case.
	f("", false, "", "", "0001NOOP")
	f("tag.x tag.z", false, "", "", "0001A 0002B 0003C 0004NOOP")
	f("tag.x", true, "", "", "0001A 0002B 0003R 0004NOOP")
	f("tag.X x", false, "", "", "0001NOOP")
	// Capabilities leave gaps.
	f("tag.x tag.z", false, "AID.B.v1 AID.C.v1", "", "0002B 0003C")
	f("tag.x tag.z", false, "", "AID.A.v1 AID.NOOP.v1", "0002B 0003C")
	f("tag.x tag.z", false, "AID.*", "AID.B*", "0001A 0003C 0004NOOP")
	f("tag.x tag.z", false, "AID.B", "", "")
	f("tag.x tag.z", false, "*", "*", "")
	f("tag.x tag.z", false, "AID.B.v1", "AID.B.v1", "")
	f("tag.x tag.z", false, "", "A*.v1 *.v1", "0001A 0002B 0003C 0004NOOP")
	list = list[:3]
	f("tag.z", false, "", "", "0001C")
	f("", false, "", "", "")
}

func TestMenuIsBounded(t *testing.T) {
	f := func(n, want int) {
		t.Helper()
		list := make([]tool.Descriptor, n)
		for i := range list {
			list[i] = d(fmt.Sprintf("T%05d", i), "x")
		}
		m := newMenu(candidates(append(list, d("NOOP")), nil, nil), &stepTags{base: []string{"tag.x"}})
		if last := m[len(m)-1].sid; len(m) != want || last != fmt.Sprintf("SID%04d", want) {
			t.Errorf("%d tools and no-op give %d items, the last %s, want %d", n, len(m), last, want)
		}
	}
	f(maxMenu-1, maxMenu)
	f(maxMenu, maxMenu)
	f(maxMenu+1, maxMenu)
}

func TestMenuText(t *testing.T) {
	f := func(list []tool.Descriptor, text, shown string) {
		t.Helper()
		m := newMenu(candidates(list, nil, []string{"AID.B.v1"}), &stepTags{base: []string{"tag.meta", "tag.x"}})
		sum := sha256.Sum256([]byte(text))
		if got := m.digest(); got != hex.EncodeToString(sum[:]) {
			t.Errorf("digest %s is not that of %s", got, text)
		}
		if got := string(m.appendJSON(nil)); got != shown {
			t.Errorf("shown as %s, want %s", got, shown)
		}
	}
	f(nil, "", "[]")
	f([]tool.Descriptor{d("A", "x", "b", "a"), d("B", "x"), d("NOOP")}, "SID0001=AID.A.v1:tag.a,tag.b,tag.x|SID0003=AID.NOOP.v1:",
		`[{"sid":"SID0001","aid":"AID.A.v1","name":"a","tags":["tag.x","tag.b","tag.a"]},{"sid":"SID0003","aid":"AID.NOOP.v1","name":"noop","tags":[]}]`)
}

func TestGoalContext(t *testing.T) {
	f := func(goal, candidates string, s *sessionstate.State, want string) {
		t.Helper()
		v := viewOf(s)
		tags := stepTags{baseTags(goal, strings.Fields(candidates)), v.wantsReport()}
		if got := string(appendGoal(nil, goal, &v, &tags)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, tag := range tags.all() {
			if !tags.has(tag) {
				t.Errorf("%s: %s is there and not there", want, tag)
			}
		}
		if tags.has("tag.absent") || tags.has(tagReport) != strings.HasSuffix(want+"|", "|"+tagReport+"|") && !strings.Contains(want, "|"+tagReport+"|") {
			t.Errorf("%s: %+v", want, tags)
		}
	}
	f("g", "", state("", ""), "g|FLAGS:DS0=0;DS2=0;DS6=0;DS7=0;DS6_STAGE=;|tag.meta")
	f("g", "tag.z tag.a tag.z tag.meta", state("12345", ""), "g|FLAGS:DS0=0;DS2=1;DS6=0;DS7=0;DS6_STAGE=;|tag.a|tag.meta|tag.z")
	f("goal.GENESIS.X", "tag.z", state("67", "WROTE"), "goal.GENESIS.X|FLAGS:DS0=0;DS2=0;DS6=1;DS7=1;DS6_STAGE=WROTE;|tag.genesis|tag.meta|tag.runtime|tag.z")
	f("my.goal.GENESIS", "", state("", ""), "my.goal.GENESIS|FLAGS:DS0=0;DS2=0;DS6=0;DS7=0;DS6_STAGE=;|tag.meta")
	f("g", "tag.z", state("0", ""), "g|FLAGS:DS0=1;DS2=0;DS6=0;DS7=0;DS6_STAGE=;|tag.meta|tag.report|tag.z")
	f("g", "tag.report", state("0", ""), "g|FLAGS:DS0=1;DS2=0;DS6=0;DS7=0;DS6_STAGE=;|tag.meta|tag.report")
	f("g", "", state("02", ""), "g|FLAGS:DS0=1;DS2=1;DS6=0;DS7=0;DS6_STAGE=;|tag.meta")
}

func TestStage(t *testing.T) {
	f := func(content, want string) {
		t.Helper()
		var s sessionstate.State
		s.Set(6, sessionstate.Artifact{Content: content})
		if v := viewOf(&s); v.stage != want || !v.ds6 {
			t.Errorf("%q is at stage %q, want %q", content, v.stage, want)
		}
	}
	f(`{"stage":"WROTE"}`, "WROTE")
	f(` {"a":[{"stage":"X"}],"st\u0061ge":"\u0041\n"} `, "A\n")
	f(`{"stage":"A","stage":"B"}`, "B")
	f(`{"stage":"A","stage":5}`, "")
	f(`{"stage":null}`, "")
	f(`{"Stage":"A"}`, "")
	f(`["stage","A"]`, "")
	f(`"stage"`, "")
	f(`{"stage":"A"`, "")
	f(`{'stage':'A'}`, "")
	f(strings.Repeat("[", 200), "")
	f("", "")
}
