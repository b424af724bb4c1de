package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/fuzz/browser"
	"trunkline/handlers/ipc/client"
)

// screensDir is the variable that names a directory for pictures of all pages, for people to look
// at.
const screensDir = "TRUNKLINE_TEST_SCREENS"

// hostilePID runs where text is taken for markup.
const hostilePID = `<script>window.pwned=1</script><img src=x onerror=window.pwned=1>`

// consoleBrowser looks at the console of a server.
type consoleBrowser struct {
	*browser.Browser
	t    *testing.T
	base string
}

// TestConsoleInABrowser shows all pages to a browser.
func TestConsoleInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run starts no browser")
	}
	b := browser.Start(t)
	for name, f := range map[string]func(*consoleBrowser){"pages": (*consoleBrowser).pages, "live": (*consoleBrowser).live, "operator": (*consoleBrowser).operates} {
		t.Run(name, func(t *testing.T) { f(&consoleBrowser{b.On(t), t, ""}) })
	}
}

// open loads a page of the console and checks that nothing of it failed.
func (b *consoleBrowser) open(path string) {
	b.t.Helper()
	b.Open(b.base + path)
	b.Wait(`document.readyState === "complete"`)
	b.quiet(path)
}

// quiet checks that the browser has no complaint, and that no text became markup.
func (b *consoleBrowser) quiet(path string) {
	b.t.Helper()
	for _, e := range b.Log() {
		b.t.Errorf("%s: console: %s", path, e.Message)
	}
	if b.Eval(`window.pwned === undefined && document.querySelectorAll("img, style, iframe, script:not([src='/console/console.js'])").length === 0`) != true {
		b.t.Errorf("%s: text became markup", path)
	}
}

// pages: each page is shown without an error, in both schemes, and a narrow window has all of it.
func (b *consoleBrowser) pages() {
	i := startEverywhere(b.t)
	b.base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	fill(b.t, c, 60)
	if _, err := c.CreateProcess(b.t.Context(), client.CreateProcess{PID: hostilePID, UserID: hostilePID}); err != nil {
		b.t.Fatal(err)
	}
	p := i.dialProjects("unix", strings.TrimPrefix(i.addr("exacta"), "unix://"))
	p.open(newProject(b.t))
	intent := p.must("ExtractIntent", `"user_input":"create file a.txt; create file b.txt"`)["intent"].(map[string]any)
	p.must("GeneratePlan", field("intent_id", intent["id"]))

	thread := b.thread(i)

	b.Resize(1280, 900)
	b.Open(b.base + "/") // a browser is led to the console
	b.Wait(`location.pathname === "/console/" && document.querySelector("h1").textContent === "Overview"`)
	list := []string{"/console/", "/console/processes", "/console/processes?pid=script", "/console/process?pid=p1", "/console/process?pid=" + url.QueryEscape(hostilePID),
		"/console/threads", "/console/thread?id=" + thread, "/console/thread?limit=2&id=" + thread, "/console/projects", "/console/project?id=" + p.id, "/console/topics", "/console/topic?type=process.created", "/console/store",
		"/console/settings", "/console/help", "/console/connections", "/console/connection?id=ipc-1", "/console/slowlog"}
	for _, path := range list {
		b.open(path)
		if n := b.Eval(`document.querySelectorAll("main, h1, .skip").length`); n != 3.0 {
			b.t.Errorf("%s: %v landmarks", path, n)
		}
		b.looks(path)
	}
	if n := b.Eval(`getComputedStyle(document.querySelector("h1")).fontFamily.includes("system-ui")`); n != true {
		b.t.Error("the style sheet is not in force")
	}
	b.keyboard()
}

// thread makes an agent thread with messages that run where text is taken for markup, and returns
// its id.
func (b *consoleBrowser) thread(e *everywhere) string {
	b.t.Helper()
	hostile, _ := json.Marshal(hostilePID)
	answer := e.askThreads("/v1/create_thread", `{"workspace_id":"wk","title":`+string(hostile)+`,"type":"workflow","participants":["lead"]}`)
	var made struct {
		ID string `json:"thread_id"`
	}
	if json.Unmarshal([]byte(answer), &made) != nil || made.ID == "" {
		b.t.Fatal(answer)
	}
	for n := range 3 {
		answer = e.askThreads("/v1/post_message", fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":%s,"idempotency_key":"k%d"}`, made.ID, hostile, n))
		if !strings.Contains(answer, "message_id") {
			b.t.Fatal(answer)
		}
	}
	return made.ID
}

// looks shows a page in both schemes, wide and narrow.
func (b *consoleBrowser) looks(path string) {
	b.t.Helper()
	var backs []any
	for _, scheme := range []string{"light", "dark"} {
		b.Prefer(scheme)
		backs = append(backs, b.Eval(`getComputedStyle(document.body).backgroundColor`))
		for _, width := range []int{1280, 400} {
			b.Resize(width, 900)
			if got := b.Eval(`document.documentElement.scrollWidth`); got.(float64) > float64(width) {
				b.t.Errorf("%s: %v pixels wide in a window of %d", path, got, width)
			}
			b.picture(fmt.Sprintf("%s-%s-%d", path, scheme, width))
		}
	}
	if backs[0] == backs[1] {
		b.t.Errorf("%s: light and dark are both %v", path, backs[0])
	}
	b.Resize(1280, 900)
}

func (b *consoleBrowser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv(screensDir)
	if dir == "" {
		return
	}
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r == '/' || r == '?' || r == '=' || r == '%' || r == '+' {
			return '_'
		}
		return r
	}, strings.TrimPrefix(name, "/console/")), "_")
	if err := os.WriteFile(filepath.Join(dir, name[:min(len(name), 80)]+".png"), b.Screenshot(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// keyboard: the first stop is the link over the navigation; shortcuts lead to pages, and can be
// switched off.
func (b *consoleBrowser) keyboard() {
	b.t.Helper()
	b.open("/console/store")
	b.Press("Tab", "Tab", 9)
	b.Wait(`document.activeElement.className === "skip" && getComputedStyle(document.activeElement).outlineStyle !== "none"`)
	press := func(keys string) {
		for _, key := range keys {
			b.Press(string(key), "Key"+strings.ToUpper(string(key)), int(strings.ToUpper(string(key))[0]))
		}
	}
	press("gp")
	b.Wait(`location.pathname === "/console/processes"`)
	b.Wait(`document.readyState === "complete"`)
	press("jj")
	b.Wait(`document.activeElement.textContent === "p2"`)
	press("k")
	b.Wait(`document.activeElement.textContent === "p1"`)
	b.Press("/", "Slash", 191)
	b.Wait(`document.activeElement.id === "pid"`)
	press("gs") // into the field
	b.Wait(`document.activeElement.value === "gs" && location.pathname === "/console/processes"`)
	b.open("/console/help")
	b.Eval(`document.getElementById("keys-on").click()`)
	press("gs")
	b.open("/console/help")
	if b.Eval(`document.getElementById("keys-on").checked`) != false {
		b.t.Error("the choice is not remembered")
	}
	b.Eval(`document.getElementById("keys-on").click()`)
	b.Eval(`document.activeElement.blur()`)
	press("gs")
	b.Wait(`location.pathname === "/console/store"`)
}

// live: numbers and rows follow the server, wait while the page is paused, and go on where they
// were after the connection was lost.
func (b *consoleBrowser) live() {
	i := start(b.t)
	b.base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	create := func(pid string) {
		b.t.Helper()
		if _, err := c.CreateProcess(b.t.Context(), client.CreateProcess{PID: pid}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.open("/console/")
	b.Wait(`document.getElementById("live-state").textContent === "Live."`)
	create("p1")
	b.Wait(`document.getElementById("state-READY").textContent === "1" && document.getElementById("fact-errors").parentElement.className === ""`)
	if _, err := c.GetProcess(b.t.Context(), "nothing"); err == nil {
		b.t.Fatal("a process that is not there")
	}
	b.Wait(`document.getElementById("fact-errors").parentElement.className === "bad"`)

	b.open("/console/topic?type=process.created")
	b.Wait(`document.getElementById("live-state").textContent === "Live."`)
	rows := func() string { return browser.Texts("tbody tr td.text") + `.length` }
	create(hostilePID)
	b.Wait(rows() + ` === 1 && document.querySelector("tbody td.text").textContent.includes("onerror")`)
	create("p2")
	b.Wait(rows() + ` === 2 && document.querySelector("tbody td.text").textContent.includes('"p2"')`)
	b.Eval(`document.querySelector("[data-pause]").click()`)
	create("p3")
	b.Wait(`document.getElementById("live-state").textContent === "Paused, 1 new."`)
	b.Wait(rows() + ` === 2 && document.querySelector("[data-pause]").getAttribute("aria-pressed") === "true"`)
	b.Eval(`document.querySelector("[data-pause]").click()`)
	b.Wait(rows() + ` === 3 && document.querySelector("tbody td.text").textContent.includes('"p3"')`)
	b.quiet("topic")
	b.open("/console/topic?type=process.created") // what came before is on the page that the server makes
	b.Wait(rows() + ` === 3`)
	create("p4")
	b.Wait(rows() + ` === 4`)
	b.picture("topic-rows")
}

// operates: an operator logs in, terminates a process, drops a connection and logs out.
func (b *consoleBrowser) operates() {
	i := start(b.t, tokenFiles(b.t)...)
	b.base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	fill(b.t, c, 2)
	b.open("/console/process?pid=p1")
	b.Wait(`location.pathname === "/console/login" && document.activeElement.id === "token"`)
	b.picture("login")
	b.Eval(`document.getElementById("token").value = arguments[0], document.querySelector("main button").click()`, "operator-0123456789")
	b.Wait(`location.href.endsWith("/console/process?pid=p1") && document.querySelector(".who").textContent.includes("operator")`)
	b.Eval(`document.querySelector(".change summary").click(), document.getElementById("reason").value = "by hand"`)
	b.picture("terminate")
	b.Eval(`document.querySelector(".change button").click()`)
	b.Wait(`document.querySelector(".done")?.textContent === "The process was terminated." && document.querySelector("dd .state").textContent === "TERMINATED"`)
	b.quiet("terminate")
	b.open("/console/connections")
	b.Eval(`document.querySelector("tbody a").click()`)
	b.Wait(`location.href.endsWith("/console/connection?id=ipc-1") && document.querySelector(".change summary") !== null`)
	b.Eval(`document.querySelector(".change summary").click(), document.getElementById("reason").value = "by hand"`)
	b.picture("drop")
	b.Eval(`document.querySelector(".change button").click()`)
	b.Wait(`document.querySelector(".done")?.textContent === "The connection ipc-1 was dropped."`)
	if _, err := c.GetProcessCounts(b.t.Context()); err == nil {
		b.t.Error("the connection is still open")
	}
	b.picture("dropped")
	b.quiet("drop")
	b.Eval(`document.querySelector(".who button").click()`)
	b.Wait(`location.pathname === "/console/login"`)
	b.open("/console/")
	b.Wait(`location.pathname === "/console/login"`)
	b.quiet("login")
}
