package app

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/handlers/exchange"
)

// post sends an envelope over conn, which it closes, and returns what came back.
func post(t *testing.T, conn net.Conn, body string) (status int, answer string) {
	t.Helper()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/process HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return readAnswer(t, bufio.NewReader(conn))
}

func readAnswer(t *testing.T, r *bufio.Reader) (status int, answer string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (i *instance) web() net.Conn {
	i.t.Helper()
	network, addr := "tcp", i.addr("http")
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		network, addr = "unix", path
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		i.t.Fatal(err)
	}
	return c
}

const base = `{"envelope_id":"env_00000000000000a1","raw_input":"hi","outputs":{},"current_stage":"start","terminated":false}`

// TestWebServes is the example of envelope §9.12, and what the counters make of it.
func TestWebServes(t *testing.T) {
	i := start(t, "http.max_body_bytes=1000", "http.default_stage_order=first,second")
	f := func(body string, status int, want ...string) {
		t.Helper()
		got, answer := post(t, i.web(), body)
		for _, w := range want {
			if got != status || !strings.Contains(answer, w) {
				t.Errorf("%.100s: %d %s, want %d with %s", body, got, answer, status, w)
			}
		}
	}
	f(base, 200, `"envelope_id":"env_00000000000000a1"`, `"user_id":"anonymous"`, `"current_stage":"first"`, `"session_id":"sess_`)
	f(`{`, 400, `"code":"parse_error"`)
	f(`{}`, 422, `"code":"invalid_envelope"`)
	f(strings.Repeat(" ", 1001), 413, `"code":"too_large"`)
	_, metrics := i.get("/metrics")
	for _, want := range []string{
		`trunkline_http_requests_total{class="2xx"} 1`,
		`trunkline_http_requests_total{class="4xx"} 3`,
		`trunkline_http_requests_total{class="5xx"} 0`,
		`trunkline_http_requests_in_flight 0`,
		`trunkline_http_connections_open `,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestSettingsReachTheWeb(t *testing.T) {
	c := &settings(t, "http.max_body_bytes=1", "http.max_in_flight=2", "http.max_connections=3", "http.read_header_timeout_secs=4",
		"http.read_body_timeout_secs=5", "http.idle_timeout_secs=6", "http.write_timeout_secs=7", "http.max_header_bytes=8000").HTTP
	want := exchange.HTTPConfig{
		MaxBodyBytes: 1, MaxInFlight: 2, MaxConnections: 3, ReadHeaderTimeout: 4e9, ReadBodyTimeout: 5e9, IdleTimeout: 6e9,
		WriteTimeout: 7e9, MaxHeaderBytes: 8000,
	}
	if got := c.HTTPConfig; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWebCanBeSwitchedOff(t *testing.T) {
	i := start(t, "http.listen_addr=")
	if b := i.banner.String(); !strings.Contains(b, "\nhttp off\n") {
		t.Errorf("banner:\n%s", b)
	}
	if _, m := i.get("/metrics"); strings.Contains(m, "trunkline_http_") {
		t.Error("metrics of a listener that is off")
	}
}

func TestWebOverAUnixSocket(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "web.sock")
	i := start(t, "http.listen_addr=unix://"+sock)
	if info, err := os.Stat(sock); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if status, answer := post(t, i.web(), base); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket outlives its server: %v", err)
	}
}

// TestWebOverTLS: the files of http. open an address beyond loopback, to holders of a certificate
// only (kernel-ipc D41).
func TestWebOverTLS(t *testing.T) {
	certFile, keyFile, cert, pool := identity(t)
	i := start(t, "http.listen_addr=0.0.0.0:0", "http.tls_cert_file="+certFile, "http.tls_key_file="+keyFile,
		"http.tls_client_ca_file="+certFile)
	if !strings.Contains(i.banner.String(), " (tls)\n") || strings.Contains(i.log.String(), "WARN msg=http.insecure_bind") {
		t.Errorf("banner:\n%s\nlog:\n%s", i.banner.String(), i.log.String())
	}
	_, port, _ := net.SplitHostPort(i.addr("http"))
	f := func(mine []tls.Certificate, want int) {
		t.Helper()
		c, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: pool, Certificates: mine, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := post(t, c, base); status != want {
			t.Errorf("%d %s, want %d", status, answer, want)
		}
	}
	f([]tls.Certificate{cert}, 200)
	f(nil, 0)
}

func TestWebWithoutTLSBeyondLoopbackIsLoud(t *testing.T) {
	i := start(t, "http.listen_addr=0.0.0.0:0", "http.insecure_bind=true")
	if !strings.Contains(i.log.String(), "http.insecure_bind is on") {
		t.Errorf("log:\n%s", i.log.String())
	}
}

// begin sends the head of a request and waits until it is in flight: its body is still to come.
func (i *instance) begin() (net.Conn, *bufio.Reader) {
	i.t.Helper()
	c := i.web()
	i.t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /api/v1/process HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(base))
	for {
		if _, m := i.get("/metrics"); strings.Contains(m, "trunkline_http_requests_in_flight 1") {
			return c, bufio.NewReader(c)
		}
	}
}

func TestDrainLetsARequestFinish(t *testing.T) {
	i := start(t, "kernel.shutdown_grace_secs=30")
	c, r := i.begin()
	i.stop()
	for ready := true; ready; {
		status, _ := i.get("/readyz")
		ready = status == http.StatusOK
	}
	if _, err := io.WriteString(c, base); err != nil {
		t.Fatal(err)
	}
	if status, answer := readAnswer(t, r); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
}

// TestDrainEndsWithTheGrace: a request whose body never comes is cut off, which is no failure.
func TestDrainEndsWithTheGrace(t *testing.T) {
	i := start(t, "kernel.shutdown_grace_secs=0")
	_, r := i.begin()
	if err := i.end(); err != nil {
		t.Error(err)
	}
	if status, answer := readAnswer(t, r); status == 200 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestTakenHTTPAddressLeavesNothingBehind(t *testing.T) {
	i := start(t)
	sock := "unix://" + filepath.Join(t.TempDir(), "t.sock")
	again := func(set ...string) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return Run(ctx, settings(t, set...), Options{Banner: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	}
	err := again("kernel.listen_addr="+sock, "http.listen_addr=127.0.0.1:0,"+i.addr("http"))
	if err == nil || !strings.Contains(err.Error(), "cannot open http.listen_addr") {
		t.Errorf("the address was bound twice: %v", err)
	}
	web := "unix://" + filepath.Join(t.TempDir(), "w.sock")
	if err := again("kernel.listen_addr="+sock, "http.listen_addr="+web, "admin.listen_addr="+i.addr("admin")); err == nil {
		t.Error("the admin address was bound twice")
	}
	if err := again("kernel.listen_addr="+sock, "http.listen_addr="+web); err != nil {
		t.Errorf("a listener was left behind: %v", err)
	}
}
