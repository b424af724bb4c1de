package app

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"trunkline/engine/obs"
)

const (
	viewerToken   = "viewer-0123456789"
	operatorToken = "operator-0123456789"
)

// adminPaths are all routes of the admin listener, and some that nothing answers.
var adminPaths = []string{"/", "/nope", "/version", "/store", "/overview", "/reload", "/latency", "/connections",
	"/slowlog", "/monitor?conn=ipc-1", "/cluster", "/metrics",
	"/exacta/", "/exacta/page.js", "/exacta/projects", "/exacta/ws", "/debug/pprof/", "/debug/pprof/cmdline",
	"/debug/pprof/heap", "/console/", "/console/store.json", "/erasures", "/threads/th_0/export"}

// TestAdminTokens: with tokens, every path but probes needs one, and /metrics by a setting.
func TestAdminTokens(t *testing.T) {
	open := []string{"exacta.listen_addr=127.0.0.1:0", "exacta.loops=1", "admin.pprof=true"}
	i := start(t, append(tokenFiles(t), open...)...)
	f := func(path, token string, status func(int) bool) {
		t.Helper()
		i.token = token
		if got, body := i.get(path); !status(got) {
			t.Errorf("%s with the token %q: %d %.100s", path, token, got, body)
		}
	}
	refused := func(s int) bool { return s == http.StatusUnauthorized }
	answered := func(s int) bool { return s != http.StatusUnauthorized && s != http.StatusSeeOther && s != 0 }
	for _, path := range adminPaths {
		f(path, "", refused)
		f(path, viewerToken, answered)
		f(path, operatorToken, answered)
	}
	f("/slowlog", "wrong-0123456789", refused)
	for _, path := range []string{"/healthz", "/readyz"} {
		f(path, "", func(s int) bool { return s == http.StatusOK })
		f(path, "wrong-0123456789", func(s int) bool { return s == http.StatusOK })
	}
	if !strings.Contains(i.banner.String(), " (closed without a token, but for probes)\n") {
		t.Errorf("banner:\n%s", i.banner.String())
	}
	i = start(t, append(tokenFiles(t), "admin.public_metrics=true")...)
	f("/metrics", "", func(s int) bool { return s == http.StatusOK })
	f("/store", "", refused)
	i = start(t, open...)
	for _, path := range adminPaths {
		f(path, "", answered)
	}
}

// TestAdminBeyondLoopback: without tokens such an address has to be allowed by name.
func TestAdminBeyondLoopback(t *testing.T) {
	if _, err := loadAgain([]string{"admin.listen_addr=0.0.0.0:0"}); err == nil ||
		!strings.Contains(err.Error(), "needs tokens: admin.console_token_file") {
		t.Errorf("%v, want what is missing", err)
	}
	i := start(t, append(tokenFiles(t), "admin.listen_addr=0.0.0.0:0")...)
	if status, _ := i.get("/store"); status != http.StatusUnauthorized {
		t.Errorf("with tokens: %d", status)
	}
	i = start(t, "admin.listen_addr=0.0.0.0:0", "admin.insecure_bind=true")
	if status, _ := i.get("/store"); status != http.StatusOK {
		t.Errorf("allowed by name: %d", status)
	}
	if !strings.Contains(i.banner.String(), " (open to anybody who reaches it)\n") ||
		!strings.Contains(i.log.String(), "admin.insecure_bind is on") {
		t.Errorf("nothing shows it:\n%s\n%s", i.banner.String(), i.log.String())
	}
	// Tokens that are gone after a reload leave nothing open.
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(viewerToken), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startReloadable(t, "admin.listen_addr=0.0.0.0:0", "admin.console_token_file="+file)
	r.token = viewerToken
	if out := r.reload("admin.console_token_file="); out.OK {
		t.Errorf("%+v", out)
	}
	if out := r.reload("admin.console_token_file=", "admin.insecure_bind=true"); out.OK {
		t.Errorf("%+v", out)
	}
}

// browse is a browser without a page: it keeps cookies, and follows no redirect.
type browse struct {
	i       *instance
	cookies []*http.Cookie
}

// ask sends a request for a page, or a form.
func (b *browse) ask(method, path string, form url.Values) (*http.Response, string) {
	b.i.t.Helper()
	q, err := http.NewRequest(method, "http://"+b.i.addr("admin")+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.i.t.Fatal(err)
	}
	q.Header.Set("Accept", "text/html,*/*;q=0.8")
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range b.cookies {
		if strings.HasPrefix(q.URL.Path, c.Path) {
			q.AddCookie(c)
		}
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		b.i.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	b.cookies = append(b.cookies, resp.Cookies()...)
	return resp, string(body)
}

// TestProjectPageLogsIn: the page of projects leads to the login and works with it, its WebSocket
// included, which ends with the login and is not for pages of other ports.
func TestProjectPageLogsIn(t *testing.T) {
	i := start(t, append(tokenFiles(t), "exacta.listen_addr=127.0.0.1:0", "exacta.loops=1")...)
	b := &browse{i: i, cookies: []*http.Cookie{{Name: "trunkline_console_" + i.addr("admin")[len("127.0.0.1:"):],
		Value: "of an earlier server", Path: "/console/"}}}
	resp, _ := b.ask("GET", "/exacta/", nil)
	to := resp.Header.Get("Location")
	if resp.StatusCode != http.StatusSeeOther || to != "/console/login?next=%2Fexacta%2F" {
		t.Fatalf("%s to %q, want the login", resp.Status, to)
	}
	_, form := b.ask("GET", to, nil)
	secret := func(page string) string {
		return regexp.MustCompile(`name="csrf" value="(\w+)"`).FindStringSubmatch(page)[1]
	}
	resp, _ = b.ask("POST", "/console/login", url.Values{"csrf": {secret(form)}, "token": {viewerToken},
		"next": {"/exacta/"}})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/exacta/" {
		t.Fatalf("%s to %q after the login", resp.Status, resp.Header.Get("Location"))
	}
	for _, path := range []string{"/exacta/", "/exacta/page.js", "/exacta/projects", "/slowlog"} {
		if resp, body := b.ask("GET", path, nil); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %.100s", path, resp.Status, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dial := func(origin string) (*websocket.Conn, *http.Response) {
		h := http.Header{"Origin": {origin}, "Cookie": {b.cookies[len(b.cookies)-1].String()}}
		c, resp, err := websocket.Dial(ctx, "ws://"+i.addr("admin")+"/exacta/ws", &websocket.DialOptions{HTTPHeader: h})
		if err != nil && resp == nil {
			t.Fatal(err)
		}
		return c, resp
	}
	if c, resp := dial("http://127.0.0.1:1"); c != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a page of another port: %s", resp.Status)
	}
	c, resp := dial("http://" + i.addr("admin"))
	if c == nil {
		t.Fatalf("the page itself: %s", resp.Status)
	}
	defer c.CloseNow()
	_, page := b.ask("GET", "/console/", nil)
	if resp, _ := b.ask("POST", "/console/logout",
		url.Values{"csrf": {secret(page)}}); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("logout: %s", resp.Status)
	}
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("%v, want an end with the login", err)
	}
	if resp, _ := b.ask("GET", "/exacta/projects", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("after the logout: %s", resp.Status)
	}
}

// TestMonitorEndsWithItsToken: another token ends what the one before opened.
func TestMonitorEndsWithItsToken(t *testing.T) {
	dir := t.TempDir()
	files := []string{"admin.console_token_file=" + filepath.Join(dir, "v"), "admin.console_operator_token_file=" +
		filepath.Join(dir, "o")}
	write := func(name, token string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("v", viewerToken)
	write("o", operatorToken)
	r := startReloadable(t, files...)
	r.token = operatorToken
	if _, err := r.dial(r.addr("kernel ipc")).Ping(t.Context(), nil); err != nil { // so that the server has it
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr("admin")+"/monitor?conn=ipc-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+viewerToken)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	defer resp.Body.Close()
	write("v", viewerToken+"-new")
	if out := r.reload(); !out.OK {
		t.Fatalf("%+v", out)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		t.Logf("%s", lines.Text())
	}
	if ctx.Err() != nil {
		t.Error("the frames of the connection are shown for a token that is not in force")
	}
}

// TestAdminTokensAreOfTheStart: a server whose tokens cannot be read does not begin to listen.
func TestAdminTokensAreOfTheStart(t *testing.T) {
	set := settings(t, "admin.listen_addr=0.0.0.0:0", "admin.console_token_file=/nothing/here")
	err := Run(t.Context(), set, Options{Build: obs.ReadBuild("v7", "rev"), Banner: io.Discard,
		Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "admin.console_token_file") {
		t.Errorf("%v, want the name of the setting", err)
	}
}
