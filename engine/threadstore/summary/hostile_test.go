package summary

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestLongText: a text that is too long is cut between two characters. Nothing but a sender or a
// status without bound makes it so long.
func TestLongText(t *testing.T) {
	for pad := range 4 {
		sender := strings.Repeat("x", pad) + strings.Repeat("😀", 2000)
		window := []Message{{Seq: 1, ID: "m", Kind: "chat", Sender: sender, Body: []byte("a")}}
		for _, s := range []Summary{Summarize(window, 1, "active"), Summarize(nil, 0, sender)} {
			checkBounds(t, s)
			if len(s.Text) < maxText-3 || !strings.HasSuffix(s.Text, "😀…") {
				t.Errorf("%d bytes, the end %q", len(s.Text), s.Text[len(s.Text)-8:])
			}
		}
	}
	check(t, "sender", Summarize([]Message{{Seq: 1, Sender: " a\n\u2028b ", Body: []byte("c")}}, 1, ""),
		"No findings reported in 1 message. Last #1 from a b: c")
}

// TestLongWindow: of a window above maxWindow the last messages count.
func TestLongWindow(t *testing.T) {
	window := thread(append(w(report("", "x")), slices.Repeat(w(chat("y")), maxWindow)...)...)
	check(t, "long", Summarize(window, 1001, "active"),
		"Last 1000 of 1001 messages: No findings reported in 1000 messages. Last #1001 from reviewer_agent: y")
}

// TestCountedCommits: the set of commits in a sentence is bounded.
func TestCountedCommits(t *testing.T) {
	var list bytes.Buffer
	for n := range countedCommit + 5 {
		fmt.Fprintf(&list, `,"%x"`, n)
	}
	s := Summarize(thread(report("", "x"), fix(`"commits":[`+list.String()[1:]+`]`), verify("")), 3, "active")
	if want := fmt.Sprintf("0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and %d more.", countedCommit-10); !strings.HasSuffix(s.Text, want) {
		t.Errorf("%q, want %q", s.Text, want)
	}
}

// TestWithoutIdentifiers: messages without identifier are no reply and have none.
func TestWithoutIdentifiers(t *testing.T) {
	window := thread(report(`"finding_id":"F"`, "x"), report(`"finding_id":"G"`, "y"), verify(""))
	for i := range window {
		window[i].ID = ""
	}
	check(t, "no identifiers", Summarize(window, 3, "active"), unsolved, "unspecified: x [#1, open]", "unspecified: y [#2, open]")
}

// TestRepeatedTargets: a fix that names a finding often is kept once.
func TestRepeatedTargets(t *testing.T) {
	tr := newTracker(thread(report("", "x"), fix(`"finding_ids":["m1","m1"],"finding_id":"m1"`), fix(`"finding_id":"m1"`)))
	for i := range tr.window {
		tr.read(i)
	}
	if got := tr.findings[0].pushes; !slices.Equal(got, []int{0, 1}) {
		t.Errorf("pushes %v", got)
	}
}

// TestHostileWindows has windows that cost a careless reader the square of their size or more: with
// that, the test takes far longer than all others.
func TestHostileWindows(t *testing.T) {
	const half = maxWindow / 2
	long := strings.Repeat("z", 100<<10)
	same, other := make([]string, 2000), make([]string, 2000)
	for n := range same {
		same[n], other[n] = `"m1"`, fmt.Sprintf(`"c%d"`, n)
	}
	fill := func(first, second Message) []Message {
		return thread(append(slices.Repeat(w(first), half), slices.Repeat(w(second), half)...)...)
	}
	f := func(what string, window []Message, text, item string) {
		t.Helper()
		s := Summarize(window, uint64(len(window)), "active")
		checkBounds(t, s)
		if s.Text != text || item != "" && s.OpenItems[0] != item {
			t.Errorf("%s: %q %.200q", what, s.Text, s.OpenItems)
		}
	}
	const reported = "500 non-blocking findings reported; "
	task := `"task_id":"` + long + `","file":"` + long + `"`
	f("long tasks", fill(report(task, "x"), fix(task)), reported+"none resolved.",
		"unspecified: x ("+long[:maxField]+"…) [#1, fix pushed]")
	f("repeated targets", fill(report("", "x"), verify(`"finding_ids":[`+strings.Join(same, ",")+`]`)), reported+"1 resolved, 499 open.", "unspecified: x [#2, open]")
	window := fill(report("", "x"), fix(`"commits":[`+strings.Join(other, ",")+`]`))
	window = append(window[1:], e("thread_resolved", "", ""))
	f("commits for all", window, "499 non-blocking findings reported; all 499 resolved after commits c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 1990 more.", "")
	body := "x" + strings.Repeat(" ", 100<<10) + "y\n" + strings.Repeat("z", 100<<10)
	f("long bodies", fill(report("", body), chat(body)), reported+"none resolved.", "unspecified: x y [#1, open]")
	window = fill(report("", "x"), verify(""))
	for n := range window {
		window[n].InReplyTo = fmt.Sprintf("m%d", (n+1)%maxWindow+1)
	}
	f("cycle of replies", window, reported+"1 resolved, 499 open.", "unspecified: x [#2, open]")
}

// TestNothingKept: the summary does not change with the buffers it was made from.
func TestNothingKept(t *testing.T) {
	window := thread(report(`"severity":"high","file":"a"`, "x"), chat("y"))
	s := Summarize(window, 2, "active")
	for _, m := range window {
		clear(m.Body)
		clear(m.Metadata)
	}
	check(t, "kept", s, one+"still open.", "high: x (a) [#1, open]")
}
