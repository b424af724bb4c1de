package browser

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

// patience is how long a test waits for what must come.
const patience = time.Minute

// Browser is a Chromium without a window, driven over WebDriver. It ends with the test that started
// it.
type Browser struct {
	t       testing.TB
	session string // its URL
	http    *http.Client
}

// On returns the browser for a part of the test.
func (b *Browser) On(t testing.TB) *Browser { return &Browser{t, b.session, b.http} }

var driverPort = regexp.MustCompile(`started successfully on port (\d+)`)

// Start starts the driver, and the browser by it.
func Start(t testing.TB) *Browser {
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
	b := &Browser{t: t, session: "http://127.0.0.1:" + port + "/session", http: &http.Client{Timeout: 2 * patience}}
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
func (b *Browser) call(path string, body, value any) {
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

// Open loads a page.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.call("/url", map[string]any{"url": url}, new(any))
}

// screenshot returns a picture of the window as PNG.
func (b *Browser) screenshot() []byte {
	b.t.Helper()
	var picture struct{ Data []byte }
	b.call("/goog/cdp/execute", map[string]any{"cmd": "Page.captureScreenshot", "params": map[string]any{"format": "png"}}, &picture)
	return picture.Data
}

// Resize makes the window so wide and high, in pixels.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.Wait(fmt.Sprintf("innerWidth === %d", width))
}

// Prefer makes the system prefer a colour scheme, "light" or "dark".
func (b *Browser) Prefer(scheme string) {
	b.t.Helper()
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// Press presses a key.
func (b *Browser) Press(key, code string, number int) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number}
		if len(key) == 1 && kind == "keyDown" {
			params["text"] = key
		}
		b.devtools("Input.dispatchKeyEvent", params)
	}
}

// devtools gives the browser a command of its own protocol.
func (b *Browser) devtools(command string, params map[string]any) {
	b.t.Helper()
	b.call("/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, new(any))
}

// Eval returns the value of an expression in the page.
func (b *Browser) Eval(expression string, args ...any) (value any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.call("/execute/sync", map[string]any{"script": "return (" + expression + ")", "args": args}, &value)
	return value
}

// Wait waits until an expression is true in the page.
func (b *Browser) Wait(expression string, args ...any) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.Eval(expression, args...) != true; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s %v is not true in\n%v\nlog: %v", expression, args, b.Eval("document.body.innerText + ' ' + JSON.stringify(document.body.dataset)"), b.Log())
		}
	}
}

// Log returns what the page wrote to the console, and what the browser refused.
func (b *Browser) Log() (entries []struct{ Message string }) {
	b.t.Helper()
	b.call("/se/log", map[string]any{"type": "browser"}, &entries)
	return entries
}

// Texts returns the expression for the texts of all elements of a selector.
func Texts(selector string) string {
	return fmt.Sprintf("Array.from(document.querySelectorAll(%q), (e) => e.textContent)", selector)
}
