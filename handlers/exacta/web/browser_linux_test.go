package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "trunkline/fuzz/kit/browser"
	"trunkline/handlers/exacta"
)

// cutAll breaks all connections.
func (s *sockets) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.below.cut()
	}
}

// hostile runs where text is taken for markup.
const hostile = `<img src=x onerror=window.pwned=1><script>window.pwned=1</script>`

// browser is a browser of a test.
type browser struct {
	*driver.Browser
	t testing.TB
}

// TestBrowser shows the page to a browser.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run starts no browser")
	}
	t.Parallel() // it waits
	b := driver.Start(t)
	for name, f := range map[string]func(*browser){"plan": (*browser).followsAPlan, "restart": (*browser).findsTheServerAgain} {
		t.Run(name, func(t *testing.T) {
			f(&browser{b.On(t), t})
		})
	}
}

// followsAPlan: a plan and its diff are shown as text, the execution is followed, and so is what
// comes after a lost connection, without a gap.
func (b *browser) followsAPlan() {
	t := b.t
	r := start(t, exacta.Config{}, nil)
	v, addr := view(t, r)
	b.Open("http://" + addr + viewerPath)
	b.Wait(`document.getElementById("link").textContent === "connected" && !document.getElementById("none").hidden`)

	dir := filepath.Join(newProject(t), "<img src=x onerror=window.pwned=1>")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module y\n", "a.txt": "a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, "ws://"+r.addr+wsPath)
	project := c.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	plan := c.plan(10, project, "Append \""+hostile+"\u202e\" to a.txt, and never rename <img src=x onerror=window.pwned=1>")
	b.Wait(`document.getElementById("state").textContent === "AwaitingApproval"`)
	b.Wait(driver.Texts("#steps td") + `.join() === "1,file_modify,a.txt,Modify a.txt: append text,"`)
	b.Wait(driver.Texts("#diffs pre .add")+`.join() === arguments[0]`, "+"+hostile+`\u202e`)
	b.Wait(`document.getElementById("next").textContent === arguments[0]`, "Approve it with: trunkline exacta approve "+plan[:8]+" --project '"+dir+"'")
	b.Wait(`document.getElementById("about").textContent.includes("; " + arguments[0] + ", made at 2")`, plan)
	b.Wait(driver.Texts("#diffs summary") + `.join() === "1. a.txt"`)
	b.Wait(driver.Texts("#projects a")+`.join() === arguments[0]`, dir)
	b.Wait(`document.getElementById("about").textContent.includes("MUST_NOT rename img src=x onerror")`)

	c.approve(10, project, plan)
	b.Wait(`document.getElementById("state").textContent === "Completed" && document.getElementById("next").hidden`)
	b.Wait(driver.Texts("#steps td:last-child") + `[0].startsWith("done in ")`)
	b.Wait(`document.getElementById("bar").value === document.getElementById("bar").max && document.getElementById("phase").textContent === "apply 1/1"`)

	// A lost connection, and events meanwhile.
	v.Load().sockets.cutAll()
	c.run(20, project, `Append "two" to a.txt`)
	b.Wait(`Number(document.body.dataset.connections) >= 2`)
	last := c.events[len(c.events)-1].StreamSeq
	b.Wait(`document.getElementById("last").textContent === arguments[0]`, fmt.Sprint(last))
	c.run(30, project, `Append "three" to a.txt`)
	last = c.events[len(c.events)-1].StreamSeq
	b.Wait(`document.getElementById("last").textContent === arguments[0]`, fmt.Sprint(last))
	var numbers []string
	for i := range last {
		numbers = append(numbers, fmt.Sprint(i+1))
	}
	if got := b.Eval(`Array.from(document.querySelectorAll("#events li"), (e) => e.dataset.seq).join()`); got != strings.Join(numbers, ",") {
		t.Errorf("events %v, want 1 to %d", got, last)
	}
	if gaps := b.Eval(`document.body.dataset.gaps || "none"`); gaps != "none" {
		t.Errorf("gaps: %v", gaps)
	}

	b.hears(c, project)
	b.harmless()
	b.usable()
}

// hears: a project that is closed is shown as that, and one that is opened again is followed.
func (b *browser) hears(c *client, project string) {
	b.t.Helper()
	c.ask(40, "CloseProject", `"project_id":"`+project+`"`)
	b.Wait(`document.getElementById("state").textContent === "closed"`)
	other := newProject(b.t)
	second := c.ask(41, "OpenProject", `"path":`+quote(other))["project_id"].(string)
	b.Wait(driver.Texts("#projects a")+`.join() === arguments[0]`, other)
	b.Eval(`document.querySelector("#projects a").click()`)
	b.Wait(`document.getElementById("root").textContent === arguments[0]`, other)
	c.plan(50, second, "create file b.txt")
	b.Wait(driver.Texts("#steps td:nth-child(3)") + `.join() === "b.txt"`)
}

// harmless: nothing of a project became markup, ran, or was even tried.
func (b *browser) harmless() {
	b.t.Helper()
	if b.Eval(`window.pwned === undefined && document.querySelectorAll("img, script:not([src='page.js']), style, iframe").length === 0`) != true {
		b.t.Error("text became markup")
	}
	for _, e := range b.Log() {
		if !strings.Contains(e.Message, "favicon") && !strings.Contains(e.Message, "WebSocket") {
			b.t.Errorf("console: %s", e.Message)
		}
	}
}

// usable: a narrow window shows everything, colours follow the system, and the keyboard reaches the
// page.
func (b *browser) usable() {
	b.t.Helper()
	b.Resize(400, 800)
	b.Wait(`document.documentElement.scrollWidth <= 400`)
	colour := func(scheme string) any {
		b.Prefer(scheme)
		return b.Eval(`getComputedStyle(document.body).backgroundColor`)
	}
	if light, dark := colour("light"), colour("dark"); light == dark {
		b.t.Errorf("light and dark are both %v", light)
	}
	b.Eval(`document.activeElement.blur()`)
	var ids []string
	for range 3 {
		b.Press("Tab", "Tab", 9)
		ids = append(ids, fmt.Sprint(b.Eval(`document.activeElement.id || document.activeElement.tagName`)))
	}
	if len(ids) != 3 || ids[0] == ids[1] || ids[1] == ids[2] {
		b.t.Errorf("the keyboard reaches %v", ids)
	}
}

// findsTheServerAgain: a server that was started again has other events, which are shown instead of
// those of the one before.
func (b *browser) findsTheServerAgain() {
	t := b.t
	r, dir := start(t, exacta.Config{}, nil), newProject(t)
	v, addr := view(t, r)
	c := connect(t, "ws://"+r.addr+wsPath)
	project := c.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	c.run(10, project, `Append "x" to a.txt`)
	b.Open("http://" + addr + viewerPath)
	b.Wait(`document.getElementById("state").textContent === "Completed"`)
	c.ask(20, "CloseProject", `"project_id":"`+project+`"`)

	next := start(t, exacta.Config{}, nil)
	v.become(t, next)
	c = connect(t, "ws://"+next.addr+wsPath)
	c.ask(1, "OpenProject", `"path":`+quote(dir))
	c.plan(10, project, `Append "y" to a.txt`)
	b.Wait(`document.getElementById("last").textContent === arguments[0]`, fmt.Sprint(len(c.events)))
	b.Wait(`document.querySelector("#events li").dataset.seq === "1" && document.getElementById("state").textContent === "AwaitingApproval"`)
	if gaps := b.Eval(`document.body.dataset.gaps || "none"`); gaps != "none" {
		t.Errorf("gaps: %v", gaps)
	}
}
