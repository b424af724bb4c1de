package console

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestWhoMayRead has each way to come in, on both kinds of listeners.
func TestWhoMayRead(t *testing.T) {
	none := func(*Config) {}
	far := func(c *Config) { c.Loopback = false }
	viewers := func(c *Config) { c.ViewerToken = viewToken }
	operators := func(c *Config) { c.OperatorToken = opToken }
	f := func(name string, change []func(*Config), token string, page, asJSON int) {
		t.Helper()
		r := newRig(t, change...)
		q, j := request("GET", root+"store", nil), request("GET", root+"store.json", nil)
		if token != "" {
			bearer(q, token)
			bearer(j, token)
		}
		if w := r.do(q); w.Code != page {
			t.Errorf("%s: %d, want %d: %.200s", name, w.Code, page, w.Body)
		}
		if w := r.do(j); w.Code != asJSON || w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: as JSON %d, want %d", name, w.Code, asJSON)
		}
	}
	f("loopback without tokens", []func(*Config){none}, "", 200, 200)
	f("loopback without tokens, some token", []func(*Config){none}, "x", 200, 200)
	f("beyond loopback without tokens", []func(*Config){far}, "", 403, 403)
	f("beyond loopback without tokens, some token", []func(*Config){far}, "x", 403, 403)
	for name, where := range map[string]func(*Config){"loopback": none, "beyond": far} {
		f(name+", no token shown", []func(*Config){where, viewers}, "", 303, 401)
		f(name+", wrong token", []func(*Config){where, viewers}, viewToken+"x", 401, 401)
		f(name+", empty token of operators", []func(*Config){where, viewers}, " ", 401, 401)
		f(name+", viewer", []func(*Config){where, viewers}, viewToken, 200, 200)
		f(name+", operator", []func(*Config){where, operators}, opToken, 200, 200)
		f(name+", viewer where only operators are", []func(*Config){where, operators}, viewToken, 401, 401)
		f(name+", viewer beside operators", []func(*Config){where, withTokens}, viewToken, 200, 200)
	}
	r := newRig(t, withTokens)
	w := r.get(root + "processes?state=READY")
	if to := w.Header().Get("Location"); to != root+"login?next=%2Fconsole%2Fprocesses%3Fstate%3DREADY" {
		t.Errorf("a browser is led to %s", to)
	}
}

// TestLogin: the cookie of a login opens the pages of its role, and nothing else does.
func TestLogin(t *testing.T) {
	r := newRig(t, withTokens)
	want(t, r.get(root+"login"), 200, `type="password"`)
	if r.logIn("wrong") != nil || r.logIn("") != nil {
		t.Error("a wrong token gets a cookie")
	}
	c := r.logIn(" " + opToken + "\n")
	if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || len(c.Value) < 26 {
		t.Fatalf("cookie %+v", c)
	}
	want(t, r.do(with(request("GET", root, nil), c)), 200, "Role: operator")
	want(t, r.do(with(request("GET", root+"store.json", nil), c)), 200, "always")
	forged := *c
	forged.Value += "x"
	if w := r.do(with(request("GET", root, nil), &forged)); w.Code != 303 {
		t.Errorf("a forged cookie: %d", w.Code)
	}
	if strings.Contains(r.log.String(), opToken) || strings.Contains(r.log.String(), c.Value) || !strings.Contains(r.log.String(), "console login failed") ||
		!strings.Contains(r.log.String(), `msg="console login" by=operator`) {
		t.Errorf("log:\n%s", r.log)
	}
	// Over TLS the cookie is for TLS only.
	q := request("POST", root+"login", url.Values{"csrf": {secretOf(r.get(root + "login"))}, "token": {viewToken}})
	q.TLS = new(tls.ConnectionState)
	w := r.do(q)
	if got := w.Result().Cookies(); len(got) != 1 || !got[0].Secure || w.Header().Get("Location") != root {
		t.Errorf("over TLS %d %v", w.Code, got)
	}
	// So it is where the browser speaks TLS to a proxy. A login ends the one before.
	q = request("POST", root+"login", url.Values{"csrf": {r.auth.formSecret(0)}, "token": {viewToken}})
	q.Header.Set("Origin", "https://localhost:50090")
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	old := r.logIn(viewToken)
	if got := r.do(with(q, old)).Result().Cookies(); len(got) != 1 || !got[0].Secure {
		t.Errorf("over TLS to a proxy %v", got)
	}
	if w := r.do(with(request("GET", root, nil), old)); w.Code != 303 {
		t.Errorf("the login before: %d", w.Code)
	}
	// Servers of other ports have cookies of their own.
	for host, name := range map[string]string{"localhost:50090": "trunkline_console_50090", "localhost": "trunkline_console", "[::1]:7": "trunkline_console_7", "localhost:a=b": "trunkline_console"} {
		q := request("POST", root+"login", url.Values{"csrf": {r.auth.formSecret(0)}, "token": {viewToken}})
		q.Host = host
		got := r.do(q).Result().Cookies()
		if len(got) != 1 || got[0].Name != name {
			t.Fatalf("%s: %v, want %s", host, got, name)
		}
		back := with(request("GET", root, nil), got[0])
		back.Host = host
		want(t, r.do(back), 200, "Role: viewer")
		if back.Host = "localhost:9"; r.do(back).Code != 303 {
			t.Errorf("the cookie of %s opens another port", host)
		}
	}
	// The way back is a page of the console.
	for next, to := range map[string]string{root + "store?x=1": root + "store?x=1", "/exacta/": "/exacta/",
		"/exacta.evil.org/": root, "": root, "https://evil.org/": root, "//evil.org/console/": root, root + "login": root} {
		form := url.Values{"csrf": {r.auth.formSecret(0)}, "token": {viewToken}, "next": {next}}
		if w := r.do(request("POST", root+"login", form)); w.Code != 303 || w.Header().Get("Location") != to {
			t.Errorf("next %q: %d to %q, want %q", next, w.Code, w.Header().Get("Location"), to)
		}
	}
	// Logging out needs the form of the session.
	want(t, r.do(with(request("POST", root+"logout", url.Values{}), c)), 403, "secret of the form")
	page := r.do(with(request("GET", root, nil), c))
	if w := r.do(with(request("POST", root+"logout", url.Values{"csrf": {secretOf(page)}}), c)); w.Code != 303 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("log out: %d %v", w.Code, w.Result().Cookies())
	}
	if w := r.do(with(request("GET", root, nil), c)); w.Code != 303 {
		t.Errorf("after the end of the session: %d", w.Code)
	}
	if w := newRig(t).get(root + "login"); w.Code != 303 {
		t.Errorf("the login form where none is needed: %d", w.Code)
	}
}

// TestLoginForm: a form is good for an hour, or two.
func TestLoginForm(t *testing.T) {
	r := newRig(t, withTokens)
	form := url.Values{"csrf": {secretOf(r.get(root + "login"))}, "token": {viewToken}}
	f := func(status int, text string) {
		t.Helper()
		want(t, r.do(request("POST", root+"login", form)), status, text)
	}
	f(303, "")
	r.clock.pass(formAge)
	f(303, "")
	r.clock.pass(formAge)
	f(403, "too old")
	form.Set("csrf", "")
	f(403, "too old")
}

// TestChange has who may terminate a process, and from where.
func TestChange(t *testing.T) {
	r := newRig(t, withTokens)
	page := root + "process?pid=" + url.QueryEscape(hostile)
	op, view := r.logIn(opToken), r.logIn(viewToken)
	shown := r.do(with(request("GET", page, nil), op))
	want(t, shown, 200, "Terminate this process")
	if w := r.do(with(request("GET", page, nil), view)); strings.Contains(w.Body.String(), "/terminate") {
		t.Error("a viewer is shown the form")
	}
	form := func(pairs ...string) url.Values {
		v := url.Values{"pid": {"p1"}, "reason": {"why"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	secret := secretOf(shown)
	post := func(v url.Values) *http.Request { return request("POST", root+"process/terminate", v) }
	f := func(q *http.Request, status int, text string) {
		t.Helper()
		before := len(r.ended)
		want(t, r.do(q), status, text)
		if done := len(r.ended) > before; done != (status == 200 || status == 303) {
			t.Errorf("%d: a process was terminated: %v", status, done)
		}
	}
	f(post(form()), 401, "a token is needed")
	f(with(post(form("csrf", secret)), view), 403, "may not change")
	f(bearer(post(form()), viewToken), 403, "may not change")
	f(bearer(post(form()), "wrong"), 401, "")
	f(with(post(form()), op), 403, "secret of the form")
	f(with(post(form("csrf", secret+"x")), op), 403, "secret of the form")
	other := r.logIn(opToken)
	f(with(post(form("csrf", secret)), other), 403, "secret of the form")
	from := func(q *http.Request, header, value string) *http.Request {
		q.Header.Set(header, value)
		return q
	}
	f(from(with(post(form("csrf", secret)), op), "Origin", "https://evil.org"), 403, "another page")
	f(from(with(post(form("csrf", secret)), op), "Origin", "null"), 403, "another page")
	f(from(with(post(form("csrf", secret)), op), "Sec-Fetch-Site", "cross-site"), 403, "another page")
	f(from(with(post(form("csrf", secret)), op), "Sec-Fetch-Site", "same-site"), 403, "another page")
	f(with(post(form("csrf", secret, "pid", "")), op), 400, "pid must have")
	f(with(post(form("csrf", secret, "pid", strings.Repeat("p", maxText+1))), op), 400, "pid must have")
	f(with(post(form("csrf", secret, "reason", strings.Repeat("p", maxText+1))), op), 400, "pid must have")
	f(with(post(form("csrf", secret, "x", strings.Repeat("p", maxForm))), op), 413, "too large")
	f(with(post(form("csrf", secret, "pid", "gone")), op), 404, "not found")
	f(with(request("GET", root+"process/terminate?pid=p1&csrf="+secret, nil), op), 405, "")

	f(from(with(post(form("csrf", secret)), op), "Origin", "http://localhost:50090"), 303, "")
	f(from(with(post(form("csrf", secret, "pid", strings.Repeat("p", maxText))), op), "Sec-Fetch-Site", "same-origin"), 303, "")
	f(bearer(post(form("pid", "p2")), opToken), 200, `{"ok":true}`)
	if r.ended[0] != "p1|why" || r.ended[2] != "p2|why" {
		t.Errorf("terminated %q", r.ended)
	}
	for _, line := range []string{`msg="console change" action=terminate_process pid=p1 reason=why by=operator`, `msg="console change failed" action=terminate_process pid=gone`,
		`msg="console change refused" path=/console/process/terminate by=viewer`} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("no line %q in the log:\n%s", line, r.log)
		}
	}
	drop := func(pairs ...string) *http.Request {
		v := url.Values{"id": {"ipc-1"}, "reason": {"why"}, "csrf": {secret}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return request("POST", root+"connection/drop", v)
	}
	want(t, r.do(with(request("GET", root+"connection?id=ipc-1", nil), op)), 200, "Drop this connection")
	if w := r.do(with(request("GET", root+"connection?id=ipc-1", nil), view)); w.Code != 200 || strings.Contains(w.Body.String(), "/drop") {
		t.Errorf("a viewer is shown the form: %d", w.Code)
	}
	f(drop(), 401, "a token is needed")
	f(with(drop(), view), 403, "may not change")
	f(with(drop("csrf", "x"), op), 403, "secret of the form")
	f(from(with(drop(), op), "Origin", "https://evil.org"), 403, "another page")
	f(with(drop("id", ""), op), 400, "id must have")
	f(with(drop("id", strings.Repeat("i", maxText+1)), op), 400, "id must have")
	f(with(drop("reason", strings.Repeat("r", maxText+1)), op), 400, "reason at most")
	f(bearer(drop("id", "gone"), opToken), 404, `{"error":"not found"}`)
	f(with(request("GET", root+"connection/drop?id=ipc-1", nil), op), 405, "")
	f(with(drop("id", strings.Repeat("i", maxText), "reason", strings.Repeat("r", maxText)), op), 303, "")
	f(with(drop(), op), 303, "")
	if got := r.ended[len(r.ended)-1]; got != "connection ipc-1" || !strings.Contains(r.log.String(), `msg="console change" action=drop_connection connection=ipc-1 reason=why by=operator peer=`) {
		t.Errorf("dropped %q, log:\n%s", got, r.log)
	}
	want(t, r.do(with(request("GET", root+"connections?dropped=ipc-9", nil), op)), 200, "The connection ipc-9 was dropped.")
	if w := r.do(with(request("GET", root+"connections?dropped=ipc-1", nil), op)); strings.Contains(w.Body.String(), "was dropped") {
		t.Error("a connection that is open counts as dropped")
	}
	project := r.do(with(request("GET", root+"project?id=7", nil), op))
	want(t, project, 200, "Cancel what this project does")
	f(with(request("POST", root+"project/cancel", url.Values{"id": {"7"}}), op), 403, "secret of the form")
	f(with(request("POST", root+"project/cancel", url.Values{"id": {"7"}, "csrf": {secretOf(project)}}), op), 303, "")
	if got := r.ended[len(r.ended)-1]; got != "project 7" {
		t.Errorf("cancelled %q", got)
	}
	open := newRig(t)
	want(t, open.do(request("POST", root+"process/terminate", form())), 403, "may not change")
	if w := open.get(page); strings.Contains(w.Body.String(), "/terminate") {
		t.Error("a visitor without a login is shown the form")
	}
	if w := r.do(with(request("GET", page+"&done=terminated", nil), op)); w.Code != 200 || strings.Contains(w.Body.String(), "was terminated") {
		t.Errorf("a process that runs counts as terminated: %d", w.Code)
	}
}

// TestSessions: logins are bounded in number, age and idleness.
func TestSessions(t *testing.T) {
	r := newRig(t, withTokens)
	in := func(c *http.Cookie) bool { return r.do(with(request("GET", root+"store.json", nil), c)).Code == 200 }
	var all []*http.Cookie
	for range maxSessions {
		all = append(all, r.logIn(viewToken))
		r.clock.pass(time.Second)
	}
	for i, c := range all {
		if !in(c) {
			t.Fatalf("login %d of %d has ended", i+1, maxSessions)
		}
		r.clock.pass(time.Millisecond)
	}
	r.clock.pass(time.Second)
	if !in(all[0]) { // so that the second one was idle longest
		t.Fatal("the first login has ended")
	}
	all = append(all, r.logIn(viewToken))
	if in(all[1]) || !in(all[0]) || !in(all[2]) || !in(all[maxSessions]) || len(r.auth.sessions) != maxSessions {
		t.Errorf("one login too many: %d are there", len(r.auth.sessions))
	}
	r.clock.pass(sessionIdle - time.Second)
	if !in(all[0]) {
		t.Error("a login ends before it was idle long enough")
	}
	r.clock.pass(sessionIdle)
	if in(all[0]) {
		t.Error("an idle login goes on")
	}
	c := r.logIn(viewToken)
	for range sessionAge/sessionIdle*2 - 1 {
		if r.clock.pass(sessionIdle / 2); !in(c) {
			t.Fatal("a login in use ends before its age")
		}
	}
	if r.clock.pass(sessionIdle / 2); in(c) {
		t.Error("an old login goes on")
	}
}

// TestFailures: an address that fails too often waits, whatever it shows then; others do not.
func TestFailures(t *testing.T) {
	r := newRig(t, withTokens)
	try := func(peer, token string) *httptest.ResponseRecorder {
		q := bearer(request("GET", root+"store.json", nil), token)
		q.RemoteAddr = peer
		return r.do(q)
	}
	for range 3 * failuresAtOnce {
		want(t, try("10.0.0.1:5", viewToken), 200, "")
	}
	for i := range failuresAtOnce {
		if w := try(fmt.Sprint("10.0.0.1:", i), "wrong"); w.Code != 401 {
			t.Fatalf("failure %d of %d: %d", i+1, failuresAtOnce, w.Code)
		}
	}
	w := try("10.0.0.1:99", viewToken)
	want(t, w, 429, "too many wrong tokens")
	if wait := w.Header().Get("Retry-After"); wait != "6" {
		t.Errorf("Retry-After %q", wait)
	}
	form := request("POST", root+"login", url.Values{"csrf": {r.auth.formSecret(0)}, "token": {viewToken}})
	form.RemoteAddr = "10.0.0.1:7"
	want(t, r.do(form), 429, "")
	want(t, try("10.0.0.2:1", viewToken), 200, "")
	r.clock.pass(failurePause)
	want(t, try("10.0.0.1:1", viewToken), 200, "")
	want(t, try("10.0.0.1:1", "wrong"), 401, "")
	want(t, try("10.0.0.1:1", "wrong"), 429, "")

	// Addresses are counted apart up to a bound; those beyond it share one count.
	for i := range maxPeers {
		try(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250), "wrong")
	}
	if n := len(r.auth.peers); n != maxPeers {
		t.Fatalf("%d addresses are counted, at most %d", n, maxPeers)
	}
	for range failuresAtOnce {
		try("10.9.0.1:1", "wrong")
	}
	want(t, try("10.9.0.2:1", viewToken), 429, "")
	r.clock.pass((failuresAtOnce + 1) * failurePause)
	want(t, try("10.9.0.3:1", "wrong"), 401, "")
	if n := len(r.auth.peers); n != 1 {
		t.Errorf("%d addresses are counted after a pause", n)
	}
}

// TestTerminateWaits: a change that the server does not make in time is refused.
func TestTerminateWaits(t *testing.T) {
	r := newRig(t, withTokens, func(c *Config) {
		c.Source.Terminate = func(ctx context.Context, _, _ string) error {
			if _, limited := ctx.Deadline(); !limited {
				return nil
			}
			return context.DeadlineExceeded
		}
	})
	q := bearer(request("POST", root+"process/terminate", url.Values{"pid": {"p"}}), opToken)
	want(t, r.do(q), 503, "deadline exceeded")
}
