package app

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
	"trunkline/handlers/threads/token"
)

// reloadable is a server whose settings the test changes.
type reloadable struct {
	*instance
	hangup chan os.Signal
	level  slog.LevelVar
	set    []string                 // the settings in force
	next   atomic.Pointer[[]string] // those of the next reload
}

// allOpen opens every listener that is not open by default.
var allOpen = []string{"toolhost.listen_addr=127.0.0.1:0", "exacta.listen_addr=127.0.0.1:0", "exacta.ws_addr=127.0.0.1:0"}

func startReloadable(t *testing.T, set ...string) *reloadable {
	t.Helper()
	r := &reloadable{hangup: make(chan os.Signal, 1), set: set}
	r.instance = launch(t, Options{Hangup: r.hangup, LogLevel: &r.level, Reload: func() (*config.Config, error) { return loadAgain(*r.next.Load()) }}, set...)
	r.await("msg=serving")
	return r
}

// loadAgain is settings where a test cannot be ended.
func loadAgain(set []string) (*config.Config, error) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(fs)
	args := []string{"--set=kernel.listen_addr=127.0.0.1:0", "--set=http.listen_addr=127.0.0.1:0", "--set=admin.listen_addr=127.0.0.1:0", "--set=kernel.loops=1",
		"--set=store.mode=memory"}
	for _, s := range set {
		args = append(args, "--set="+s)
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return config.Load(fs, nil)
}

// reload orders one with these settings over those in force, and returns its outcome.
func (r *reloadable) reload(set ...string) (out ops.Reload) {
	r.t.Helper()
	all := append(slices.Clone(r.set), set...)
	r.next.Store(&all)
	before := r.outcome().Count
	r.hangup <- os.Interrupt
	for out = r.outcome(); out.Count == before; out = r.outcome() {
		time.Sleep(time.Millisecond)
	}
	return out
}

func (r *reloadable) outcome() (out ops.Reload) {
	r.t.Helper()
	status, body := r.get("/reload")
	if err := json.Unmarshal([]byte(body), &out); status != 200 || err != nil {
		r.t.Fatalf("/reload = %d %s, %v", status, body, err)
	}
	return out
}

// must is reload for settings that have to be taken over, and nothing else.
func (r *reloadable) must(set ...string) {
	r.t.Helper()
	var want []string
	for _, s := range set {
		key, _, _ := strings.Cut(s, "=")
		want = append(want, key)
	}
	out := r.reload(set...)
	if !out.OK || len(out.Restart) > 0 || !slices.Equal(out.Changed, want) {
		r.t.Fatalf("%+v, want %v changed", out, want)
	}
	r.set = append(r.set, set...)
}

// line is a connection on which lines are asked.
type line struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (r *reloadable) line(what string) *line {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr(what))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &line{r.t, c, bufio.NewReader(c)}
}

// ask sends a text, if there is one, and returns the next line.
func (l *line) ask(text string) string {
	l.t.Helper()
	if text != "" {
		if _, err := io.WriteString(l, text+"\n"); err != nil {
			l.t.Fatal(err)
		}
	}
	got, err := l.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		l.t.Fatal(err)
	}
	return got
}

func (l *line) want(text, answer string) {
	l.t.Helper()
	if got := l.ask(text); !strings.Contains(got, answer) {
		l.t.Errorf("%s: %q, want %q in it", text, got, answer)
	}
}

// TestEveryLiveSetting has each setting that is marked live changed while a server runs, and looks
// at what that does. So the marks are true: a setting without a look here is not marked.
func TestEveryLiveSetting(t *testing.T) {
	looks := map[string]func(*testing.T){
		"log.level":                                   lookAtLogLevel,
		"kernel.max_connections":                      lookAtKernelConnections,
		"kernel.default_query_timeout_ms":             func(t *testing.T) { lookAtQueries(t, "kernel.default_query_timeout_ms", 0) },
		"kernel.max_query_timeout_ms":                 func(t *testing.T) { lookAtQueries(t, "kernel.max_query_timeout_ms", 29_000) },
		"kernel.max_streams_per_connection":           lookAtStreams,
		"kernel.max_event_types":                      lookAtEventTypes,
		"kernel.lame_duck_secs":                       lookAtLameDuck,
		"admin.slow_threshold_ms":                     lookAtSlowLog,
		"http.max_connections":                        lookAtWebConnections,
		"http.max_in_flight":                          lookAtWebRequests,
		"toolhost.max_connections":                    lookAtToolConnections,
		"threads.max_connections":                     lookAtThreadConnections,
		"threads.failed_auth_per_10s":                 lookAtFailures,
		"exacta.max_connections":                      lookAtProjectConnections,
		"exacta.max_open_projects":                    lookAtProjects,
		"exacta.auth_token_file":                      lookAtProjectToken,
		"admin.console_token_file":                    lookAtConsoleTokens,
		"admin.console_operator_token_file":           lookAtConsoleOperators,
		"threads.jwks_url":                            nil,
		"threads.jwks_file":                           nil,
		"threads.public_key_file":                     nil,
		"threads.hs256_secret_file":                   nil,
		"threads.audience":                            nil,
		"threads.max_token_ttl_secs":                  nil,
		"threads.revocation_file":                     nil,
		"threads.workspace_id":                        nil,
		"threads.rate_post_per_agent_per_minute":      nil,
		"threads.rate_post_per_thread_per_minute":     nil,
		"threads.rate_mcp_calls_per_agent_per_minute": nil,
		"threads.webhooks":                            lookAtWebhooks,
	}
	for _, section := range []string{"kernel", "http", "toolhost", "threads", "exacta"} {
		for _, name := range []string{"tls_cert_file", "tls_key_file", "tls_client_ca_file"} {
			looks[section+"."+name] = nil
		}
	}
	for _, row := range settings(t).Rows() {
		look, ok := looks[row.Key]
		if ok != (row.Reload == "live") {
			t.Errorf("%s is marked %s, and there is a look at it: %v", row.Key, row.Reload, ok)
		}
		if look != nil {
			t.Run(row.Key, look)
		}
	}
	t.Run("threads tokens", lookAtTokens)
	t.Run("threads rates", lookAtRates)
	t.Run("certificates", lookAtCertificates)
}

func lookAtLogLevel(t *testing.T) {
	r := startReloadable(t)
	r.must("log.level=error")
	if r.level.Level() != slog.LevelError {
		t.Errorf("the level is %v", r.level.Level())
	}
}

func lookAtKernelConnections(t *testing.T) {
	r := startReloadable(t, "kernel.max_connections=1")
	first := r.dial(r.addr("kernel ipc"))
	if _, err := first.GetProcessCounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.dial(r.addr("kernel ipc")).GetProcessCounts(t.Context())
	var refusal *ipcclient.Error
	if !errors.As(err, &refusal) || refusal.MaxConnections != 1 {
		t.Fatalf("one too many: %v", err)
	}
	r.must("kernel.max_connections=2")
	if _, err := r.dial(r.addr("kernel ipc")).GetProcessCounts(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.dial(r.addr("kernel ipc")).GetProcessCounts(t.Context()); !errors.As(err, &refusal) || refusal.MaxConnections != 2 {
		t.Errorf("one too many: %v", err)
	}
	r.must("kernel.max_connections=1") // the second one stays
	if _, err := first.GetProcessCounts(t.Context()); err != nil {
		t.Error(err)
	}
}

// lookAtQueries looks at the timeout that a handler sees, where the caller asks for one.
func lookAtQueries(t *testing.T, key string, asked int64) {
	r := startReloadable(t, "kernel.default_query_timeout_ms=1000")
	c := r.dial(r.addr("kernel ipc"))
	h, err := c.RegisterQueryHandler(t.Context(), ipcclient.RegisterQueryHandler{QueryTypes: []string{"q"}})
	if err != nil {
		t.Fatal(err)
	}
	r.must(key + "=4321")
	go func() { _, _ = c.Query(t.Context(), ipcclient.Query{QueryType: "q", TimeoutMS: asked}) }()
	q, err := h.Next(t.Context())
	if err != nil || q.TimeoutMS != 4321 {
		t.Errorf("the timeout is %d, %v", q.TimeoutMS, err)
	}
}

func lookAtStreams(t *testing.T) {
	r := startReloadable(t, "kernel.max_streams_per_connection=1")
	c := r.dial(r.addr("kernel ipc"))
	subscribe := func(name string) error {
		_, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"e"}, SubscriberID: name})
		return err
	}
	if err := subscribe("a"); err != nil {
		t.Fatal(err)
	}
	if subscribe("b") == nil {
		t.Fatal("two streams")
	}
	r.must("kernel.max_streams_per_connection=2")
	if err := subscribe("b"); err != nil {
		t.Error(err)
	}
	if subscribe("c") == nil {
		t.Error("three streams")
	}
}

func lookAtEventTypes(t *testing.T) {
	r := startReloadable(t, "kernel.max_event_types=1")
	c := r.dial(r.addr("kernel ipc"))
	subscribe := func(types ...string) error {
		_, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: types})
		return err
	}
	if subscribe("a", "b") == nil {
		t.Fatal("two types")
	}
	r.must("kernel.max_event_types=2")
	if err := subscribe("a", "b"); err != nil {
		t.Error(err)
	}
	if subscribe("a", "b", "c") == nil {
		t.Error("three types")
	}
}

// lookAtLameDuck: readiness goes first, and clients are served until the drain.
func lookAtLameDuck(t *testing.T) {
	r := startReloadable(t)
	r.must("kernel.lame_duck_secs=1")
	r.stop()
	r.await("lame_duck_secs=1")
	r.hangup <- os.Interrupt
	status, body := r.get("/readyz")
	if status == http.StatusServiceUnavailable && !strings.Contains(body, `"reasons":["lame_duck"]`) {
		t.Errorf("readyz = %d %s", status, body)
	}
	if _, err := r.dial(r.addr("kernel ipc")).GetProcessCounts(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.log.String(), "the server is stopping") {
		t.Error("a reload in the lame-duck time has no outcome")
	}
}

// lookAtSlowLog has a query without an answer take its millisecond.
func lookAtSlowLog(t *testing.T) {
	r := startReloadable(t, "admin.slow_threshold_ms=0")
	c := r.dial(r.addr("kernel ipc"))
	if _, err := c.RegisterQueryHandler(t.Context(), ipcclient.RegisterQueryHandler{QueryTypes: []string{"q"}}); err != nil {
		t.Fatal(err)
	}
	slow := func() string {
		if _, err := c.Query(t.Context(), ipcclient.Query{QueryType: "q", TimeoutMS: 5}); err == nil {
			t.Fatal("an answer")
		}
		_, body := r.get("/slowlog")
		return body
	}
	if got := slow(); !strings.Contains(got, `"total":0`) {
		t.Errorf("it is off: %s", got)
	}
	r.must("admin.slow_threshold_ms=1")
	if got := slow(); !strings.Contains(got, `"threshold_seconds":0.001`) || !strings.Contains(got, "commbus.Query") {
		t.Errorf("it is on: %s", got)
	}
}

func lookAtWebConnections(t *testing.T) {
	r := startReloadable(t, "http.max_connections=1")
	first := r.web()
	defer first.Close()
	fmt.Fprintf(first, "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	if status, _ := readAnswer(t, bufio.NewReader(first)); status != 404 {
		t.Fatal(status)
	}
	answered := make(chan int, 1)
	late := r.web()
	go func() {
		status, _ := post(t, late, base)
		answered <- status
	}()
	r.must("http.max_connections=2")
	if status := <-answered; status != 200 {
		t.Error(status)
	}
}

func lookAtWebRequests(t *testing.T) {
	r := startReloadable(t, "http.max_in_flight=1")
	r.begin()
	if status, body := post(t, r.web(), base); status != 503 || !strings.Contains(body, "at most 1") {
		t.Fatal(status, body)
	}
	r.must("http.max_in_flight=2")
	if status, body := post(t, r.web(), base); status != 200 {
		t.Error(status, body)
	}
	r.must("http.max_in_flight=1")
	if status, body := post(t, r.web(), base); status != 503 || !strings.Contains(body, "at most 1") {
		t.Error(status, body)
	}
}

func lookAtToolConnections(t *testing.T) {
	r := startReloadable(t, append(allOpen, "toolhost.max_connections=1")...)
	const noop = `{"aid":"AID.NOOP.v1"}`
	r.line("toolhost").want(noop, `"ok":true`)
	r.line("toolhost").want("", "too many connections")
	r.must("toolhost.max_connections=2")
	r.line("toolhost").want(noop, `"ok":true`)
	r.line("toolhost").want("", "too many connections")
}

func lookAtProjectConnections(t *testing.T) {
	r := startReloadable(t, append(allOpen, "exacta.max_connections=1")...)
	r.dialProjects("tcp", r.addr("exacta")).ask("CloseProject", "")
	r.line("exacta").want("", "open connections: 1")
	r.must("exacta.max_connections=2")
	r.dialProjects("tcp", r.addr("exacta")).ask("CloseProject", "")
	r.line("exacta").want("", "open connections: 2")
}

func lookAtProjects(t *testing.T) {
	r := startReloadable(t, append(allOpen, "exacta.max_open_projects=1")...)
	p := r.dialProjects("tcp", r.addr("exacta"))
	open := func() answered {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return p.ask("OpenProject", `"path":"`+root+`"`)
	}
	if a := open(); !a.OK {
		t.Fatalf("%+v", a)
	}
	if a := open(); a.Error.Code != "RES-004" {
		t.Fatalf("%+v", a)
	}
	r.must("exacta.max_open_projects=2")
	if a := open(); !a.OK {
		t.Errorf("%+v", a)
	}
}

func lookAtProjectToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	auth := func(text string) string { return `{"type":"auth","token":"` + text + `"}` }
	one, two := strings.Repeat("1", 16), strings.Repeat("2", 16)
	write(one)
	r := startReloadable(t, append(allOpen, "exacta.auth_token_file="+file)...)
	r.line("exacta").want(auth(one), `"ok":true`)
	write(two)
	out := r.reload()
	if !out.OK || !slices.Equal(out.Changed, []string{"exacta.auth_token_file"}) {
		t.Fatalf("%+v", out)
	}
	r.line("exacta").want(auth(one), "SEC-002")
	r.line("exacta").want(auth(two), `"ok":true`)
	web := func(text string) int {
		req, _ := http.NewRequest(http.MethodGet, "http://"+r.addr("exacta websocket")+"/exacta/v1/ws", nil)
		for name, value := range map[string]string{"Authorization": "Bearer " + text, "Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(name, value)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if old, now := web(one), web(two); old != 401 || now != 101 {
		t.Errorf("over WebSocket %d with the old token and %d with the new one", old, now)
	}
	write("short")
	if out := r.reload(); out.OK || !strings.Contains(out.Error, "exacta.auth_token_file") {
		t.Errorf("%+v", out)
	}
	r.line("exacta").want(auth(two), `"ok":true`)
}

// listenersOf are the names of the TLS listeners of each section in the banner.
var listenersOf = map[string][]string{"kernel": {"kernel ipc"}, "http": {"http"}, "toolhost": {"toolhost"}, "threads": {"threads http", "threads lines"}, "exacta": {"exacta", "exacta websocket"}}

// lookAtCertificates: on every listener the next handshake shows the new certificate and asks for
// one of the new authority, and connections that were there stay.
func lookAtCertificates(t *testing.T) {
	certA, keyA, mineA, _ := identity(t)
	certB, keyB, mineB, _ := identity(t)
	files := func(cert, key string) (set []string) {
		for _, section := range []string{"kernel", "http", "toolhost", "threads", "exacta"} {
			set = append(set, section+".tls_cert_file="+cert, section+".tls_key_file="+key, section+".tls_client_ca_file="+cert)
		}
		return set
	}
	key := filepath.Join(t.TempDir(), "key")
	_, public, err := token.NewKey()
	if err == nil {
		err = os.WriteFile(key, public, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	set := append(slices.Clone(allOpen), "threads.public_key_file="+key, "threads.issuer=i", "threads.listen_addr=127.0.0.1:0", "threads.lines_addr=127.0.0.1:0")
	r := startReloadable(t, append(set, files(certA, keyA)...)...)
	sessions := tls.NewLRUClientSessionCache(64)
	// handshake returns what the server shows, and why it ends the connection at once.
	handshake := func(what string, mine tls.Certificate) (shown []byte, conn *tls.Conn, err error) {
		cfg := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{mine}, ClientSessionCache: sessions} //nolint:gosec // the test compares it
		conn, err = tls.Dial("tcp", r.addr(what), cfg)
		if err != nil {
			return nil, nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.ConnectionState().PeerCertificates[0].Raw, conn, nil
	}
	kernel := r.dial(r.addr("kernel ipc"), ipcclient.WithTLS(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{mineA}})) //nolint:gosec // the test checks who serves, not by whom it is signed
	if _, err := kernel.GetProcessCounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.must(files(certB, keyB)...)
	for section, names := range listenersOf {
		for _, what := range names {
			shown, _, err := handshake(what, mineB)
			if err != nil || string(shown) != string(mineB.Certificate[0]) {
				t.Errorf("%s, %s: the old certificate is shown, or %v", section, what, err)
			}
			if _, old, err := handshake(what, mineA); err == nil {
				_ = old.SetDeadline(time.Now().Add(time.Minute))
				if _, err = old.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "tls:") {
					t.Errorf("%s, %s: a certificate of the old authority is taken: %v", section, what, err)
				}
			}
		}
	}
	if _, err := kernel.GetProcessCounts(t.Context()); err != nil {
		t.Errorf("a connection that was there: %v", err)
	}
}

// TestCertificateFilesAreReadAgain where their names stay, and a bad one changes nothing at all.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	cert, key, mine, _ := identity(t)
	certB, keyB, mineB, _ := identity(t)
	r := startReloadable(t, "kernel.tls_cert_file="+cert, "kernel.tls_key_file="+key)
	shown := func() string {
		c, err := tls.Dial("tcp", r.addr("kernel ipc"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test compares it
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	move := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out := r.reload(); !out.OK || len(out.Changed)+len(out.Restart) > 0 {
		t.Errorf("nothing has changed: %+v", out)
	}
	move(certB, cert) // its key is still the old one
	out := r.reload("log.level=error", "kernel.max_connections=3")
	if out.OK || !strings.Contains(out.Error, "kernel.tls_cert_file") || len(out.Changed) > 0 || r.level.Level() == slog.LevelError {
		t.Errorf("%+v, level %v", out, r.level.Level())
	}
	if shown() != string(mine.Certificate[0]) {
		t.Error("a certificate without its key is shown")
	}
	if log := r.log.String(); !strings.Contains(log, "cannot reload") {
		t.Errorf("the log has no reason: %s", log)
	}
	move(keyB, key)
	if out := r.reload(); !out.OK || !slices.Equal(out.Changed, []string{"kernel.tls_cert_file"}) {
		t.Errorf("%+v", out)
	}
	if _, m := r.get("/metrics"); !strings.Contains(m, fmt.Sprintf(`expiry_timestamp_seconds{listener="kernel"} %v`, float64(mineB.Leaf.NotAfter.Unix()))) {
		t.Errorf("the metric has another end than %v", mineB.Leaf.NotAfter)
	}
	if shown() != string(mineB.Certificate[0]) {
		t.Error("the old certificate is shown")
	}
}

// TestAReloadIsShown: the console has the values in force while others read them, and the
// supervisor gets the reason of a refusal on one line.
func TestAReloadIsShown(t *testing.T) {
	var states banner
	r := &reloadable{hangup: make(chan os.Signal, 1)}
	r.instance = launch(t, Options{Hangup: r.hangup, Notify: func(s string) { fmt.Fprintf(&states, "%s\n--\n", s) },
		Reload: func() (*config.Config, error) { return loadAgain(*r.next.Load()) }})
	r.await("msg=serving")
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for range 20 {
			r.get("/console/settings.json")
			r.get("/monitor?conn=ipc-99")
		}
	}()
	r.must("kernel.max_connections=4321")
	<-asked
	if _, body := r.get("/console/settings.json"); !strings.Contains(body, `"value":"4321"`) {
		t.Errorf("the console shows other settings: %.300s", body)
	}
	if out := r.reload("kernel.loops=-1", "kernel.max_streams_per_connection=0"); out.OK {
		t.Errorf("%+v", out)
	}
	want := "READY=1\nSTATUS=serving with the settings of before: cannot use these settings:   cannot use kernel.loops"
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(states.String(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) { // the outcome is shown first
			t.Fatalf("%q has no %q", states.String(), want)
		}
	}
}

// TestAReloadThatHangsHoldsNoStopUp: its files may be on a disk that does not answer.
func TestAReloadThatHangsHoldsNoStopUp(t *testing.T) {
	asked, answer, level := make(chan struct{}), make(chan struct{}), new(slog.LevelVar)
	hangup := make(chan os.Signal, 1)
	i := launch(t, Options{Hangup: hangup, LogLevel: level, Reload: func() (*config.Config, error) {
		asked <- struct{}{}
		<-answer
		return loadAgain([]string{"log.level=error"})
	}})
	i.await("msg=serving")
	hangup <- os.Interrupt
	<-asked
	if err := i.end(); err != nil {
		t.Error(err)
	}
	close(answer)
	for !strings.Contains(i.log.String(), "the server is stopping") {
		time.Sleep(time.Millisecond)
	}
	if level.Level() != slog.LevelInfo {
		t.Errorf("it was taken over all the same: %v", level.Level())
	}
}

// TestWhatAReloadRefuses is all or nothing.
func TestWhatAReloadRefuses(t *testing.T) {
	cert, key, _, _ := identity(t)
	r := startReloadable(t, "kernel.default_query_timeout_ms=1000", "kernel.max_query_timeout_ms=2000")
	f := func(want string, set ...string) {
		t.Helper()
		out := r.reload(append(set, "log.level=debug")...)
		if out.OK || !strings.Contains(out.Error, want) || len(out.Changed)+len(out.Restart) > 0 || r.level.Level() != slog.LevelInfo {
			t.Errorf("%q: %+v, want %q", set, out, want)
		}
	}
	f("unknown setting kernel.nope", "kernel.nope=1")
	f("want an integer from 1", "kernel.max_connections=0")
	f("it is above kernel.max_query_timeout_ms", "kernel.default_query_timeout_ms=2001")
	// What takes a restart counts with its old value: the address is still that of the start.
	out := r.reload("kernel.loops=2", "kernel.tls_cert_file="+cert, "kernel.tls_key_file="+key, "log.level=warn")
	if !out.OK || !slices.Equal(out.Restart, []string{"kernel.tls_cert_file", "kernel.tls_key_file", "kernel.loops"}) || !slices.Equal(out.Changed, []string{"log.level"}) {
		t.Errorf("%+v", out)
	}
	if r.outcome().Count != 4 {
		t.Errorf("%+v", r.outcome())
	}
}
