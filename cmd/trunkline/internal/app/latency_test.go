package app

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
	"trunkline/handlers/threads/token"
)

// everywhere is a server with all its listeners.
type everywhere struct {
	*instance
	bearer string
	pool   *x509.CertPool
}

func startEverywhere(t *testing.T, set ...string) *everywhere {
	t.Helper()
	private, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	e := &everywhere{}
	e.bearer, err = token.Sign(private, &token.Claims{Agent: "lead", Workspace: "wk", Session: "s", ID: "j", Role: token.Coordinator,
		Issued: float64(now), Expires: float64(now + 3600)}, "https://issuer.example", token.DefaultAudience)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, _, pool := identity(t)
	e.pool = pool
	e.instance = start(t, append(set, "store.mode=always", "store.dir="+filepath.Join(dir, "store"), "http.tls_cert_file="+certFile, "http.tls_key_file="+keyFile,
		"http.listen_addr=0.0.0.0:0", "http.insecure_bind=true", "toolhost.listen_addr=unix://"+filepath.Join(dir, "tools"), "toolhost.root="+dir,
		"threads.public_key_file="+key, "threads.issuer=https://issuer.example", "threads.listen_addr=127.0.0.1:0", "threads.lines_addr=127.0.0.1:0",
		"threads.supervisor_mode=off", "exacta.listen_addr=unix://"+filepath.Join(dir, "projects"), "exacta.ws_addr=127.0.0.1:0",
		"kernel.loops=2", "store.snapshot_interval_secs=1")...)
	return e
}

// rows returns what /latency shows, by protocol and method.
func (i *instance) rows() map[string]obs.Latency {
	i.t.Helper()
	var l ops.Latencies
	i.load("/latency", &l)
	rows := map[string]obs.Latency{}
	for _, row := range l.Latencies {
		rows[row.Protocol+" "+row.Method] = row
	}
	return rows
}

// load reads a document of the admin endpoint.
func (i *instance) load(path string, v any) {
	i.t.Helper()
	if status, body := i.get(path); status != 200 || json.Unmarshal([]byte(body), v) != nil {
		i.t.Fatalf("%s: %d %s", path, status, body)
	}
}

// awaitRow waits until a row has its counts: an answer may be there a moment before it is counted.
func (i *instance) awaitRow(name string, count, errors uint64) {
	i.t.Helper()
	var row obs.Latency
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if row = i.rows()[name]; row.Count == count && row.Errors == errors {
			if row.SumSeconds <= 0 || row.P50 <= 0 || row.P50 > row.P90 || row.P90 > row.P99 || row.P99 > row.P999 {
				i.t.Errorf("%s: %+v", name, row)
			}
			return
		}
	}
	i.t.Errorf("%s: %+v, want %d of which %d errors", name, row, count, errors)
}

// use makes a known number of requests of every protocol.
func (e *everywhere) use() (open []net.Conn) {
	t := e.t
	c := e.dial(e.addr("kernel ipc"))
	for n := range 3 {
		if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: fmt.Sprint("p", n), UserID: "u"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := c.GetProcess(t.Context(), "ghost"); err == nil {
			t.Fatal("a process that does not exist was found")
		}
	}
	_, port, _ := net.SplitHostPort(e.addr("http"))
	for _, body := range []string{base, base, "no JSON"} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: e.pool})
		if err != nil {
			t.Fatal(err)
		}
		post(t, conn, body)
	}
	tools := e.instance.lines()
	open = append(open, tools.conn)
	tools.ask(`{"aid":"AID.NOOP.v1"}`, `"ok":true`)
	if _, err := io.WriteString(tools.conn, strings.Repeat(`{"aid":"AID.NOOP.v1"}`+"\n", 4)); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := tools.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	tools.ask(`{"aid":"_health"}`, `"ok":true`)
	tools.ask(`{"aid":"AID.NOT.THERE.v1"}`, `"ok":false`)
	tools.ask(`{"aid":"AID.FILE.READ.v1","inputs":{"path":"not-there"}}`, `"ok":false`)
	e.useThreads(&open)
	p := e.dialProjects("unix", strings.TrimPrefix(e.addr("exacta"), "unix://"))
	open = append(open, p.Conn)
	p.open(newProject(t))
	p.ask("Pause", `"execution_id":"00000000-0000-4000-8000-000000000009"`)
	p.ask("Pause", `"execution_id":"00000000-0000-4000-8000-000000000009"`)
	return open
}

// askThreads asks agent threads over HTTP, and returns the answer.
func (e *everywhere) askThreads(path, body string) string {
	e.t.Helper()
	req, _ := http.NewRequest(http.MethodPost, "http://"+e.addr("threads http")+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+e.bearer)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		e.t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(answer)
}

func (e *everywhere) useThreads(open *[]net.Conn) {
	t := e.t
	e.askThreads("/v1/create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["lead"]}`)
	e.askThreads("/v1/create_thread", `{"workspace_id":"wk"}`)
	e.askThreads("/v1/nowhere", `{}`)
	conn, err := net.Dial("tcp", e.addr("threads lines"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	*open = append(*open, conn)
	in := bufio.NewReader(conn)
	for _, line := range []string{
		fmt.Sprintf(`{"id":1,"method":"auth","params":{"protocol":"threads/1","token":%q}}`, e.bearer), `{"id":2,"method":"ping"}`,
		`{"id":3,"method":"create_thread","params":{"workspace_id":"wk","title":"t","type":"workflow","participants":["lead"]}}`,
	} {
		_, _ = io.WriteString(conn, line+"\n")
		if answer, err := in.ReadString('\n'); err != nil || !strings.Contains(answer, `"ok":true`) {
			t.Fatalf("%s: %s %v", line, answer, err)
		}
	}
}

// exceptions are the metrics whose names break a rule of Prometheus, with the reason.
var exceptions = map[string]string{
	"machina_tool_duration_ms_total": "the contract of the tool server gives the name (toolhost §4.12)",
}

// TestEveryProtocolIsMeasured: all requests of all protocols are in the histograms, all connections
// in the list, and the metrics of a server with all its listeners keep the rules of Prometheus.
func TestEveryProtocolIsMeasured(t *testing.T) {
	e := startEverywhere(t)
	open := e.use()
	for name, want := range map[string][2]uint64{
		"ipc kernel.CreateProcess":  {3, 0},
		"ipc kernel.GetProcess":     {2, 2},
		"http process":              {3, 1},
		"toolhost AID.NOOP.v1":      {5, 0},
		"toolhost _health":          {1, 0},
		"toolhost invalid":          {1, 1},
		"toolhost AID.FILE.READ.v1": {1, 1},
		"threads create_thread":     {3, 1},
		"threads invalid":           {1, 1},
		"threads auth":              {1, 0},
		"threads ping":              {1, 0},
		"exacta OpenProject":        {1, 0},
		"exacta Pause":              {2, 2},
		"server tool_run":           {6, 1},
		"server tool_queue_wait":    {1, 0},
	} {
		e.awaitRow(name, want[0], want[1])
	}
	if rows := e.rows(); rows["server store_commit"].Count == 0 || rows["server store_queue_wait"].Count == 0 {
		t.Errorf("%+v", rows)
	}
	var l ops.Connections
	e.load("/connections?sort=age", &l)
	protocols := map[string]int{}
	for _, c := range l.Connections {
		protocols[c.Protocol]++
		if c.Listener == "" || c.BytesIn == 0 || c.BytesOut == 0 || c.State != "open" {
			t.Errorf("%+v", c)
		}
	}
	if protocols["ipc"] != 1 || protocols["toolhost"] != 1 || protocols["threads"] != 1 || protocols["exacta"] != 1 {
		t.Errorf("%v of %d connections", protocols, len(open))
	}
	web, err := net.Dial("tcp", e.addr("threads http"))
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	var before, o obs.Overview
	e.load("/overview", &before)
	if _, err := io.WriteString(web, "GET /v1/nowhere HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := web.Read(make([]byte, 1)); err != nil { // the server has it
		t.Fatal(err)
	}
	if e.load("/overview", &o); o.Connections["threads"] != 2 || o.BytesIn <= before.BytesIn {
		t.Errorf("the overview has %v, %d bytes in, before %d", o.Connections, o.BytesIn, before.BytesIn)
	}
	e.load("/connections?protocol=toolhost", &l)
	if l.Total != 1 || l.Connections[0].ID != "toolhost-1" {
		t.Errorf("%+v", l)
	}
	metrics := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, metrics = e.get("/metrics"); strings.Contains(metrics, "\ntrunkline_store_last_snapshot_timestamp_seconds ") {
			break // all that there is is shown
		}
	}
	for _, want := range []string{
		`trunkline_request_duration_seconds_count{method="kernel.CreateProcess",protocol="ipc"} 3`,
		`trunkline_request_errors_total{method="kernel.GetProcess",protocol="ipc"} 2`,
		`trunkline_step_duration_seconds_count{step="tool_run"} 6`,
		`trunkline_certificate_expiry_timestamp_seconds{listener="http"} `,
	} {
		if !strings.Contains(metrics, "\n"+want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(metrics)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if exceptions[p.Metric] == "" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	checkDeploy(t, metrics)
}

// nameOf matches the names of metrics in rules and dashboards.
var nameOf = regexp.MustCompile(`\b(?:trunkline|machina|process|go)_[a-z0-9_]+`)

// checkDeploy holds rules and dashboard to the metrics that there are.
func checkDeploy(t *testing.T, metrics string) {
	t.Helper()
	for i := range leaseMetrics { // a server alone does not show them
		metrics += "\n# TYPE " + leaseMetrics[i].Name + " "
	}
	for i := range nodeMetrics {
		metrics += "\n# TYPE " + nodeMetrics[i].Name + " "
	}
	for _, path := range []string{"deploy/prometheus/trunkline.rules.yml", "deploy/prometheus/trunkline.test.yml", "deploy/grafana/trunkline.json"} {
		text, err := os.ReadFile(filepath.Join("../../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		names := nameOf.FindAll(text, -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", path)
		}
		slices.SortFunc(names, bytes.Compare)
		for _, name := range slices.CompactFunc(names, bytes.Equal) {
			family := string(name)
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				if whole, ok := strings.CutSuffix(family, part); ok && strings.Contains(metrics, "# TYPE "+whole+" histogram\n") {
					family = whole
				}
			}
			if !strings.Contains(metrics, "\n# TYPE "+family+" ") {
				t.Errorf("%s names %s, which a server with all listeners does not show", path, name)
			}
		}
	}
}

// TestASlowChangeIsInTheSlowLog: a durable call over a slow disk is there with the wait for it.
func TestASlowChangeIsInTheSlowLog(t *testing.T) {
	const pause = 30 * time.Millisecond
	var slow atomic.Bool
	open := opener(func() {
		if slow.Load() {
			time.Sleep(pause)
		}
	}, new(atomic.Bool))
	i := launch(t, Options{openStore: open}, "store.mode=always", "store.dir="+t.TempDir(), "admin.slow_threshold_ms=25", "admin.slow_entries=3")
	i.await("msg=serving")
	c := i.dial(i.addr("kernel ipc"))
	create := func(pid string) {
		t.Helper()
		if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: pid}); err != nil {
			t.Fatal(err)
		}
	}
	create("quick")
	var before obs.SlowLog
	i.load("/slowlog", &before)
	slow.Store(true)
	for n := range 4 {
		create(fmt.Sprint("slow", n))
	}
	var l obs.SlowLog
	i.load("/slowlog", &l)
	if l.ThresholdSeconds != 0.025 || l.Total-before.Total != 4 || len(l.Entries) != 3 {
		t.Fatalf("%+v after %+v", l, before)
	}
	for n, s := range l.Entries {
		if s.ID != l.Total-uint64(n) || s.Protocol != "ipc" || s.Method != "kernel.CreateProcess" || s.Conn != "ipc-1" || s.Peer == "" || s.Seconds < pause.Seconds() {
			t.Errorf("%+v", s)
		}
	}
	i.load("/slowlog?limit=1", &l)
	if len(l.Entries) != 1 {
		t.Errorf("%+v", l)
	}
}

func TestCertificateExpiry(t *testing.T) {
	_, _, cert, _ := identity(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	f := func(c *tls.Config, want bool) {
		t.Helper()
		if at, ok := notAfter(c); ok != want || ok && !at.Equal(leaf.NotAfter) {
			t.Errorf("%s, %v", at, ok)
		}
	}
	f(&tls.Config{Certificates: []tls.Certificate{cert}}, true)
	f(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }}, true)
	f(&tls.Config{}, false)
	f(nil, false)
}
