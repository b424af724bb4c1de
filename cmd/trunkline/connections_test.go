package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ops"
)

// asked runs the program against an admin endpoint and returns what it printed.
func asked(t *testing.T, code int, args ...string) (out, talk string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := run(args, strings.NewReader(""), &o, &e); got != code {
		t.Errorf("%q: exit code %d, want %d\n%s%s", args, got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

func TestConnectionsAreListed(t *testing.T) {
	addr := adminOf(t, map[string]string{"/connections": `{"total":3,"connections":[
		{"id":"ipc-12","protocol":"ipc","listener":"127.0.0.1:50051","peer":"127.0.0.1:4\u001b[2J","age_seconds":3725.2,"idle_seconds":0.04,"bytes_in":1200,"bytes_out":3400000,"unsent_bytes":7,"in_flight":2,"streams":1,"state":"open"},
		{"id":"http-1","protocol":"http","state":"draining"}]}`})
	out, talk := asked(t, 0, "connections", "--admin", addr)
	wantParts(t, out, "ID      PEER", "IN FLIGHT", "ipc-12  127.0.0.1:4\\x1b[2J  1h2m5s  0s    1.2 kB  3.4 MB  7 B     2          1        open", "draining")
	wantParts(t, talk, "1 more, --limit shows them")
	out, talk = asked(t, 0, "connections", "--admin", addr, "--json", "--protocol", "ipc", "--sort", "idle")
	var list ops.Connections
	if err := json.Unmarshal([]byte(out), &list); err != nil || talk != "" || list.Total != 3 || list.Connections[0].BytesOut != 3400000 {
		t.Errorf("%s%s%v", out, talk, err)
	}
}

func TestSlowlogIsSortedAndCut(t *testing.T) {
	addr := adminOf(t, map[string]string{"/slowlog": `{"threshold_seconds":0.1,"total":9,"entries":[
		{"id":9,"at":"2026-11-25T10:00:02Z","protocol":"ipc","method":"kernel.RecordUsage","conn":"ipc-2","peer":"p","seconds":0.2},
		{"id":8,"at":"2026-11-25T10:00:01Z","protocol":"toolhost","method":"AID","conn":"toolhost-1","peer":"uid:0","seconds":1.5},
		{"id":7,"at":"2026-11-25T10:00:00Z","protocol":"ipc","method":"kernel.GetProcess","conn":"ipc-3","peer":"p","seconds":0.35}]}`})
	out, talk := asked(t, 0, "slowlog", "--admin", addr)
	wantParts(t, out, "TIME", "2026-11-25 10:00:02.000  200 ms", "1.50 s  toolhost  AID                 toolhost-1  uid:0")
	wantParts(t, talk, "3 of 9 requests that took 100ms or longer")
	order := func(want string, args ...string) {
		t.Helper()
		out, _ := asked(t, 0, append([]string{"slowlog", "--json", "--admin", addr}, args...)...)
		var log struct{ Entries []struct{ Conn string } }
		if err := json.Unmarshal([]byte(out), &log); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range log.Entries {
			got = append(got, e.Conn)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", args, got, want)
		}
	}
	order("ipc-2 toolhost-1 ipc-3")
	order("toolhost-1 ipc-3 ipc-2", "--sort", "duration")
	order("ipc-3 ipc-2", "--sort", "duration", "--protocol", "ipc")
	order("ipc-3", "--sort", "duration", "--protocol", "ipc", "--limit", "1")
	order("", "--protocol", "exacta")
}

// TestOnlyProtocolsOfConnections: a name of another verb is refused, and not offered.
func TestOnlyProtocolsOfConnections(t *testing.T) {
	for _, verb := range []string{"connections", "slowlog"} {
		_, talk := asked(t, cli.CodeUsage, verb, "--protocol", "kernel")
		wantParts(t, talk, `cannot use --protocol "kernel": want ipc, http, toolhost, threads or exacta`)
		out, _ := asked(t, 0, "__completeNoDesc", verb, "--protocol", "")
		if !strings.HasPrefix(out, "ipc\nhttp\ntoolhost\nthreads\nexacta\n:") {
			t.Errorf("%s: %s", verb, out)
		}
	}
	out, _ := asked(t, 0, "__completeNoDesc", "slowlog", "--sort", "")
	wantParts(t, out, "time\nduration\n:")
}

// TestAnOlderServer has no such lists.
func TestAnOlderServer(t *testing.T) {
	addr := adminOf(t, nil)
	for _, verb := range []string{"connections", "slowlog", "top"} {
		_, talk := asked(t, cli.CodeFailed, verb, "--admin", addr)
		wantParts(t, talk, "no such path", "hint: this is no admin endpoint, or one older than this question; --admin names another address")
	}
}

func TestFrameLines(t *testing.T) {
	f := func(fr ops.Frame, want string) {
		t.Helper()
		_, got, _ := strings.Cut(string(frameLine(&fr)), " ")
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(ops.Frame{Direction: "in", Type: "request", Method: "kernel.Ping", ID: "7", Bytes: 41}, "in  request    kernel.Ping #7  41 B")
	f(ops.Frame{Direction: "out", Type: "error", Method: "kernel.GetProcess", ID: "8", Code: "NOT_FOUND", Bytes: 1500, Seconds: 0.012}, "out error      kernel.GetProcess #8 NOT_FOUND  1.5 kB  after 12.0 ms")
	f(ops.Frame{Direction: "out", Type: "chunk", ID: "a\x1b", Bytes: 9, Payload: []byte("{\"a\":\"\u009b\"}")}, `out chunk      #a\x1b  9 B  {"a":"\u009b"}`)
	f(ops.Frame{Direction: "out", Type: "unreadable", Bytes: 9, PayloadCut: `{"a`}, `out unreadable   9 B  {"a…`)
	f(ops.Frame{Type: "lost", Lost: 12}, "--  12 frames are missing here, there was no room for them")
	f(ops.Frame{Type: "closed"}, "--  the connection is closed")
}

// TestConnectionsDrop: the token of an operator is shown to the console, and its answers have their
// exit codes.
func TestConnectionsDrop(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("operator-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, answer := 200, `{"ok":true}`
		switch {
		case r.Method != "POST" || r.URL.Path != "/console/connection/drop" || r.FormValue("reason") != "why not":
			status, answer = 405, "no"
		case r.Header.Get("Authorization") == "":
			status, answer = 401, `{"error":"a token is needed"}`
		case r.Header.Get("Authorization") != "Bearer operator-0123456789":
			status, answer = 403, `{"error":"the role viewer may not change anything"}`
		case r.FormValue("id") != "ipc-7":
			status, answer = 404, `{"error":"not found: it is not open"}`
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	drop := func(code int, args ...string) (out, talk string) {
		t.Helper()
		return asked(t, code, append([]string{"connections", "drop", "--admin", addr, "--reason", "why not"}, args...)...)
	}
	out, talk := drop(0, "ipc-7", "--token-file", token)
	if out != "dropped  ipc-7\n" || talk != "" {
		t.Errorf("%q %q", out, talk)
	}
	if out, _ = drop(0, "ipc-7", "--token-file", token, "--json"); out != "{\n  \"dropped\": \"ipc-7\"\n}\n" {
		t.Errorf("%q", out)
	}
	_, talk = drop(cli.CodeNotFound, "ipc-8", "--token-file", token)
	wantParts(t, talk, "not open", "'trunkline connections' lists those")
	_, talk = drop(cli.CodeNotAllowed, "ipc-7")
	wantParts(t, talk, "a token is needed", "admin.console_operator_token_file of the server")
	if err := os.WriteFile(token, []byte("viewer-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, talk = drop(cli.CodeNotAllowed, "ipc-7", "--token-file", token, "--json")
	wantParts(t, talk, `"error":"the role viewer may not change anything","code":4`)
	drop(cli.CodeUsage)
	drop(cli.CodeUsage, "ipc-7", "ipc-8")
	drop(cli.CodeUsage, "ipc-7", "--token-file", token+"x")
	srv.Close()
	drop(cli.CodeUnavailable, "ipc-7", "--token-file", token)
}

// TestConnectionsDropKeepsTheToken: that of the settings goes to the address of the settings, and
// to no other one.
func TestConnectionsDropKeepsTheToken(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("token", []byte("operator-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	f := func(want string, args ...string) {
		t.Helper()
		asked(t, 0, append([]string{"connections", "drop", "ipc-1", "--set", "admin.console_operator_token_file=token"}, args...)...)
		if got := <-shown; got != want {
			t.Errorf("%q: %q was shown, want %q", args, got, want)
		}
	}
	f("Bearer operator-0123456789", "--set", "admin.listen_addr="+addr)
	f("", "--admin", addr)
	f("Bearer operator-0123456789", "--admin", addr, "--token-file", "token")
}
