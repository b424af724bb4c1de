package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"trunkline/fuzz/kit/browser"
	"trunkline/handlers/ipc/ipcclient"
)

// hostilePID runs where text is taken for markup.
const hostilePID = `<script>window.pwned=1</script><img src=x onerror=window.pwned=1>`

// consoleBrowser looks at the console of a server.
type consoleBrowser struct {
	*browser.Console
	t *testing.T
}

// TestConsoleInABrowser shows all pages to a browser.
func TestConsoleInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run starts no browser")
	}
	b := browser.Start(t)
	for name, f := range map[string]func(*consoleBrowser){"pages": (*consoleBrowser).pages, "live": (*consoleBrowser).live, "operator": (*consoleBrowser).operates} {
		t.Run(name, func(t *testing.T) { f(&consoleBrowser{&browser.Console{Browser: b.On(t)}, t}) })
	}
}

// pages: each page is shown without an error, in both schemes, and a narrow window has all of it.
func (b *consoleBrowser) pages() {
	i := startEverywhere(b.t)
	b.Base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	fill(b.t, c, 60)
	if _, err := c.CreateProcess(b.t.Context(), ipcclient.CreateProcess{PID: hostilePID, UserID: hostilePID}); err != nil {
		b.t.Fatal(err)
	}
	p := i.dialProjects("unix", strings.TrimPrefix(i.addr("exacta"), "unix://"))
	p.open(newProject(b.t))
	intent := p.must("ExtractIntent", `"user_input":"create file a.txt; create file b.txt"`)["intent"].(map[string]any)
	p.must("GeneratePlan", field("intent_id", intent["id"]))

	thread := b.thread(i)

	b.Resize(1280, 900)
	b.Open(b.Base + "/") // a browser is led to the console
	b.Wait(`location.pathname === "/console/" && document.querySelector("h1").textContent === "Overview"`)
	list := []string{"/console/", "/console/processes", "/console/processes?pid=script", "/console/process?pid=p1", "/console/process?pid=" + url.QueryEscape(hostilePID),
		"/console/threads", "/console/thread?id=" + thread, "/console/thread?limit=2&id=" + thread, "/console/projects", "/console/project?id=" + p.id, "/console/topics", "/console/topic?type=process.created", "/console/store",
		"/console/settings", "/console/help", "/console/connections", "/console/connection?id=ipc-1", "/console/slowlog"}
	for _, path := range list {
		b.Show(path)
		if n := b.Eval(`document.querySelectorAll("main, h1, .skip").length`); n != 3.0 {
			b.t.Errorf("%s: %v landmarks", path, n)
		}
		b.Looks(path)
	}
	for _, path := range []string{"/console/processes", "/console/connections", "/exacta/"} { // a table that goes on behind an edge is marked there
		b.Open(b.Base + path)
		b.Resize(400, 900)
		b.Wait(`getComputedStyle(document.querySelector(".wide")).backgroundAttachment === "local, local, scroll, scroll"`)
		if path != "/exacta/" && b.Eval(`(e => e.scrollWidth > e.clientWidth)(document.querySelector(".wide"))`) != true {
			b.t.Errorf("%s: the table does not scroll", path)
		}
		b.Wait(`document.documentElement.scrollWidth <= 400`)
		b.Picture(path + "-edge")
	}
	b.Resize(1280, 900)
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

// keyboard: the first stop is the link over the navigation; shortcuts lead to pages, and can be
// switched off.
func (b *consoleBrowser) keyboard() {
	b.t.Helper()
	b.Show("/console/store")
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
	b.Press("Escape", "Escape", 27) // out of it
	b.Wait(`document.activeElement === document.body`)
	press("j")
	b.Wait(`document.activeElement.textContent === "p1"`)
	b.Show("/console/help")
	b.Eval(`document.getElementById("keys-on").click()`)
	press("gs")
	b.Show("/console/help")
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
	b.Base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	create := func(pid string) {
		b.t.Helper()
		if _, err := c.CreateProcess(b.t.Context(), ipcclient.CreateProcess{PID: pid}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.Show("/console/")
	b.Wait(`document.getElementById("live-state").textContent === "Live."`)
	create("p1")
	b.Wait(`document.getElementById("state-READY").textContent === "1" && document.getElementById("fact-errors").parentElement.className === ""`)
	if _, err := c.GetProcess(b.t.Context(), "nothing"); err == nil {
		b.t.Fatal("a process that is not there")
	}
	b.Wait(`document.getElementById("fact-errors").parentElement.className === "bad"`)

	b.Show("/console/topic?type=process.created")
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
	b.Quiet("topic")
	b.Show("/console/topic?type=process.created") // what came before is on the page that the server makes
	b.Wait(rows() + ` === 3`)
	create("p4")
	b.Wait(rows() + ` === 4`)
	b.Picture("topic-rows")
}

// operates: an operator logs in, terminates a process, drops a connection and logs out.
func (b *consoleBrowser) operates() {
	i := start(b.t, tokenFiles(b.t)...)
	b.Base = "http://" + i.addr("admin")
	c := i.dial(i.addr("kernel ipc"))
	fill(b.t, c, 2)
	b.Show("/console/process?pid=p1")
	b.Wait(`location.pathname === "/console/login" && document.activeElement.id === "token"`)
	b.Picture("login")
	b.Eval(`document.getElementById("token").value = arguments[0], document.querySelector("main button").click()`, "operator-0123456789")
	b.Wait(`location.href.endsWith("/console/process?pid=p1") && document.querySelector(".who").textContent.includes("operator")`)
	b.Eval(`document.querySelector(".change summary").click(), document.getElementById("reason").value = "by hand"`)
	b.Picture("terminate")
	b.Eval(`document.querySelector(".change button").click()`)
	b.Wait(`document.querySelector(".done")?.textContent === "The process was terminated." && document.querySelector("dd .state").textContent === "TERMINATED"`)
	b.Quiet("terminate")
	b.Show("/console/connections")
	b.Eval(`document.querySelector("tbody a").click()`)
	b.Wait(`location.href.endsWith("/console/connection?id=ipc-1") && document.querySelector(".change summary") !== null`)
	b.Eval(`document.querySelector(".change summary").click(), document.getElementById("reason").value = "by hand"`)
	b.Picture("drop")
	b.Eval(`document.querySelector(".change button").click()`)
	b.Wait(`document.querySelector(".done")?.textContent === "The connection ipc-1 was dropped."`)
	if _, err := c.GetProcessCounts(b.t.Context()); err == nil {
		b.t.Error("the connection is still open")
	}
	b.Picture("dropped")
	b.Quiet("drop")
	b.Eval(`document.querySelector(".who button").click()`)
	b.Wait(`location.pathname === "/console/login"`)
	b.Show("/console/")
	b.Wait(`location.pathname === "/console/login"`)
	b.Quiet("login")
}
