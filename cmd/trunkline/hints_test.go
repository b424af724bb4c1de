package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"trunkline/codec/wire"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc"
	"trunkline/handlers/ipc/ipcclient"
)

// TestCallHints: what is wrong is answered with what would be right. The server's texts stay as
// they are.
func TestCallHints(t *testing.T) {
	srv := ipctest.Start(t)
	t.Setenv(envAddr, srv.Addr)
	f := func(code int, stderr, method, body string) {
		t.Helper()
		runClient(t, "", "call", method, body).want(t, code, "", stderr)
	}
	runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"p1","session_id":"q1"}`)
	runClient(t, "", "call", "orchestration.InitializeSession",
		`{"process_id":"s1","envelope":{"envelope_id":"e1","raw_input":"x"},"pipeline_config":{"name":"n","agents":[{"name":"a"}]}}`)

	// values of enumerations
	f(2, "INVALID_ARGUMENT: Invalid priority: urgent\nhint: it is one of REALTIME, HIGH, NORMAL, LOW, IDLE, in any letter case\n",
		"kernel.CreateProcess", `{"pid":"p2","priority":"urgent"}`)
	const states = "hint: it is one of NEW, READY, RUNNING, WAITING, BLOCKED, TERMINATED, ZOMBIE, in any letter case\n"
	f(2, "INVALID_ARGUMENT: Invalid process state: RUNING\n"+states, "kernel.TransitionState", `{"pid":"p1","new_state":"RUNING"}`)
	f(2, "INVALID_ARGUMENT: Invalid process state: x\n"+states, "kernel.ListProcesses", `{"state":"x"}`)
	f(6, "Invalid transition from READY to WAITING\nhint: after READY comes RUNNING or TERMINATED; 'trunkline call kernel.GetProcess'",
		"kernel.TransitionState", `{"pid":"p1","new_state":"waiting"}`)

	// sessions and processes
	f(3, "NOT_FOUND: Process s1 not found\nhint: s1 is a session without a process: ", "kernel.GetProcess", `{"pid":"s1"}`)
	f(3, "NOT_FOUND: Unknown process: p1\nhint: p1 is a process without a session: ", "orchestration.GetNextInstruction", `{"process_id":"p1"}`)
	f(3, "NOT_FOUND: Process q1 not found\nhint: q1 is the session_id of process p1; ", "kernel.GetProcess", `{"pid":"q1"}`)
	f(3, "NOT_FOUND: Unknown process: q1\nhint: q1 is the session_id of process p1; ", "orchestration.GetSessionState", `{"process_id":"q1"}`)
	f(2, "Missing required field: process_id\nhint: a session is named by process_id, not by pid; ", "orchestration.GetSessionState", `{"pid":"s1"}`)
	f(2, "Missing required field: pid\nhint: a process is named by pid, not by process_id; ", "kernel.GetProcess", `{"process_id":"p1"}`)
	f(3, "NOT_FOUND: Process x not found\n", "kernel.GetProcess", `{"pid":"x"}`)

	// idempotency keys
	const keys = "\nhint: each request has a key of its own, of 32 to 200 bytes; only its repetitions have the same\n"
	key := strings.Repeat("k", 32)
	runClient(t, "", "call", "kernel.RecordUsage", `{"pid":"p1"}`, "--idempotency-key", key)
	f(6, "FAILED_PRECONDITION: idempotency_key was used for another request"+keys, "kernel.TerminateProcess",
		`{"pid":"p1","idempotency_key":"`+key+`"}`)
	f(2, "INVALID_ARGUMENT: idempotency_key must have 32 to 200 bytes, got 1"+keys, "kernel.RecordUsage",
		`{"pid":"p1","idempotency_key":"k"}`)

	// names of methods
	const list = "? 'trunkline call --list' shows the methods\n"
	f(3, "Unknown kernel method: GetProces\nhint: did you mean kernel.GetProcess"+list, "kernel.GetProces", "{}")
	f(3, "Unknown kernel method: getprocess\nhint: did you mean kernel.GetProcess"+list, "kernel.getprocess", "{}")
	f(3, "Unknown kernel method: Publish\nhint: did you mean commbus.Publish"+list, "kernel.Publish", "{}")
	f(3, "Unknown service: orchestraton\nhint: did you mean orchestration.GetSessionState"+list, "orchestraton.GetSessionState", "{}")
	f(3, "Unknown kernel method: Frobnicate\nhint: 'trunkline call --list' shows the methods\n", "kernel.Frobnicate", "{}")
	f(2, "cannot call \"GetProcess\": want SERVICE.METHOD\nhint: did you mean kernel.GetProcess"+list, "GetProcess", "{}")
}

// TestHintsOfWhatMaySucceedLater: a full disk is not a busy server.
func TestHintsOfWhatMaySucceedLater(t *testing.T) {
	r := request{info: ipc.MethodInfo{Service: "kernel", Name: "CreateProcess"}}
	for message, want := range map[string]string{
		"Storage is full; try again":           "the disk of the server's store.dir",
		"Storage cannot be written; try again": "the disk of the server's store.dir",
		"Kernel request queue is full":         "the server is saturated",
	} {
		got := r.hint(&ipcclient.Error{Code: wire.ResourceExhausted, Message: message, Retryable: true})
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", message, got)
		}
	}
}

// TestEveryMethodIsNearItself with one letter missing, and far from nonsense.
func TestEveryMethodIsNearItself(t *testing.T) {
	for _, m := range ipc.Methods() {
		name := m.Service + "." + m.Name
		if got := nearHint(name[:len(name)-1]); !strings.HasPrefix(got, "did you mean "+name+"?") {
			t.Errorf("%s without its end: %s", name, got)
		}
	}
	for _, name := range []string{"", ".", "kernel.", "kernel.Nope", "a.b", strings.Repeat("x", 5000)} {
		if got := nearHint(name); got != listHint {
			t.Errorf("%.20q: %s", name, got)
		}
	}
}

// TestCountersAbove53Bits come as they are.
func TestCountersAbove53Bits(t *testing.T) {
	srv := ipctest.Start(t)
	t.Setenv(envAddr, srv.Addr)
	runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"p1"}`)
	runClient(t, "", "call", "kernel.RecordUsage", `{"pid":"p1","tokens_in":9007199254740993,"tokens_out":9223372036854775807}`).
		want(t, 0, `{"llm_calls":0,"tool_calls":0,"agent_hops":0,"tokens_in":9007199254740993,"tokens_out":9223372036854775807}`+"\n", "")
}

// otherServer answers each connection with text once a line has come.
func otherServer(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				if _, err := bufio.NewReader(nc).ReadBytes('\n'); err == nil {
					_, _ = io.WriteString(nc, text)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestCallOfAnotherProtocol: a server that waits for more of what it takes for its own protocol is
// recognised, and named by the settings.
func TestCallOfAnotherProtocol(t *testing.T) {
	f := func(text, want string, args ...string) {
		t.Helper()
		addr := otherServer(t, text)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "HERE", addr)
		}
		want = strings.ReplaceAll(want, "HERE", addr)
		runClient(t, "", append([]string{"call", "kernel.Ping", "--addr", addr, "--timeout", "5m"}, args...)...).want(t, 2, "", want)
	}
	const http, lines = "HTTP/1.1 404 Not Found\r\n\r\n", `{"ok":false}` + "\n"
	f(http, "trunkline: HERE speaks HTTP, not kernel IPC\nhint: --addr or $TRUNKLINE_ADDR names 127.0.0.1:50051, where the settings have kernel IPC\n")
	f(http, "hint: http.listen_addr is HERE; --addr or $TRUNKLINE_ADDR names 127.0.0.1:7, where", "--set", "http.listen_addr=HERE", "--set", "kernel.listen_addr=127.0.0.1:7")
	f(lines, "trunkline: HERE speaks lines of JSON, not kernel IPC\nhint: toolhost.listen_addr is HERE; ", "--set", "toolhost.listen_addr=HERE")
	f(http, "names another address\n", "--set", "kernel.listen_addr=127.0.0.1:0")
}

// TestSubOfAnotherProtocol ends in the same way, before it is subscribed.
func TestSubOfAnotherProtocol(t *testing.T) {
	addr := otherServer(t, "HTTP/1.0 400 Bad Request\r\n\r\n")
	runClient(t, "", "sub", "a", "--addr", addr, "--timeout", "5m").want(t, 2, "", "trunkline: "+addr+" speaks HTTP, not kernel IPC\n")
}

// TestCallOfASilentServer: what nothing at all comes from may be no server of this protocol.
func TestCallOfASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	runClient(t, "", "call", "kernel.Ping", "--addr", addr, "--timeout", "50ms").
		want(t, 5, "", "trunkline: no answer from "+addr+" within 50ms\nhint: --timeout allows it more time; nothing came")
}
