package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"trunkline/handlers/exacta"
	"trunkline/handlers/internal/httpd"
)

// mount is where a viewer is, which another one may follow.
type mount struct{ atomic.Pointer[Viewer] }

// ServeHTTP implements http.Handler.
func (m *mount) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.Load().ServeHTTP(w, r) }

// become ends the viewer, if there is one, and makes one of r.
func (m *mount) become(t testing.TB, r *rig) {
	t.Helper()
	var next *Viewer
	if r != nil {
		next = NewViewer(r.projects)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if v := m.Swap(next); v != nil {
		if err := v.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
}

// view serves a viewer of r and returns its address.
func view(t testing.TB, r *rig) (*mount, string) {
	t.Helper()
	v := new(mount)
	v.become(t, r)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: v, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Serve(httpd.Limit(ln, 64))
	}()
	t.Cleanup(func() {
		_ = h.Close() // the connections of sockets stay
		<-ended
		v.become(t, nil)
	})
	return v, ln.Addr().String()
}

// pageBytes bounds the page with all that belongs to it.
const pageBytes = 24 << 10

// TestPage: what the page consists of, its policy, and under which names it is served.
func TestPage(t *testing.T) {
	r := start(t, exacta.Config{WSOrigins: []string{"https://ops.example.org:8443"}}, nil)
	_, addr := view(t, r)
	f := func(path, host string, status int) (body string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Errorf("%s at %s: %s %v, want %d", path, host, resp.Status, err, status)
		}
		if status == http.StatusOK && (resp.Header.Get("Content-Security-Policy") != contentSecurity || resp.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
		return string(text)
	}
	html, css, js := f(viewerPath, "", 200), f(viewerPath+"page.css", "", 200), f(viewerPath+"page.js", "", 200)
	if n := len(html) + len(css) + len(js); n > pageBytes {
		t.Errorf("the page has %d bytes, at most %d", n, pageBytes)
	} else {
		t.Logf("the page has %d bytes: html %d, css %d, js %d", n, len(html), len(css), len(js))
	}
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
		if strings.Contains(js, word) {
			t.Errorf("page.js has %s", word)
		}
	}
	for _, word := range []string{" on", "style=", "http:", "https:", "//"} {
		if strings.Contains(strings.ReplaceAll(html, " on\n", ""), word+"click") || word != " on" && strings.Contains(html, word) {
			t.Errorf("index.html has %s", word)
		}
	}
	f(viewerPath+"nothing", "", 404)
	f(viewerPath+"..%2fviewer.go", "", 404)
	list := func() (got []listed) {
		t.Helper()
		var answer struct{ Projects []listed }
		if err := json.Unmarshal([]byte(f(viewerPath+"projects", "", 200)), &answer); err != nil || answer.Projects == nil {
			t.Fatal(err, answer)
		}
		return answer.Projects
	}
	if got := list(); len(got) != 0 {
		t.Errorf("open projects: %+v, want none", got)
	}
	dir := newProject(t)
	c := connect(t, "ws://"+r.addr+wsPath)
	project := c.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	if got, want := list(), (listed{project, dir, "Idle", 1, 1}); len(got) != 1 || got[0] != want {
		t.Errorf("open projects: %+v, want %+v", got, want)
	}
	for _, host := range []string{"localhost", "localhost:1", "10.1.2.3:50090", "[::1]:50090", "192.0.2.1", "ops.example.org:8443"} {
		f(viewerPath+"projects", host, 200)
	}
	for _, host := range []string{"evil.example.org", "ops.example.org", "localhost.evil.org:50090"} {
		f(viewerPath+"projects", host, 421)
	}
}

// TestViewer: its connections get events and are refused everything else; a page of the same
// address may connect.
func TestViewer(t *testing.T) {
	r, dir := start(t, exacta.Config{}, nil), newProject(t)
	_, addr := view(t, r)
	c := connect(t, "ws://"+r.addr+wsPath)
	project := c.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)

	v := connect(t, "ws://"+addr+viewerPath+"ws")
	v.send(subscribe(1, project, `,"after_stream_seq":0`))
	if m := v.next(); m.Type != "ack" || !m.OK {
		t.Fatalf("%+v", m)
	}
	if m := v.next(); m.StreamSeq != 1 {
		t.Fatalf("%+v", m)
	}
	for _, command := range []string{"OpenProject", "CloseProject", "ExtractIntent", "GeneratePlan", "ValidatePlan", "ApprovePlan", "RejectPlan", "ExecutePlan",
		"Pause", "Resume", "Cancel", "ApplyDiffSet", "Build", "Preview", "ExportDiagnostics"} {
		v.send(request(2, command, `"project_id":"`+project+`","path":`+quote(dir)))
		if m := v.next(); m.Type != "response" || m.OK || m.Error.Code != "CFG-002" || *m.RequestID != id(2) {
			t.Errorf("%s: %+v, want CFG-002", command, m)
		}
	}
	// The id that was refused is not taken: the other connection may use it.
	c.run(2, project, `Append "x" to a.txt`)
	v.until("StateChanged", "to", "Completed")

	from := strings.Replace(handshake, wsPath, viewerPath+"ws", 1)
	f := func(host, origin string, status int) {
		t.Helper()
		c, resp := dial(t, addr, strings.Replace(from, "localhost", host, 1)+"Origin: "+origin+"\r\n")
		defer c.Close()
		if resp.StatusCode != status {
			t.Errorf("origin %s at %s: %s, want %d", origin, host, resp.Status, status)
		}
	}
	f("localhost", "http://localhost:50090", 101)
	f("10.1.2.3:50090", "http://10.1.2.3:50090", 101)
	f("[2001:db8::1]:50090", "http://[2001:db8::1]:50090", 101)
	f("10.1.2.3:50090", "http://10.1.2.3:1", 403)
	f("10.1.2.3:50090", "http://evil.org", 403)
	f("evil.org:50090", "http://evil.org:50090", 421)
}
