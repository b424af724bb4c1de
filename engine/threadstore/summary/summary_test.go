package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// e is an event with members of metadata behind its type.
func e(kind, members, body string) Message {
	if members != "" {
		members = "," + members
	}
	return Message{Kind: "event", Body: []byte(body), Metadata: fmt.Appendf(nil, `{"event_type":%q%s}`, kind, members)}
}

func report(members, body string) Message { return e("finding_reported", members, body) }
func fix(members string) Message          { return e("fix_pushed", members, "pushed") }
func verify(members string) Message       { return e("finding_verified", members, "fine") }
func reject(members string) Message       { return e("finding_rejected", members, "no") }
func chat(body string) Message            { return Message{Kind: "chat", Body: []byte(body)} }

func (m Message) as(id string) Message     { m.ID = id; return m }
func (m Message) to(id string) Message     { m.InReplyTo = id; return m }
func (m Message) kind(kind string) Message { m.Kind = kind; return m }

// thread numbers messages from 1 on. Those without identifier get m and their number.
func thread(window ...Message) []Message {
	for i := range window {
		m := &window[i]
		m.Seq, m.Sender = uint64(i+1), "reviewer_agent"
		if m.ID == "" {
			m.ID = fmt.Sprintf("m%d", i+1)
		}
	}
	return window
}

func check(t *testing.T, what string, got Summary, text string, items ...string) {
	t.Helper()
	if got.Text != text {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got.Text, text)
	}
	if got.OpenItems == nil || !slices.Equal(got.OpenItems, items) {
		t.Errorf("%s: items\ngot  %q\nwant %q", what, got.OpenItems, items)
	}
}

// TestExamples has the summaries of threads §9.
func TestExamples(t *testing.T) {
	all := thread(
		report(`"finding_id":"F1","severity":"high","file":"a.dart","line":42`, "Null fallback missing"),
		fix(`"commit":"abc1234","finding_id":"F1"`),
		report(`"finding_id":"F2","severity":"high"`, "Locale fallback fails"),
		verify(`"finding_id":"F1"`),
		fix(`"commit":"def5678"`),
		verify(`"finding_id":"F2"`),
	)
	check(t, "three", Summarize(all[:3], 3, "active"), "2 blocking findings reported; none resolved.",
		"high: Null fallback missing (a.dart:42) [#1, fix pushed]", "high: Locale fallback fails [#3, open]")
	check(t, "four", Summarize(all[:4], 4, "active"), "2 blocking findings reported; 1 resolved after commit abc1234, 1 open.",
		"high: Locale fallback fails [#3, open]")
	check(t, "six", Summarize(all, 6, "resolved"), "2 blocking findings reported; both resolved after commits abc1234 and def5678.")
	check(t, "the last two", Summarize(all[4:], 6, "resolved"),
		"Last 2 of 6 messages: No findings reported in 2 messages. Last #6 from reviewer_agent: fine")
	check(t, "none", Summarize(nil, 0, "active"), "No messages yet; thread is active.")
}

const (
	one      = "1 blocking finding reported; "
	two      = "2 blocking findings reported; "
	minor    = "1 non-blocking finding reported; "
	minors   = "2 non-blocking findings reported; "
	nothing  = "No findings reported in 1 message. Last #1 from reviewer_agent: "
	open1    = minor + "still open."
	unsolved = minors + "none resolved."
)

// row is a window, what rule of §4.7 it is about, and its summary.
type row struct {
	rule   string
	window []Message
	status string
	text   string
	items  []string
}

func (r row) run(t *testing.T) {
	t.Helper()
	window := thread(r.window...)
	if r.status == "" {
		r.status = "active"
	}
	check(t, r.rule, Summarize(window, uint64(len(window)), r.status), r.text, r.items...)
}

func w(window ...Message) []Message { return window }
func i(items ...string) []string    { return items }

// TestReports is about rules 1 and 2: what opens a finding, and what it is.
func TestReports(t *testing.T) {
	blockers := func(severity string, text, item string) row {
		return row{"2 severity " + severity, w(report(`"severity":`+severity, "x")), "", text, i(item)}
	}
	for _, r := range []row{
		{"1 a chat is no event", w(report("", "x").kind("chat")), "", nothing + "x", i()},
		{"1 a system message is", w(report("", "x").kind("system")), "", open1, i("unspecified: x [#1, open]")},
		{"1 other types are ignored", w(e("finding_seen", "", "x")), "", nothing + "x", i()},
		{"1 no metadata", w(Message{Kind: "event", Body: []byte("x")}), "", nothing + "x", i()},
		{"1 escaped type", w(Message{Kind: "event", Body: []byte("x"), Metadata: []byte(`{"event_typ\u0065":"finding_report\u0065d"}`)}), "",
			open1, i("unspecified: x [#1, open]")},
		{"1 type of a wrong type", w(Message{Kind: "event", Body: []byte("x"), Metadata: []byte(`{"event_type":["finding_reported"]}`)}), "", nothing + "x", i()},
		blockers(`"blocker"`, one+"still open.", "blocker: x [#1, open]"),
		blockers(`"BLOCKING"`, one+"still open.", "blocking: x [#1, open]"),
		blockers(`"Critical"`, one+"still open.", "critical: x [#1, open]"),
		blockers(`"hi\u0067h"`, one+"still open.", "high: x [#1, open]"),
		blockers(`"Medium"`, open1, "medium: x [#1, open]"),
		blockers(`7`, open1, "unspecified: x [#1, open]"),
		blockers(`""`, open1, "unspecified: x [#1, open]"),
		blockers(`" hi\ngh "`, open1, "hi gh: x [#1, open]"),
		{"2 blocking wins over severity", w(report(`"severity":"high","blocking":false`, "x")), "", open1, i("high: x [#1, open]")},
		{"2 blocking without severity", w(report(`"blocking":true`, "x")), "", one + "still open.", i("unspecified: x [#1, open]")},
		{"2 blocking of a wrong type", w(report(`"severity":"high","blocking":"false"`, "x")), "", one + "still open.", i("high: x [#1, open]")},
		{"2 identifier is the message's", w(report(`"finding_id":""`, "x"), report(`"finding_id":5`, "y"), verify(`"finding_id":"m2"`)), "",
			minors + "1 resolved, 1 open.", i("unspecified: x [#1, open]")},
		{"2 the same identifier opens again", w(report(`"finding_id":"F","severity":"high","file":"a"`, "x"), report(`"finding_id":"G"`, "y"),
			verify(`"finding_id":"F"`), report(`"finding_id":"F","severity":"low"`, "z")), "", unsolved,
			i("low: z [#4, open]", "unspecified: y [#2, open]")},
		{"2 commits stay when a finding opens again", w(report(`"finding_id":"F"`, "x"), fix(`"commit":"a"`), report(`"finding_id":"F"`, "x"),
			fix(`"commit":"b"`), verify(``)), "", minor + "resolved after commits a and b.", i()},
		{"2 unknown identifiers have no target", w(report(`"finding_id":"F"`, "x"), verify(`"finding_id":"G"`)), "", open1, i("unspecified: x [#1, open]")},
		{"2 identifiers are compared without escapes", w(report(`"finding_id":"F"`, "x"), verify(`"finding_id":"\u0046"`)), "", minor + "resolved.", i()},
	} {
		r.run(t)
	}
}

// TestTargets is about rule 3.
func TestTargets(t *testing.T) {
	hops := func(n int) []Message { // a reply to a report, with n hops in between
		window := w(report("", "x").as("h0"), report("", "y").as("other"))
		for n := range n {
			window = append(window, chat("on").as(fmt.Sprintf("h%d", n+1)).to(fmt.Sprintf("h%d", n)))
		}
		return append(window, verify("").to(fmt.Sprintf("h%d", n)))
	}
	solved, x, y := minors+"1 resolved, 1 open.", i("unspecified: x [#1, open]"), i("unspecified: y [#2, open]")
	both := append(slices.Clone(x), y...)
	pair := func(ms ...Message) []Message {
		return append(w(report(`"finding_id":"F","task_id":"T","file":"a","line":1`, "x"), report(`"finding_id":"G","task_id":"T","file":"b"`, "y")), ms...)
	}
	tx, ty := "unspecified: x (a:1) [#1, open]", "unspecified: y (b) [#2, open]"
	for _, r := range []row{
		{"3a a list", pair(verify(`"finding_ids":["G","F","G"]`)), "", minors + "both resolved.", i()},
		{"3a both", pair(verify(`"finding_id":"G","finding_ids":["F"]`)), "", minors + "both resolved.", i()},
		{"3a elements of a wrong type", pair(verify(`"finding_ids":[1,["F"],null,"G"]`)), "", solved, i(tx)},
		{"3a unknown ones do not fall through", pair(verify(`"finding_ids":["H"]`).to("m1")), "", unsolved, i(tx, ty)},
		{"3a wins over a reply", pair(verify(`"finding_id":"G"`).to("m1")), "", solved, i(tx)},
		{"3a an empty list names nothing", pair(verify(`"finding_ids":[]`).to("m1")), "", solved, i(ty)},
		{"3a a list of a wrong type", pair(verify(`"finding_ids":"G"`).to("m1")), "", solved, i(ty)},
		{"3b a reply", w(report("", "x"), report("", "y"), verify("").to("m1")), "", solved, y},
		{"3b wins over a task", pair(verify(`"task_id":"T","file":"b"`).to("m1")), "", solved, i(ty)},
		{"3b a reply to a report of a named finding", w(report(`"finding_id":"F"`, "x"), report("", "y"), verify("").to("m1")), "", solved, y},
		{"3b the first report of a chain", w(report("", "x"), report("", "y").to("m1"), chat("?").to("m2"), verify("").to("m3")), "", solved, x},
		{"3b 64 hops", hops(63), "", solved, y},
		{"3b 65 hops", hops(64), "", unsolved, both},
		{"3b out of the window", w(report("", "x"), report("", "y"), verify("").to("m0")), "", unsolved, both},
		{"3b a reply to itself", w(report("", "x"), report("", "y"), verify("").to("m3")), "", unsolved, both},
		{"3b a cycle", w(report("", "x"), report("", "y"), chat("a").to("m4"), chat("b").to("m3"), verify("").to("m4")), "", unsolved, both},
		{"3b a chat with the metadata of a report", w(report("", "x"), report("", "y"), report("", "z").kind("chat").to("m1"), verify("").to("m3")), "", solved, y},
		{"3c a task", pair(report(``, "z"), verify(`"task_id":"T"`)), "", "3 non-blocking findings reported; 2 resolved, 1 open.", i("unspecified: z [#3, open]")},
		{"3c a task and a file", pair(verify(`"task_id":"T","file":"b"`)), "", solved, i(tx)},
		{"3c a task and a line", pair(verify(`"task_id":"T","line":1.0`)), "", solved, i(ty)},
		{"3c another line", pair(verify(`"task_id":"T","file":"a","line":2`)), "", unsolved, i(tx, ty)},
		{"3c a line that a finding does not have", w(report(`"task_id":"T"`, "x"), verify(`"task_id":"T","line":0`)), "", open1, x},
		{"3c a file of a wrong type", pair(verify(`"task_id":"T","file":5,"line":"1"`)), "", minors + "both resolved.", i()},
		{"3c none is possible", w(report(`"task_id":"T"`, "x"), fix(`"task_id":"U"`)), "", open1, x},
		{"3c resolved ones are no target", w(report(`"task_id":"T"`, "x"), verify(``), reject(`"task_id":"T"`)), "", minor + "resolved.", i()},
		{"3c a task of a wrong type", w(report(`"task_id":"T"`, "x"), verify(`"task_id":1`)), "", minor + "resolved.", i()},
		{"3c files are compared without escapes", w(report(`"task_id":"T","file":"a"`, "x"), verify(`"task_id":"\u0054","file":"\u0061"`)), "", minor + "resolved.", i()},
		{"3d a fix is for all that are open", w(report("", "x"), report("", "y"), fix("")), "", unsolved,
			i("unspecified: x [#1, fix pushed]", "unspecified: y [#2, fix pushed]")},
		{"3d verified needs a single one", w(report("", "x"), report("", "y"), verify("")), "", unsolved, both},
		{"3d verified has a single one", w(report("", "x"), report("", "y"), verify(`"finding_id":"m1"`), verify("")), "", minors + "both resolved.", i()},
		{"3d rejected has a single one", w(report("", "x"), reject("")), "", open1, i("unspecified: x [#1, rejected]")},
		{"3d rejected needs a single one", w(report("", "x"), report("", "y"), reject("")), "", unsolved, both},
	} {
		r.run(t)
	}
}

// TestStates is about rule 4.
func TestStates(t *testing.T) {
	f := `"finding_id":"m1"`
	for _, r := range []row{
		{"4 fix pushed", w(report("", "x"), fix(f)), "", open1, i("unspecified: x [#1, fix pushed]")},
		{"4 verified", w(report("", "x"), fix(f), verify(f)), "", minor + "resolved.", i()},
		{"4 rejected is open", w(report("", "x"), fix(f), reject(f)), "", open1, i("unspecified: x [#1, rejected]")},
		{"4 fixed again", w(report("", "x"), fix(`"commit":"a"`), reject(f), fix(`"commit":"b"`), verify(f)), "", minor + "resolved after commits a and b.", i()},
		{"4 rejected behind resolved", w(report("", "x"), verify(f), reject(f)), "", open1, i("unspecified: x [#1, rejected]")},
		{"4 a fix behind resolved", w(report("", "x"), verify(f), fix(f+`,"commit":"a"`)), "", minor + "resolved.", i()},
		{"4 review requested", w(report("", "x"), fix(f), e("re_review_requested", f, "again")), "", open1, i("unspecified: x [#1, fix pushed]")},
		{"4 thread resolved", w(report("", "x"), report("", "y"), e("thread_resolved", "", ""), report("", "z")), "",
			"3 non-blocking findings reported; 2 resolved, 1 open.", i("unspecified: z [#4, open]")},
		{"4 commit and commits", w(report("", "x"), fix(`"commits":["b","c",5,"","b"],"commit":"a"`), verify(f)), "", minor + "resolved after commits a, b and c.", i()},
		{"4 commits of a wrong type", w(report("", "x"), fix(`"commits":"b","commit":["a"]`), verify(f)), "", minor + "resolved.", i()},
		{"4 commits are one line", w(report("", "x"), fix(`"commits":["\n a\tb \u0000"," \n"]`), verify(f)), "", minor + "resolved after commit a b.", i()},
		{"4 commits have 40 bytes", w(report("", "x"), fix(`"commits":["`+strings.Repeat("a", 64)+`","`+strings.Repeat("a", 40)+`","`+strings.Repeat("a", 39)+`é"]`), verify(f)), "",
			minor + "resolved after commits " + strings.Repeat("a", 40) + " and " + strings.Repeat("a", 39) + ".", i()},
	} {
		r.run(t)
	}
}

// TestSentences is about rule 5.
func TestSentences(t *testing.T) {
	blocker, minorOne := report(`"blocking":true`, "x"), report("", "y")
	done := e("thread_resolved", "", "")
	list := func(n int) string { // "c1","c2",…
		var b strings.Builder
		for k := range n {
			fmt.Fprintf(&b, `,"c%d"`, k+1)
		}
		return b.String()[1:]
	}
	const ten = "c1, c2, c3, c4, c5, c6, c7, c8, c9"
	x, y := "unspecified: x [#1, open]", "unspecified: y [#2, open]"
	for _, r := range []row{
		{"5 one open", w(blocker), "", one + "still open.", i(x)},
		{"5 one resolved", w(blocker, done), "", one + "resolved.", i()},
		{"5 two open", w(blocker, blocker), "", two + "none resolved.", i(x, "unspecified: x [#2, open]")},
		{"5 two resolved", w(blocker, blocker, done), "", two + "both resolved.", i()},
		{"5 three resolved", w(blocker, blocker, blocker, done), "", "3 blocking findings reported; all 3 resolved.", i()},
		{"5 some resolved", w(blocker, blocker, verify(`"finding_id":"m2"`), blocker), "", "3 blocking findings reported; 1 resolved, 2 open.",
			i(x, "unspecified: x [#4, open]")},
		{"5 both kinds", w(blocker, minorOne), "", one + "still open. " + minor + "still open.", i(x, y)},
		{"5 kinds have their own commits", w(blocker, minorOne, fix(`"commit":"a"`), fix(`"finding_id":"m2","commit":"b"`), done), "",
			one + "resolved after commit a. " + minor + "resolved after commits a and b.", i()},
		{"5 commits in the order of findings", w(blocker, blocker, fix(`"finding_id":"m2","commit":"b"`), fix(`"finding_id":"m1","commit":"a"`), done), "",
			two + "both resolved after commits a and b.", i()},
		{"5 commits of open findings", w(blocker, blocker, fix(`"finding_id":"m2","commit":"b"`), verify(`"finding_id":"m1"`)), "",
			two + "1 resolved, 1 open.", i("unspecified: x [#2, fix pushed]")},
		{"5 ten commits", w(blocker, fix(`"commits":[`+list(10)+`]`), done), "", one + "resolved after commits " + ten + " and c10.", i()},
		{"5 eleven commits", w(blocker, fix(`"commits":[`+list(11)+`]`), done), "", one + "resolved after commits " + ten + ", c10 and 1 more.", i()},
		{"5 an escalation", w(e("thread_escalated", "", "help")), "", "1 escalation raised. " + nothing + "help", i()},
		{"5 escalations", w(e("thread_escalated", "", "help"), blocker, e("thread_escalated", "", "help")), "",
			one + "still open. 2 escalations raised.", i("unspecified: x [#2, open]")},
		{"5 none", w(chat("a"), chat("b\nc")), "", "No findings reported in 2 messages. Last #2 from reviewer_agent: b", i()},
		{"5 no messages", nil, "closed", "No messages yet; thread is closed.", i()},
	} {
		r.run(t)
	}
	check(t, "5 a part, with findings", Summarize(thread(blocker), 7, "active"), "Last 1 of 7 messages: "+one+"still open.", x)
}

// TestItems is about rule 6.
func TestItems(t *testing.T) {
	escalate, done := e("thread_escalated", "", " help \nme"), e("thread_resolved", "", "")
	const raised = "1 escalation raised. No findings reported in 2 messages. Last #2 from reviewer_agent: "
	help := "escalation: help [#1]"
	for _, r := range []row{
		{"6 file and line", w(report(`"file":"a.go","line":42`, "x")), "", open1, i("unspecified: x (a.go:42) [#1, open]")},
		{"6 line spelled otherwise", w(report(`"file":"a.go","line":4.2e1`, "x")), "", open1, i("unspecified: x (a.go:42) [#1, open]")},
		{"6 file", w(report(`"file":"a.go","line":"42"`, "x")), "", open1, i("unspecified: x (a.go) [#1, open]")},
		{"6 fraction of a line", w(report(`"file":"a.go","line":1.5`, "x")), "", open1, i("unspecified: x (a.go) [#1, open]")},
		{"6 line", w(report(`"line":42`, "x")), "", open1, i("unspecified: x [#1, open]")},
		{"6 blank file", w(report(`"file":" \n","line":42`, "x")), "", open1, i("unspecified: x [#1, open]")},
		{"6 file of two lines", w(report(`"file":"a\n\u001b b"`, "x")), "", open1, i("unspecified: x (a b) [#1, open]")},
		{"6 blocked", w(escalate, chat("a")), "blocked", raised + "a", i(help)},
		{"6 not blocked", w(escalate, chat("a")), "active", raised + "a", i()},
		{"6 resolved later", w(escalate, done), "blocked", raised + "(no text)", i()},
		{"6 resolved earlier", w(done, escalate), "blocked", raised + "help", i("escalation: help [#2]")},
		{"6 behind the findings", w(escalate, report("", "x")), "blocked", open1 + " 1 escalation raised.", i("unspecified: x [#2, open]", help)},
	} {
		r.run(t)
	}
	for _, c := range []struct {
		findings int
		status   string
		last     string
	}{
		{99, "blocked", "escalation: help [#1]"}, {100, "active", "unspecified: x [#101, open]"},
		{100, "blocked", "and 2 more"}, {101, "active", "and 2 more"}, {500, "blocked", "and 402 more"},
	} {
		window := w(escalate)
		for range c.findings {
			window = append(window, report("", "x"))
		}
		got := Summarize(thread(window...), uint64(len(window)), c.status).OpenItems
		if len(got) != maxItems || got[maxItems-1] != c.last || got[maxItems-2] != fmt.Sprintf("unspecified: x [#%d, open]", maxItems) {
			t.Errorf("6 %d findings, %s: %d items, the last two %q", c.findings, c.status, len(got), got[max(0, len(got)-2):])
		}
	}
}

// TestExcerpts is about rule 7.
func TestExcerpts(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		for _, body := range []string{body, string(Clip([]byte(body)))} {
			check(t, fmt.Sprintf("7 %.40q", body), Summarize(thread(chat(body)), 1, "active"), nothing+want)
		}
	}
	long := strings.Repeat("é", 160)
	f("a", "a")
	f("a\nb", "a")
	f("a\r\nb", "a")
	f("a\rb\u2028c\u0085d", "a b c d")
	f(" \t a \u00a0\x00\x1b[31m\u009b\u3000 b ", "a [31m b")
	f("", "(no text)")
	f("\nb", "(no text)")
	f(" \x00\u2029", "(no text)")
	f(long, long)
	f(long+" \t", long)
	f(long+"a", long+"…")
	f(long+" a", long+"…")
	f(long[2:]+"  a", long[2:]+" …")
	f("a\xffb", "a\uFFFDb")
	if got := Clip([]byte(strings.Repeat(" a", 1<<20))); len(got) > 4*(lastExcerpt+2) {
		t.Errorf("a clip of %d bytes", len(got))
	}
	check(t, "7 of an item", Summarize(thread(report("", string(Clip([]byte(long))))), 1, "active"), open1, "unspecified: "+long[:240]+"… [#1, open]")
}
