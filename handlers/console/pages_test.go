package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
)

// paths are all pages with what each must show.
var paths = []struct{ path, text string }{
	{"", "Highest p99"},
	{"processes?state=running", "10\u202f000 in the table"},
	{"process?pid=" + "%22%3E%3Cscript%3Ewindow.pwned%3D1%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3Dwindow.pwned%3D1%3E%27", "no luck"},
	{"threads?workspace=w", "2 in all"},
	{"thread?id=t", "Earlier messages"},
	{"projects", "2 shown, 2 open"},
	{"project?id=1", "done in 12 ms"},
	{"topics", "there are more than are shown"},
	{"topic?type=a+b", "at most 256"},
	{"connections", "2 shown, 2 fit, 2 open"},
	{"connection?id=http-1", "Streams"},
	{"cluster", "not since this node started"},
	{"slowlog", "1.5 s"},
	{"store", "1\u202f234\u202f567"},
	{"settings", "env X"},
	{"help", "go to the filter"},
}

var (
	scripts = regexp.MustCompile(`<script[^>]*>`)
	inline  = regexp.MustCompile(`<[^>]*\s(?:style|on[a-z]+)\s*=`)
	tables  = regexp.MustCompile(`(?s)<table>(.*?)</table>`)
	heads   = regexp.MustCompile(`<th[ >][^>]*>?`)
)

// TestPages: each page has its policy, its landmarks, tables with captions and scopes, and nothing
// of what it shows became markup.
func TestPages(t *testing.T) {
	r := newRig(t)
	for _, p := range paths {
		w := r.get(root + p.path)
		want(t, w, http.StatusOK, p.text)
		h, body := w.Header(), w.Body.String()
		if h.Get("Content-Security-Policy") != contentSecurity || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", p.path, h)
		}
		if got := scripts.FindAllString(body, -1); len(got) != 1 || got[0] != `<script src="/console/console.js" defer>` {
			t.Errorf("%s: scripts %q", p.path, got)
		}
		if got := inline.FindString(body); got != "" || strings.Contains(body, "<img") || strings.Contains(body, "<style") {
			t.Errorf("%s: inline markup %q", p.path, got)
		}
		for _, landmark := range []string{`<html lang="en">`, `<a class="skip" href="#main">`, `<main id="main"`, `aria-current="page"`, `<nav aria-label="Pages">`, "<h1>"} {
			if strings.Count(body, landmark) != 1 {
				t.Errorf("%s: %q is there %d times", p.path, landmark, strings.Count(body, landmark))
			}
		}
		for _, table := range tables.FindAllString(body, -1) {
			if strings.Count(table, "<caption>") != 1 {
				t.Errorf("%s: a table without a caption: %.200s", p.path, table)
			}
			for _, head := range heads.FindAllString(table, -1) {
				if !strings.Contains(head, `scope="`) {
					t.Errorf("%s: %s has no scope", p.path, head)
				}
			}
		}
		if strings.Contains(tables.ReplaceAllString(body, ""), "<td") {
			t.Errorf("%s: cells without a table", p.path)
		}
	}
}

// TestPagesAsJSON: each page is there as JSON, with the same parameters and no markup.
func TestPagesAsJSON(t *testing.T) {
	r := newRig(t)
	for _, p := range paths {
		name, query, _ := strings.Cut(p.path, "?")
		if name == "" {
			name = overviewPage
		}
		w := r.get(root + name + ".json?" + query)
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || len(got) == 0 || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %.300s", name, w.Code, err, w.Body)
		}
		if strings.Contains(w.Body.String(), "<") {
			t.Errorf("%s: markup in %.300s", name, w.Body)
		}
		if page := r.get(root + p.path).Body.String(); !strings.Contains(page, `href="/console/`+name+`.json`) {
			t.Errorf("%s: the page does not lead to its JSON", name)
		}
	}
	want(t, r.get(root+"process.json?pid=nothing"), 404, `{"error":"not found: process \"nothing\""}`)
	want(t, r.get(root+"nothing.json"), 404, "")
}

// TestLimits has each bound of a parameter at its limit and beyond.
func TestLimits(t *testing.T) {
	r := newRig(t)
	f := func(path string, status int, text string) {
		t.Helper()
		want(t, r.get(root+path), status, text)
	}
	f("processes", 200, "50 shown")
	f(fmt.Sprint("processes?limit=", maxRows), 200, "500 shown")
	f(fmt.Sprint("processes?limit=", maxRows+1), 400, "limit=501 is not from 1 to 500")
	f("processes?limit=1", 200, "1 shown")
	f("processes?limit=0", 400, "limit=0 is not from 1 to 500")
	f("processes?limit=x", 400, "is no number")
	f("processes?limit=-1", 400, "is no number")
	f("processes?after=18446744073709551616", 400, "is no number")
	f("processes?state=SLEEPING", 400, "is not one of NEW, READY, RUNNING, WAITING, BLOCKED, TERMINATED, ZOMBIE")
	f("processes?user="+strings.Repeat("u", maxText), 200, "")
	f("processes?user="+strings.Repeat("u", maxText+1), 400, "at most 1024 bytes")
	f("processes?user=%ff", 400, "not UTF-8")
	f("processes?user=%zz", 400, "cannot read the parameters")
	f("processes?"+strings.Repeat("a", maxForm), 200, "")
	f("processes?"+strings.Repeat("a", maxForm+1), 400, "at most 8192")
	f("topic?type="+strings.Repeat("+x", 5), 200, "")
	types := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprint(&b, "t", i, "+")
		}
		return b.String()
	}
	f("topic?type="+types(maxTailTypes), 200, "")
	f("topic?type="+types(maxTailTypes+1), 400, "1 to 16 types")
	f("topic?type=", 400, "1 to 16 types")
	f("process", 400, "pid is needed")
	f("process?pid=nothing", 404, "process &#34;nothing&#34;")
	f("threads?status=odd", 400, "is not one of")
	f("connections?sort=odd", 400, "is not one of")
	f("connection?id=ipc-2", 404, "is not open")
	f("connection", 404, "is not open")
	f("nothing", 404, "")
}

// TestProcesses: the filter reaches the source with its bounds, and pages join.
func TestProcesses(t *testing.T) {
	r := newRig(t)
	w := r.get(root + "processes?state=ready&user=u&pid=p&limit=7&after=9")
	if got, wanted := r.filter, (ProcessFilter{State: "READY", User: "u", PID: "p", After: 9, Limit: 7, Scan: maxScan}); got != wanted {
		t.Errorf("%+v, want %+v", got, wanted)
	}
	want(t, w, 200, `href="/console/processes?after=16&amp;limit=7&amp;pid=p&amp;state=ready&amp;user=u" rel="next"`)
	want(t, w, 200, `>First page</a>`)
}

// TestThread: without a place the last messages are shown, and pages join.
func TestThread(t *testing.T) {
	r := newRig(t)
	f := func(path string, first, last uint64, earlier, later string) {
		t.Helper()
		var v threadView
		if err := json.Unmarshal(r.get(root+"thread.json?"+path).Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if n := len(v.Messages); n == 0 || v.Messages[0].Seq != first || v.Messages[n-1].Seq != last {
			t.Errorf("%s: messages %d to %d, want %d to %d", path, v.Messages[0].Seq, v.Messages[n-1].Seq, first, last)
		}
		page := r.get(root + "thread?" + path).Body.String()
		if strings.Contains(page, `rel="prev"`) != (earlier != "") || !strings.Contains(page, earlier) || strings.Contains(page, `rel="next"`) != (later != "") || !strings.Contains(page, later) {
			t.Errorf("%s: want %q and %q in %s", path, earlier, later, cutOut(page, `<nav class="pager"`, "</nav>"))
		}
	}
	f("id=t", 71, 120, "after=20", "")
	f("id=t&limit=100", 21, 120, "after=0", "")
	f("id=t&after=20", 21, 70, "after=0", "after=70")
	f("id=t&after=0", 1, 50, "", "after=50")
}

// TestConnections: they are in the order that is asked for, and only those of a protocol.
func TestConnections(t *testing.T) {
	r := newRig(t)
	f := func(query string, ids ...string) {
		t.Helper()
		var v connectionsView
		if err := json.Unmarshal(r.get(root+"connections.json?"+query).Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range v.Connections {
			got = append(got, c.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("%s: %v, want %v", query, got, ids)
		}
	}
	f("", "http-1", "ipc-1")
	f("sort=in", "http-1", "ipc-1")
	f("protocol=ipc", "ipc-1")
	f("protocol=none")
	f("limit=1", "http-1")
	for _, order := range connectionSorts {
		want(t, r.get(root+"connections?sort="+order), 200, `<option selected>`+order)
	}
}

func TestSettings(t *testing.T) {
	r := newRig(t)
	want(t, r.get(root+"settings?q=LEVEL"), 200, "1 of 2 settings")
	want(t, r.get(root+"settings?q=level"), 200, "<td>by a reload</td>")
	want(t, r.get(root+"settings?q=store"), 200, "<td>by a restart, which a new value waits for</td>")
	want(t, r.get(root+"settings?changed=1"), 200, "1 of 2 settings")
	want(t, r.get(root+"settings?changed=1&q=level"), 200, "No setting fits the filter")
}

// TestPartsThatAreNotThere have no page and no place in the navigation.
func TestPartsThatAreNotThere(t *testing.T) {
	r := newRig(t, func(c *Config) {
		s := &c.Source
		s.Projects, s.Project, s.Connections, s.Slow, s.Subscribe, s.Terminate = nil, nil, nil, nil, nil, nil
	})
	for _, path := range []string{"projects", "project?id=1", "connections", "slowlog", "topic?type=a", "topic/live?type=a"} {
		want(t, r.get(root+path), 404, "")
	}
	page := request("GET", root+"projects", nil)
	page.Header.Set("Accept", "text/html")
	want(t, r.do(page), 404, "404: this server serves no projects")
	if body := r.get(root).Body.String(); strings.Contains(body, "/console/projects") || !strings.Contains(body, "/console/threads") {
		t.Error("the navigation is not that of the parts that are there")
	}
}

func TestAssets(t *testing.T) {
	r := newRig(t, withTokens)
	for name, kind := range map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		if w := r.get(root + name); w.Code != 200 || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d %s", name, w.Code, w.Header().Get("Content-Type"))
		}
	}
	for _, name := range []string{"layout.html", "page/console.css", "..%2fpages.go", "console.css/"} {
		if w := r.get(root + name); w.Code == 200 {
			t.Errorf("%s is served", name)
		}
	}
	script := r.get(root + "console.js").Body.String()
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("} {
		if strings.Contains(script, word) {
			t.Errorf("console.js has %s", word)
		}
	}
	if len(script) > 10<<10 {
		t.Errorf("console.js has %d bytes, at most 10 KiB", len(script))
	}
}

func TestTexts(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(seconds(0), "0")
	f(seconds(1.2e-6), "1.2 µs")
	f(seconds(0.0123), "12.3 ms")
	f(seconds(1.5), "1.5 s")
	f(seconds(600), "10 min")
	f(seconds(90000), "25 h")
	f(seconds(864000), "10 d")
	f(size(0), "0 B")
	f(size(1023), "1\u202f023 B")
	f(size(1024), "1 KiB")
	f(size(1.5*(1<<30)), "1.5 GiB")
	f(group("1"), "1")
	f(group("-1234567"), "-1\u202f234\u202f567")
	f(digits(99.96), "100")
	f(digits(10), "10")
	f(digits(0.004), "0")
	f(ago(-2*time.Second), "in 2 s")
	f(ago(0), "now")
	f(ago(59*time.Second), "59 s ago")
	f(ago(59*time.Minute), "59 min ago")
	f(ago(47*time.Hour), "47 h ago")
	f(ago(49*time.Hour), "2 d ago")
	f(indented(json.RawMessage(`{"a":1}`)), "{\n  \"a\": 1\n}")
	f(indented(json.RawMessage(`odd`)), "odd")
	if got := clip(strings.Repeat("é", maxDetail)); len(got) > maxDetail+8 || !strings.HasSuffix(got, "é …") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
	if got := clip(strings.Repeat("x", maxDetail)); len(got) != maxDetail {
		t.Errorf("%d bytes", len(got))
	}
	if got := indented(json.RawMessage(`"` + strings.Repeat("x", maxDocument) + `"`)); !strings.HasSuffix(got, "as JSON has it whole") {
		t.Errorf("%d bytes", len(got))
	}
}

// TestTimeline: entries are in the order of their times; what has none stays behind the one before.
func TestTimeline(t *testing.T) {
	var got []string
	for _, m := range timeline(envelopeOf("x")) {
		got = append(got, m.What+"@"+m.Where+" "+m.Detail)
	}
	if got, want := strings.Join(got, "; "), `received@ ; created@ ; no luck@x ; success@x tokens: 5; step@plan note: "x"; step@ "x"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, odd := range []string{"", "null", "[]", `"x"`, `{"audit":5}`, `{"processing_history":{}}`} {
		if got := timeline(json.RawMessage(odd)); len(got) != 0 || got == nil {
			t.Errorf("%s: %v", odd, got)
		}
	}
	long, _ := json.Marshal(map[string]any{"processing_history": make([]int, maxRows+1)})
	if n := len(timeline(long)); n != maxRows {
		t.Errorf("%d entries, want %d", n, maxRows)
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add([]byte(envelopeOf("x")))
	f.Add([]byte(`{"received_at":"2026-03-01T11:00:00Z","errors":[{"at":5,"error":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := timeline(text); got == nil || len(got) > maxRows {
			t.Errorf("%d entries", len(got))
		}
		p := newProjectView(&ProjectDetail{Events: []json.RawMessage{text}})
		if len(p.Events) > 1 {
			t.Error("more events than lines")
		}
	})
}

func FuzzQuery(f *testing.F) {
	f.Add("limit=5&state=ready&type=a+b&after=7")
	f.Add("limit=%zz;type=%ff")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw)
		if err != nil {
			return
		}
		if n := q.rows(); n < 1 || n > maxRows {
			t.Errorf("%d rows", n)
		}
		if types, err := q.types(); err == nil && (len(types) < 1 || len(types) > maxTailTypes) {
			t.Errorf("%d types", len(types))
		}
		if s := q.oneOf("state", processStates); s != "" && !strings.EqualFold(s, q.text("state")) {
			t.Errorf("state %q", s)
		}
	})
}

// TestSlowLog has its threshold, and is off without one.
func TestSlowLog(t *testing.T) {
	want(t, newRig(t).get(root+"slowlog"), 200, "<p>2 requests took 100 ms or longer; 2 shown.</p>")
	off := newRig(t, func(c *Config) { c.Source.Slow = func() obs.SlowLog { return obs.SlowLog{Total: 3} } })
	want(t, off.get(root+"slowlog"), 200,
		"<p>3 requests were slow; the log is off: admin.slow_threshold_ms is 0; 0 shown.</p>")
}
