package main

import (
	"bytes"
	"encoding/json"
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
	wantParts(t, out, "ID      PEER", "IN FLIGHT", "ipc-12  127.0.0.1:4�[2J  1h2m5s  0s    1.2 kB  3.4 MB  7 B     2          1        open", "draining")
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
	wantParts(t, talk, "3 of 9 requests that took longer than 100ms")
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
		wantParts(t, talk, "no such path", "hint: the server is older than this question")
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
	f(ops.Frame{Direction: "out", Type: "chunk", ID: "a\x1b", Bytes: 9, Payload: []byte("{\"a\":\"\u009b\"}")}, "out chunk      #a�  9 B  {\"a\":\"�\"}")
	f(ops.Frame{Direction: "out", Type: "unreadable", Bytes: 9, PayloadCut: `{"a`}, `out unreadable   9 B  {"a…`)
	f(ops.Frame{Type: "lost", Lost: 12}, "--  12 frames are missing here, there was no room for them")
	f(ops.Frame{Type: "closed"}, "--  the connection is closed")
}
