package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc"
)

// ran is what one run of a client verb left behind.
type ran struct {
	code           int
	stdout, stderr string
}

// clientRoot is a root command with the client verbs only.
func clientRoot() *cobra.Command {
	root := &cobra.Command{Use: "trunkline", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().Bool(cli.FlagJSON, false, "")
	root.AddCommand(newCallCmd(), newSubCmd(), newPubCmd())
	return root
}

// runClient runs a client verb as main would.
func runClient(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	code := runClientTo(t, strings.NewReader(stdin), &out, &errs, args...)
	return ran{code, out.String(), errs.String()}
}

func runClientTo(t *testing.T, stdin io.Reader, stdout, stderr io.Writer, args ...string) int {
	t.Helper()
	root := clientRoot()
	started := markStart(root, args)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(t.Context())
	if err != nil && !*started {
		err = usageError(cmd, args, err)
	}
	cli.Render(stderr, err, cli.WantsJSON(args))
	return cli.Exit(err)
}

func (r ran) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || r.stdout != stdout || !strings.Contains(r.stderr, stderr) || (stderr == "") != (r.stderr == "") {
		t.Errorf("got code %d\nstdout %sstderr %s\nwant code %d\nstdout %sstderr …%s…", r.code, r.stdout, r.stderr, code, stdout, stderr)
	}
}

func TestCallPrintsTheReply(t *testing.T) {
	srv := ipctest.Start(t)
	t.Setenv(envAddr, srv.Addr)
	const p1 = `{"pid":"p1","request_id":"q","user_id":"u","session_id":"s","state":"NEW","priority":"HIGH","usage":` +
		`{"llm_calls":0,"tool_calls":0,"agent_hops":0,"tokens_in":0,"tokens_out":0},"current_stage":""}` + "\n"
	runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"p1","request_id":"q","user_id":"u","session_id":"s","priority":"high"}`).
		want(t, 0, p1, "")
	runClient(t, `{"pid":"p1"}`, "call", "kernel.GetProcess", "-", "--json").
		want(t, 0, strings.Replace(p1, "NEW", "READY", 1), "")
	runClient(t, "", "call", "kernel.GetProcessCounts", "--addr", srv.Addr).
		want(t, 0, `{"counts_by_state":{"NEW":0,"READY":1,"RUNNING":0,"WAITING":0,"BLOCKED":0,"TERMINATED":0,"ZOMBIE":0},"total":1,"queue_depth":1}`+"\n", "")
}

func TestCallExitCodes(t *testing.T) {
	srv := ipctest.Start(t)
	t.Setenv(envAddr, srv.Addr)
	f := func(code int, stderr string, args ...string) {
		t.Helper()
		runClient(t, "", append([]string{"call"}, args...)...).want(t, code, "", stderr)
	}
	f(3, "trunkline: NOT_FOUND: Process x not found\n", "kernel.GetProcess", `{"pid":"x"}`)
	f(3, "hint: 'trunkline call --list'", "kernel.Nope")
	f(3, "NOT_FOUND: Unknown service: nope", "nope.Nope")
	f(2, "INVALID_ARGUMENT: Missing required field: pid\nhint: kernel.CreateProcess takes pid, request_id, ", "kernel.CreateProcess")
	runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"p1"}`)
	f(6, "FAILED_PRECONDITION: Process p1 already exists\nhint: ", "kernel.CreateProcess", `{"pid":"p1"}`)
	f(6, "FAILED_PRECONDITION: Invalid transition from READY to WAITING", "kernel.TransitionState", `{"pid":"p1","new_state":"waiting"}`)
	f(3, `{"error":"NOT_FOUND: Process x not found","code":3,"hint":"","server_code":"NOT_FOUND"}`+"\n", "kernel.GetProcess", `{"pid":"x"}`, "--json")

	// what never reaches the server
	f(2, "want SERVICE.METHOD", "kernel")
	f(2, "cannot use the request's body", "kernel.GetProcess", "{")
	f(2, "it is no object", "kernel.GetProcess", "[]")
	f(2, "it opens a stream", "commbus.Subscribe")
	f(2, "cannot use argument \"{}\"\n", "kernel.GetProcess", "{}", "{}")
	f(2, "it must be positive", "kernel.GetProcess", "--timeout", "0s")
	f(2, "without the other", "kernel.GetProcess", "--tls-cert", "x")
	f(2, "cannot use --tls-ca", "kernel.GetProcess", "--tls-ca", t.TempDir()+"/none")
	f(2, "port 0", "kernel.GetProcess", "--addr", "127.0.0.1:0")
	f(2, "cannot connect to \"nonsense\": want host:port\nhint: --addr or $TRUNKLINE_ADDR is an address like ", "kernel.GetProcess", "--addr", "nonsense")
	f(2, "cannot connect to \"unix://rel\": want an absolute path, unix:///path\nhint: ", "kernel.GetProcess", "--addr", "unix://rel")
	f(2, "port \"99999\" is not a number from 0 to 65535\nhint: ", "kernel.GetProcess", "--addr", "127.0.0.1:99999")
	t.Setenv(envAddr, "nonsense")
	f(2, "cannot connect to \"nonsense\"", "kernel.GetProcess")
}

func TestCallWithoutAServer(t *testing.T) {
	srv := ipctest.Start(t)
	srv.Drain()
	runClient(t, "", "call", "kernel.GetProcessCounts", "--addr", srv.Addr).
		want(t, 5, "", "trunkline: cannot connect to "+srv.Addr+": connect: connection refused\nhint: is the server running?")
	runClient(t, "", "call", "kernel.GetProcessCounts", "--addr", "unix:///nobody/here").
		want(t, 5, "", "trunkline: cannot connect to unix:///nobody/here: connect: no such file or directory\nhint: is the server running?")
}

func TestCallLimitsItsWait(t *testing.T) {
	srv := ipctest.Start(t)
	h := runHandler(t, srv.Addr, "slow")
	defer h.Close()
	runClient(t, "", "call", "commbus.Query", `{"query_type":"slow"}`, "--addr", srv.Addr, "--timeout", "50ms").
		want(t, 5, "", "no answer from "+srv.Addr+" within 50ms\nhint: --timeout")
	runClient(t, "", "call", "commbus.Query", `{"query_type":"slow","timeout_ms":20}`, "--addr", srv.Addr).
		want(t, 5, "", "TIMEOUT: Query timeout after 20ms: slow")
}

func TestCallSaturated(t *testing.T) {
	srv := ipctest.Start(t)
	for i := range 10 {
		runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"p`+string(rune('0'+i))+`"}`, "--addr", srv.Addr)
	}
	got := runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"more"}`, "--addr", srv.Addr)
	got.want(t, 1, "", "RESOURCE_EXHAUSTED: Burst limit exceeded: 10 requests per 10 seconds\nhint: try again in ")
	got = runClient(t, "", "call", "kernel.CreateProcess", `{"pid":"more"}`, "--addr", srv.Addr, "--json")
	var told struct {
		Code              int
		ServerCode        string  `json:"server_code"`
		RetryAfterSeconds float64 `json:"retry_after_seconds"`
	}
	if err := json.Unmarshal([]byte(got.stderr), &told); err != nil || got.code != 1 || told.Code != 1 ||
		told.ServerCode != "RESOURCE_EXHAUSTED" || told.RetryAfterSeconds <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCallList(t *testing.T) {
	methods := ipc.Methods()
	text := runClient(t, "", "call", "--list")
	if text.code != 0 || strings.Count(text.stdout, "\n") != len(methods)+1 {
		t.Fatalf("got %+v", text)
	}
	var listed []listedMethod
	if err := json.Unmarshal([]byte(runClient(t, "", "call", "--list", "--json").stdout), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != len(methods) {
		t.Fatalf("%d methods listed, the table has %d", len(listed), len(methods))
	}
	for i, m := range methods {
		name := m.Service + "." + m.Name
		if listed[i].Method != name || listed[i].Doc == "" || listed[i].Stream != m.Stream || !strings.Contains(text.stdout, name+" ") {
			t.Errorf("%s is listed as %+v", name, listed[i])
		}
	}
	runClient(t, "", "call", "--list", "kernel.GetProcess").want(t, 2, "", "cannot use argument \"kernel.GetProcess\"\n")
}
