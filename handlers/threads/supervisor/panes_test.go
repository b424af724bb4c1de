package supervisor

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// realPane is a pane as tmux has it.
type realPane struct {
	id                              string
	session, windowName, command    string
	windowIndex, paneIndex, inMode  int
	dead, synchronized, takesNoKeys bool
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// listed is what list-panes -a prints.
func listed(panes []realPane) string {
	var b strings.Builder
	for _, p := range panes {
		b.WriteString(strings.Join([]string{special.Replace(p.session), special.Replace(p.windowName), strconv.Itoa(p.windowIndex), strconv.Itoa(p.paneIndex), p.id,
			flag(p.dead), strconv.Itoa(p.inMode), special.Replace(p.command), flag(p.synchronized) + flag(p.takesNoKeys),
			strconv.Itoa(7)}, "|") + "\n")
	}
	return b.String()
}

var special = strings.NewReplacer("\n", "?", "|", "?")

// is reports whether a pane is what a target names.
func (p *realPane) is(to *target) bool {
	return p.session == to.session && (p.windowName == to.window || strconv.Itoa(p.windowIndex) == to.window) && (to.pane < 0 || p.paneIndex == to.pane)
}

// TestOnlyTheNamedPane: whatever sessions, windows and commands are named, a pane is found exactly
// if it is the only one that the target names.
func TestOnlyTheNamedPane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SampledFrom([]string{"a", "b", "0", "1"})
		name := rapid.OneOf(plain, rapid.StringMatching(`[ab01%|\n]{1,12}`))
		var panes []realPane
		for window := range rapid.IntRange(1, 4).Draw(t, "windows") {
			p := realPane{session: name.Draw(t, "session"), windowName: name.Draw(t, "window"), windowIndex: window}
			for p.paneIndex = range rapid.IntRange(1, 2).Draw(t, "panes") {
				p.id, p.command = "%"+strconv.Itoa(len(panes)), name.Draw(t, "command")
				p.dead, p.inMode = rapid.Bool().Draw(t, "dead"), rapid.IntRange(0, 2).Draw(t, "in mode")
				p.synchronized, p.takesNoKeys = rapid.Bool().Draw(t, "synchronized"), rapid.Bool().Draw(t, "takes no keys")
				panes = append(panes, p)
			}
		}
		to := &target{plain.Draw(t, "of session"), plain.Draw(t, "of window"), rapid.IntRange(-1, 1).Draw(t, "of pane")}
		var right []realPane
		for _, p := range panes {
			if p.is(to) {
				right = append(right, p)
			}
		}
		p, ok := to.find(parsePanes(listed(panes)))
		if only := len(right) == 1; only != ok {
			t.Fatalf("found %v, want %v: %+v in %q", ok, only, to, listed(panes))
		}
		if !ok {
			return
		}
		r := right[0]
		want := pane{to.session, special.Replace(r.windowName), strconv.Itoa(r.windowIndex), strconv.Itoa(r.paneIndex), r.id,
			r.dead, r.inMode > 0, special.Replace(r.command), r.synchronized || r.takesNoKeys, 7}
		if p != want {
			t.Fatalf("%+v, want %+v", p, want)
		}
	})
}

func TestLastActivity(t *testing.T) {
	f := func(text string, latest int64, viewed bool) {
		t.Helper()
		if at, ok := lastActivity("%1", text); at != latest || ok != viewed {
			t.Errorf("%q: %d %v", text, at, ok)
		}
	}
	f("", 0, false)
	f("7|%1 \n", 7, true)
	f("7|%1\n9|%1 %2 \n8|%3 %1\n", 9, true)
	f("7|%10 %11\n", 0, false)
	f("7|\n", 0, false)
	f("x|%1\n", 0, false)
	f("%1", 0, false)
}

// FuzzPanes gives every reader of tmux's output any text.
func FuzzPanes(f *testing.F) {
	f.Add("a|b|0|0|%1|0|0|cat|00\n", "a", "b", -1)
	f.Add("a|b|c|0|0|%1|0|0|cat|00\na|c|0|0|%1|1|1|sh|10", "a", "0", 0)
	f.Add("a|b|0|0|%1|0|0|cat\r\n\n|||||||||", "a", "b", 0)
	f.Add("7|%1 %2\n", "%1", "", 0)
	f.Add("tmux 3.3a\n", "", "", 0)
	f.Fuzz(func(t *testing.T, text, session, window string, index int) {
		to := &target{session, window, index}
		p, ok := to.find(parsePanes(text))
		if ok && (p.session != session || p.window != window && p.windowIndex != window) {
			t.Errorf("%+v is not %+v", p, to)
		}
		if _, viewed := lastActivity(session, text); viewed && !strings.Contains(text, session) {
			t.Error("it is not there")
		}
		newEnough(text)
	})
}
