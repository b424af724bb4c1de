package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/wire"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

// runHandler registers a query handler that never answers.
func runHandler(t *testing.T, addr, queryType string) *ipcclient.Conn {
	t.Helper()
	conn, err := ipcclient.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RegisterQueryHandler(t.Context(), ipcclient.RegisterQueryHandler{QueryTypes: []string{queryType}}); err != nil {
		t.Fatal(err)
	}
	return conn
}

// lines is a writer that reports when a line has come.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

func newLines() *lines { return &lines{came: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.came <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// cut forgets what has come.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// await waits until the text holds part.
func (l *lines) await(t *testing.T, part string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !strings.Contains(l.String(), part) {
		select {
		case <-l.came:
		case <-limit:
			t.Fatalf("%q never came; got %q", part, l)
		}
	}
}

// startSub runs sub beside the test and returns once it is subscribed; wait gives its exit code.
func startSub(t *testing.T, addr string, args ...string) (stdout, stderr *lines, wait func() int) {
	t.Helper()
	stdout, stderr = newLines(), newLines()
	done := make(chan int, 1)
	go func() {
		done <- runClientTo(t, strings.NewReader(""), stdout, stderr, append([]string{"sub", "--addr", addr}, args...)...)
	}()
	stderr.await(t, "subscribed to")
	return stdout, stderr, func() int { return <-done }
}

func TestSubPrintsEvents(t *testing.T) {
	srv := ipctest.Start(t, ipctest.With(func(c *ipctest.Config) {
		c.Now = func() (mono, wall int64) { return 1, 1700000000000 }
	}))
	stdout, _, wait := startSub(t, srv.Addr, "a.b", "c", "--count", "3")
	runClient(t, "", "pub", "a.b", `{"n":1, "html":"<&>"}`, "--source", "t", "--addr", srv.Addr).want(t, 0, "delivered 1\n", "")
	runClient(t, "", "pub", "other", "--addr", srv.Addr).want(t, 0, "delivered 0\n", "")
	runClient(t, " [1]\n", "pub", "c", "-", "--addr", srv.Addr, "--json").want(t, 0, `{"delivered":1}`+"\n", "")
	runClient(t, "", "pub", "c", "--addr", srv.Addr).want(t, 0, "delivered 1\n", "")
	if code := wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	want := `{"event_type":"a.b","payload":{"n":1,"html":"<&>"},"timestamp_ms":1700000000000,"source":"t"}` + "\n" +
		`{"event_type":"c","payload":[1],"timestamp_ms":1700000000000,"source":""}` + "\n" +
		`{"event_type":"c","payload":{},"timestamp_ms":1700000000000,"source":""}` + "\n"
	if stdout.String() != want {
		t.Fatalf("got %s", stdout)
	}
}

func TestSubEndsWellOnSIGINT(t *testing.T) {
	srv := ipctest.Start(t)
	_, stderr, wait := startSub(t, srv.Addr, "a")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code != 0 || strings.Contains(stderr.String(), "hint") {
		t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
}

func TestSubTellsWhenTheServerEnds(t *testing.T) {
	srv := ipctest.Start(t)
	_, stderr, wait := startSub(t, srv.Addr, "a", "--subscriber-id", "me", "--no-reconnect")
	srv.Drain()
	if code := wait(); code != 5 || !strings.Contains(stderr.String(), "the server ended the subscription") {
		t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
	if !strings.Contains(stderr.String(), "1 event types as me\n") {
		t.Fatalf("stderr %s", stderr)
	}
}

func TestSubErrors(t *testing.T) {
	srv := ipctest.Start(t)
	runClient(t, "", "sub", "--addr", srv.Addr).want(t, 2, "", "missing argument TYPE...")
	runClient(t, "", "sub", "", "--addr", srv.Addr).want(t, 2, "", "INVALID_ARGUMENT: event_types[0] must be a non-empty string\nhint: commbus.Subscribe takes")
	runClient(t, "", "sub", "a", "--count", "-1", "--addr", srv.Addr).want(t, 2, "", "it must not be negative")
	srv.Drain()
	runClient(t, "", "sub", "a", "--addr", srv.Addr).want(t, 5, "", "hint: is the server running?")
}

// TestSubOfPatterns: a wildcard makes a pattern, unless --exact is there; what is neither is
// refused before anything is sent.
func TestSubOfPatterns(t *testing.T) {
	srv := ipctest.Start(t)
	stdout, stderr, wait := startSub(t, srv.Addr, "a.*", "b", "c.>", "--count", "3", "--subscriber-id", "me")
	exact, _, waitExact := startSub(t, srv.Addr, "a.*", "--exact", "--count", "1")
	for _, typ := range []string{"other", "a", "a.x", "a.x.y", "b", "c.d.e"} {
		runClient(t, "", "pub", typ, "--addr", srv.Addr)
	}
	if code := wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	runClient(t, "", "pub", "a.*", "--addr", srv.Addr).want(t, 0, "delivered 1\n", "")
	if code := waitExact(); code != 0 {
		t.Fatalf("exit code %d with --exact", code)
	}
	if got := strings.Join(typesOf(t, stdout.String()), " "); got != "a.x b c.d.e" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(typesOf(t, exact.String()), " "); got != "a.*" {
		t.Errorf("got %s", got)
	}
	if want := "trunkline: subscribed to 1 event types and 2 patterns as me\n"; stderr.String() != want {
		t.Errorf("got %s, want %s", stderr, want)
	}
	for _, bad := range []string{"a*", "a.>.b", "**", "x.y>"} {
		runClient(t, "", "sub", bad, "--addr", "127.0.0.1:1").want(t, 2, "", "cannot subscribe to \""+bad+"\": * and > are whole tokens")
	}
}

// typesOf returns the types of printed events.
func typesOf(t *testing.T, printed string) (types []string) {
	t.Helper()
	for line := range strings.Lines(printed) {
		var e struct {
			Type string `json:"event_type"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	return types
}

// socketServer starts a server at a path, on which another one may follow it.
func socketServer(t *testing.T, addr string, f func(*ipctest.Config)) *ipctest.Server {
	t.Helper()
	return ipctest.Start(t, ipctest.With(func(c *ipctest.Config) {
		c.ListenAddr = addr
		f(c)
	}))
}

// TestSubReconnects: the subscription goes on at the server that comes back, under its name, with
// its patterns and its count; a line on stderr stands for missing events. A refusal ends it.
func TestSubReconnects(t *testing.T) {
	addr := "unix://" + t.TempDir() + "/s"
	same := func(*ipctest.Config) {}
	srv := socketServer(t, addr, same)
	stdout, stderr, wait := startSub(t, addr, "a.*", "b", "--count", "2")
	runClient(t, "", "pub", "a.1", "--addr", addr).want(t, 0, "delivered 1\n", "")
	for range 2 {
		srv.Drain()
		stderr.await(t, "; reconnecting\n")
		srv = socketServer(t, addr, same)
		stderr.await(t, "the events of that time are missing here\n")
		stderr.cut()
	}
	runClient(t, "", "pub", "b", "--addr", addr).want(t, 0, "delivered 1\n", "")
	if code := wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if got := strings.Join(typesOf(t, stdout.String()), " "); got != "a.1 b" {
		t.Errorf("got %s", got)
	}

	_, stderr, wait = startSub(t, addr, "a", "b")
	srv.Drain()
	stderr.await(t, "; reconnecting\n")
	socketServer(t, addr, func(c *ipctest.Config) { c.MaxEventTypes = 1 })
	if code := wait(); code != 2 || !strings.Contains(stderr.String(), "INVALID_ARGUMENT: too many event_types\n") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestSubStopsWhileReconnecting: the signal is heard there too.
func TestSubStopsWhileReconnecting(t *testing.T) {
	srv := ipctest.Start(t)
	_, stderr, wait := startSub(t, srv.Addr, "a")
	srv.Drain()
	stderr.await(t, "; reconnecting\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code != 0 || strings.Contains(stderr.String(), "hint") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestLasting(t *testing.T) {
	f := func(err error, want bool) {
		t.Helper()
		if got := lasting(err); got != want {
			t.Errorf("lasting(%v) = %v", err, got)
		}
	}
	lost := func(err error) error { return &ipcclient.ConnError{Addr: "a:1", Err: err} }
	coded := func(err error) error { return &cli.Error{Code: cli.CodeUnavailable, Err: err} }
	f(lost(io.EOF), false)
	f(lost(syscall.ECONNREFUSED), false)
	f(coded(lost(syscall.ECONNREFUSED)), false)
	f(errEnded, false)
	f(context.DeadlineExceeded, false)
	f(coded(errors.New("no answer")), false)
	f(&ipcclient.Error{Code: wire.ResourceExhausted, Retryable: true}, false)
	f(lost(&ipcclient.Error{Code: wire.ResourceExhausted, Retryable: true}), false)
	f(&ipcclient.Error{Code: wire.Unavailable}, false)
	f(&ipcclient.Error{Code: wire.InvalidArgument}, true)
	f(coded(lost(&tls.CertificateVerificationError{Err: errors.New("x")})), true)
	f(lost(fmt.Errorf("cannot read: %w", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")})), true)
	f(coded(lost(syscall.EACCES)), true)
	f(lost(fmt.Errorf("%w: %w", ipcclient.ErrProtocol, ipcclient.Foreign("HTTP"))), true)
	f(ipcclient.ErrNoPatterns, true)
	f(errors.New("cannot write output"), true)
}

// TestSubOfAnOldServer: one that knows no patterns is no silent subscription.
func TestSubOfAnOldServer(t *testing.T) {
	s := &subscriber{flags: new(subFlags)}
	var e *cli.Error
	if err := s.explained(ipcclient.ErrNoPatterns); !errors.As(err, &e) || e.Code != cli.CodeUsage || !strings.Contains(e.Hint, "list the types") {
		t.Errorf("%v", err)
	}
}

func TestPayloadJSON(t *testing.T) {
	f := func(payload, want string) {
		t.Helper()
		var out bytes.Buffer
		if err := writeEvent(&out, &ipcclient.Event{Payload: payload}); err != nil {
			t.Fatal(err)
		}
		if want = `{"event_type":"","payload":` + want + `,"timestamp_ms":0,"source":""}` + "\n"; out.String() != want {
			t.Errorf("got %s, want %s", out.String(), want)
		}
	}
	f(`{"a":1}`, `{"a":1}`)
	f(` [ 1 ] `, `[1]`)
	f(`12345678901234567890`, `12345678901234567890`)
	f(`no json`, `"no json"`)
	f("", `""`)
}

func TestSubWarnsAtGaps(t *testing.T) {
	events := []ipcclient.Event{
		{EventType: "a", Payload: "1"}, {EventType: "commbus.gap", Payload: `{"dropped":7}`}, {EventType: "a", Payload: "9"},
	}
	var out, talk bytes.Buffer
	for _, e := range events {
		if _, err := showEvent(&out, &talk, &e); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(out.String(), "\n") != 2 || !strings.Contains(talk.String(), "7 events are missing") {
		t.Fatalf("stdout %s\nstderr %s", out.String(), talk.String())
	}
}
