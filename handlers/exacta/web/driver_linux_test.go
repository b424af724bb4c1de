package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// browser is a Chromium without a window, driven over WebDriver.
type browser struct {
	t       testing.TB
	session string // its URL
	http    http.Client
}

var driverPort = regexp.MustCompile(`started successfully on port (\d+)`)

// startBrowser starts the driver, and the browser by it.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	for _, program := range []string{"chromium", "chromedriver"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("program %s is not installed (packages chromium and chromium-driver)", program)
		}
	}
	chromium, _ := exec.LookPath("chromium")
	dir := t.TempDir()
	cmd := exec.Command("chromedriver", "--port=0")
	cmd.Env = append(cmd.Environ(), "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	port := ""
	for lines := bufio.NewScanner(out); port == ""; {
		if !lines.Scan() {
			t.Fatal("chromedriver does not start")
		}
		if m := driverPort.FindStringSubmatch(lines.Text()); m != nil {
			port = m[1]
		}
	}
	b := &browser{t: t, session: "http://127.0.0.1:" + port + "/session", http: http.Client{Timeout: 2 * patience}}
	t.Cleanup(b.http.CloseIdleConnections)
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + dir + "/profile"}
	var made struct{ SessionID string }
	b.call("", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": args},
		"goog:loggingPrefs":  map[string]any{"browser": "ALL"},
	}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() {
		req, _ := http.NewRequest(http.MethodDelete, b.session, nil)
		if resp, err := b.http.Do(req); err == nil {
			resp.Body.Close()
		}
	})
	return b
}

// call makes a call of WebDriver. value gets its answer.
func (b *browser) call(path string, body, value any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.http.Post(b.session+path, "application/json", bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s %v %s", path, resp.Status, err, answer)
	}
	if err := json.Unmarshal(answer, &struct{ Value any }{value}); err != nil {
		b.t.Fatalf("%s: %v in %s", path, err, answer)
	}
}

// devtools gives the browser a command of its own protocol.
func (b *browser) devtools(command string, params map[string]any) {
	b.t.Helper()
	b.call("/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, new(any))
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string, args ...any) (value any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.call("/execute/sync", map[string]any{"script": "return (" + expression + ")", "args": args}, &value)
	return value
}

// wait waits until an expression is true in the page.
func (b *browser) wait(expression string, args ...any) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.eval(expression, args...) != true; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s %v is not true in\n%v\nlog: %v", expression, args, b.eval("document.body.innerText + ' ' + JSON.stringify(document.body.dataset)"), b.log())
		}
	}
}

// log returns what the page wrote to the console, and what the browser refused.
func (b *browser) log() (entries []struct{ Message string }) {
	b.t.Helper()
	b.call("/se/log", map[string]any{"type": "browser"}, &entries)
	return entries
}

func texts(selector string) string {
	return fmt.Sprintf("Array.from(document.querySelectorAll(%q), (e) => e.textContent)", selector)
}
