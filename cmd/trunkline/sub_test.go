package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/ipc/client"
	"trunkline/handlers/ipc/ipctest"
)

// runHandler registers a query handler that never answers.
func runHandler(t *testing.T, addr, queryType string) *client.Conn {
	t.Helper()
	conn, err := client.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RegisterQueryHandler(t.Context(), client.RegisterQueryHandler{QueryTypes: []string{queryType}}); err != nil {
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
	_, stderr, wait := startSub(t, srv.Addr, "a", "--subscriber-id", "me")
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
	runClient(t, "", "sub", "--addr", srv.Addr).want(t, 2, "", "requires at least 1 arg")
	runClient(t, "", "sub", "", "--addr", srv.Addr).want(t, 2, "", "INVALID_ARGUMENT: event_types[0] must be a non-empty string\nhint: commbus.Subscribe takes")
	runClient(t, "", "sub", "a", "--count", "-1", "--addr", srv.Addr).want(t, 2, "", "it must not be negative")
	srv.Drain()
	runClient(t, "", "sub", "a", "--addr", srv.Addr).want(t, 5, "", "hint: is the server running?")
}

func TestPayloadJSON(t *testing.T) {
	f := func(payload, want string) {
		t.Helper()
		var out bytes.Buffer
		if err := writeEvent(&out, &client.Event{Payload: payload}); err != nil {
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
	events := []client.Event{
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
