package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/handlers/exacta/exactaclient"
)

// wantRun checks the exit code, and that the outputs have some words.
func wantRun(t *testing.T, got ran, code int, stdout, stderr string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.stdout, stdout) || !strings.Contains(got.stderr, stderr) || stderr == "" && got.stderr != "" {
		t.Errorf("code %d, want %d\nstdout %s\nwant …%s…\nstderr %s\nwant …%s…", got.code, code, got.stdout, stdout, got.stderr, stderr)
	}
}

// planned makes a plan and returns its id.
func (s *projectServer) planned(text string) string {
	s.t.Helper()
	got := s.run("plan", text, "--json")
	var out struct {
		Plan struct{ ID string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || out.Plan.ID == "" {
		s.t.Fatalf("%v: %+v", err, got)
	}
	return out.Plan.ID
}

// TestCallExactaStatus has a case for each row of the exit statuses (exacta §4.21).
func TestCallExactaStatus(t *testing.T) {
	s := startProjects(t, demo())
	id := s.id()
	bare := startProjects(t, map[string]string{".exacta/config.json": "{}"})
	wantRun(t, runProjects(t, "", "open", bare.dir, "--addr", bare.addr), 10, "", "trunkline: CFG-002: A required setting is missing: schema_version")
	wantRun(t, bare.call("OpenProject", `{"path":"`+bare.dir+`"}`), 10, `"code":"CFG-002"`, "trunkline: CFG-002: ")
	call := func(code int, stdout, stderr, command, fields string, flags ...string) {
		t.Helper()
		payload := `{"project_id":"` + id + `"` + fields + `}`
		wantRun(t, s.call(append([]string{command, payload}, flags...)...), code, stdout, stderr)
	}
	call(0, `"ok":true`, "", "ExtractIntent", `,"user_input":"Append \"x\" to README.md"`)
	call(20, `"code":"SEC-003"`, "trunkline: SEC-003: ", "ExtractIntent", `,"user_input":"Append \"sk-aaaaaaaaaaaaaaaaaaaaaaaa\" to README.md"`)
	call(20, `"code":"FS-003"`, "trunkline: FS-003: The path is outside the project", "ExtractIntent", `,"user_input":"Append \"x\" to /etc/passwd.txt"`)
	plan := s.planned(`Append "x" to README.md`)
	call(30, `"code":"ST-001"`, "ApprovePlan is required first", "ExecutePlan", `,"plan_id":"`+plan+`"`)
	call(40, `"code":"VAL-004"`, "trunkline: VAL-004: ", "ApprovePlan", `,"plan_id":"00000000-0000-4000-8000-000000000001"`)
	call(0, "", "", "ApprovePlan", `,"plan_id":"`+plan+`"`)
	s.write("README.md", "changed\n")
	call(40, `"code":"VAL-005"`, "trunkline: VAL-005: ", "ExecutePlan", `,"plan_id":"`+plan+`"`)
	call(60, `"code":"ST-001"`, "trunkline: ST-001: ", "ExecutePlan", `,"plan_id":"`+plan+`"`)
	call(50, `"code":"VAL-001"`, "trunkline: VAL-001: ", "GeneratePlan", `,"intent_id":"00000000-0000-4000-8000-000000000001"`)
	call(50, `"ok":true`, "trunkline: VAL-001: ", "ExtractIntent", `,"user_input":"Refactor everything"`)
	wantRun(t, s.call("OpenProject", `{"path":"`+s.dir+`/missing"}`), 50, `"code":"FS-001"`, "trunkline: FS-001: Not found: missing")
	call(60, `"code":"IPC-009"`, "trunkline: IPC-009: ", "Build", `,"configuration":"debug"`)
	call(60, `"code":"IPC-003"`, "trunkline: IPC-003: Unknown command: Rollback", "Rollback", "")
	wantRun(t, s.call("Pause", `{"project_id":"00000000-0000-4000-8000-000000000001","execution_id":"00000000-0000-4000-8000-000000000001"}`), 60, `"code":"ST-003"`, "trunkline: ST-003: ")
}

// TestCallExactaBuild: a build that ran is an answer without an error (exacta D15), and one that
// failed is exit code 50 all the same.
func TestCallExactaBuild(t *testing.T) {
	needMake(t)
	s := startProjects(t, map[string]string{"Makefile": "all:\n\t@echo 'a.c:1:1: error: e'; false\n"})
	wantRun(t, s.call("Build", `{"project_id":"`+s.id()+`"}`), 50, `"ok":true,"result":{"exit_code":2,`, "trunkline: BLD-002: The build failed with 1 error(s).")
	wantRun(t, s.run("build"), 50, "exit code 2, 1 errors, 0 warnings, ", "trunkline: BLD-002: ")
	s.write("Makefile", "all:\n\t@echo 'a.c:1:1: warning: w'\n")
	wantRun(t, s.run("build", "--configuration", "Release"), 0, "exit code 0, 0 errors, 1 warnings, ", "")
	wantRun(t, s.run("build", "--json"), 0, `"warnings": 1`, "")
	s.write("Makefile", "all:\n\t@printf 'one\\033[2J\\ntwo\\n'; false\n")
	wantRun(t, s.run("build"), 50, "", "trunkline: BLD-002: The build failed with 1 error(s).\none\\x1b[2J\ntwo\nmake")
	wantRun(t, s.run("build", "--configuration", "Fast"), 60, "", "trunkline: IPC-009: ")
}

// TestCallExactaWaits: the events of an execution up to its end, and how it ended.
func TestCallExactaWaits(t *testing.T) {
	needMake(t)
	s := startProjects(t, demo())
	payload := func(field, id string) string { return `{"project_id":"` + s.id() + `","` + field + `":"` + id + `"}` }
	good := s.planned(`Append "x" to README.md`)
	wantRun(t, s.call("ApprovePlan", payload("plan_id", good)), 0, "", "")
	got := s.call("ExecutePlan", payload("plan_id", good), "--wait", "--events")
	wantRun(t, got, 0, `"event":"StateChanged"`, "")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != 8 || !strings.Contains(lines[1], `"type":"response"`) || !strings.Contains(lines[7], `"to":"Completed"`) {
		t.Errorf("lines:\n%s", got.stdout)
	}
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	s.write("Makefile", "all:\n\t@false\n")
	bad := s.planned(`Append "y" to README.md; build`)
	wantRun(t, s.call("ApprovePlan", payload("plan_id", bad)), 0, "", "")
	wantRun(t, s.call("ExecutePlan", payload("plan_id", bad), "--wait"), 50, `"execution_id":`, "hint: the files are as before")
	if got := s.read("README.md"); got != "# Demo\n\nHello.\nx\n" {
		t.Errorf("README.md: %q", got)
	}
	third := s.planned(`Append "z" to README.md`)
	wantRun(t, s.call("Cancel", payload("execution_id", third), "--wait"), 0, `"status":"cancelling"`, "")
	wantRun(t, s.call("Cancel", payload("execution_id", third), "--wait"), 60, "", "trunkline: ST-001: ")
	wantRun(t, s.call("ExecutePlan", "{}", "--wait"), 60, "", "trunkline: IPC-009: ")
}

func TestCallExactaUsage(t *testing.T) {
	f := func(stderr string, args ...string) {
		t.Helper()
		wantRun(t, runProjects(t, "", append([]string{"call"}, args...)...), 2, "", stderr)
	}
	f("without its address", "Pause")
	f("cannot connect to \"nope\"", "Pause", "--addr", "nope")
	f("it is no JSON object", "Pause", "[]", "--addr", "127.0.0.1:1")
	f("it is no JSON object", "Pause", "{", "--addr", "127.0.0.1:1")
	wantRun(t, runProjects(t, "", "serve", "--unix", ""), 2, "", "cannot use --unix []: want one address")
	f("must be positive", "Pause", "--addr", "127.0.0.1:1", "--timeout", "-1s")
	f("cannot use --token-file", "Pause", "--addr", "127.0.0.1:1", "--token-file", "/nope")
	f("missing argument COMMAND")
	wantRun(t, runProjects(t, "", "nope"), 2, "", "the verbs are serve, call, ")
}

// fakeAnswer is the beginning of an answer of a hostile server.
const fakeAnswer = `{"ipc_version":"1.0","type":"response","request_id":"{R}","correlation_id":"00000000-0000-4000-8000-00000000000c","sent_at":"x",`

// TestCallExactaOfHostileServers: each is exit code 60, and nothing of its answer is printed.
func TestCallExactaOfHostileServers(t *testing.T) {
	f := func(text string, end bool, stderr string) {
		t.Helper()
		got := runProjects(t, "", "call", "Pause", "--addr", hostileProjects(t, text, end))
		wantRun(t, got, 60, "", stderr)
		if got.stdout != "" {
			t.Errorf("printed %s", got.stdout)
		}
	}
	f(strings.Replace(fakeAnswer, "1.0", "2.0", 1)+`"ok":true,"result":{},"error":null}`+"\n", false, "trunkline: IPC-002: IPC version 2.0 is not supported; this client speaks 1.0.")
	f(fakeAnswer+`"ok":true,"result":{},"error":{"code":"X"}}`+"\n", false, "trunkline: IPC-005: ")
	f(fakeAnswer+`"ok":true,"result":null,"error":null}`+"\n", false, "trunkline: IPC-005: ")
	f("SSH-2.0-OpenSSH\r\n", false, "trunkline: IPC-001: ")
	f(fakeAnswer, true, "lost: unexpected EOF")
	f("", true, "lost: EOF")
	wantRun(t, runProjects(t, "", "call", "Pause", "--timeout", "50ms", "--addr", hostileProjects(t, "", false)), 60, "", "no answer from 127.0.0.1:")
	wantRun(t, runProjects(t, "", "open", "--addr", "unix://"+t.TempDir()+"/s"), 60, "", "trunkline: cannot connect to unix://")
	refused := func(code, detail string) string {
		return hostileProjects(t, fakeAnswer+`"ok":false,"result":null,"error":{"code":"`+code+`","message":"m","technical_detail":"`+detail+`"}}`+"\n", false)
	}
	wantRun(t, runProjects(t, "", "open", "--addr", refused("SEC-002", "auth: the token is not accepted")), 20, "", "hint: --token-file or $EXACTA_TOKEN_FILE names")
	wantRun(t, runProjects(t, "", "open", "--addr", refused("ST-003", "project_id: the project is not open")), 60, "", "hint: the project was closed")
	got := runProjects(t, "", "call", "Pause", "--json", "--addr", refused("SEC-001", "d"))
	if got.code != 20 || got.stderr != `{"error":"SEC-001: m (d)","code":20,"hint":"","server_code":"SEC-001"}`+"\n" {
		t.Errorf("%+v", got)
	}
}

// TestPeopleUseProjects is the way of a plan by the commands for people.
func TestPeopleUseProjects(t *testing.T) {
	s := startProjects(t, demo())
	wantRun(t, runProjects(t, "", "open", s.dir+"/README.md", "--addr", s.addr), 0, "state      Idle\n", "")
	wantRun(t, s.run("show"), 60, "", "no plan is active: the project is Idle")
	wantRun(t, s.run("run"), 60, "", "no plan is active")
	wantRun(t, s.run("approve"), 60, "", "no plan is active")
	wantRun(t, s.run("pause"), 60, "", "nothing is executed: the project is Idle")
	wantRun(t, s.run("cancel"), 60, "", "nothing to cancel")
	got := s.run("plan", `Append "Bye." to README.md and don't touch src/db/`)
	wantRun(t, got, 0, "MUST_NOT touch src/db/ (src/db)\nSTEP  TYPE         TARGET     AFTER  DESCRIPTION\n1     file_modify  README.md  -      Modify README.md: append text\n"+
		"--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,4 @@\n # Demo\n \n Hello.\n+Bye.\n", "approve it with: trunkline exacta approve ")
	_, plan, _ := strings.Cut(strings.TrimSpace(got.stderr), "approve it with: trunkline exacta approve ")
	_, want, _ := strings.Cut(got.stdout, "STEP")
	wantRun(t, s.run("show"), 0, "STEP"+want, "")
	wantRun(t, s.run("show"), 0, " tokens, pending\n", "")
	wantRun(t, s.run("show", "--json"), 0, `"diff": "--- a/README.md\n`, "")
	wantRun(t, s.run("run"), 30, "", "hint: 'trunkline exacta show' shows the plan")
	wantRun(t, s.run("plan", "delete README.md"), 60, "", "hint: a plan waits: 'trunkline exacta show' shows it")
	wantRun(t, s.run("run", "--approve"), 2, "", "cannot approve a plan that is not named")
	wantRun(t, s.run("approve"), 2, "", "cannot approve a plan that is not named")
	wantRun(t, s.run("approve", "73b"), 2, "", "at least 4 characters")
	wantRun(t, s.run("approve", "00000000"), 40, "", "the active plan is "+plan)
	wantRun(t, s.run("approve", strings.ToUpper(plan)), 0, "approved "+plan, "")
	wantRun(t, s.run("show"), 0, " tokens, approved\n", "")
	wantRun(t, s.run("run"), 0, "AwaitingApproval -> Executing (ExecutePlan)\nstep 1: Modify README.md: append text\n  done in ", "take it back with: trunkline exacta close && trunkline exacta rollback ")
	if got := s.read("README.md"); got != "# Demo\n\nHello.\nBye.\n" {
		t.Errorf("README.md: %q", got)
	}
	wantRun(t, s.run("status"), 0, "state      Completed\n", "")
	wantRun(t, s.run("plan", "Refactor everything"), 50, "", "hint: name the file and quote the text")
	wantRun(t, s.run("plan", `Append "x" to ../b.md`), 20, "", "trunkline: SEC-001: ")
	s.planned(`Append "x" to README.md`)
	wantRun(t, s.run("reject"), 0, "rejected ", "")
	s.planned(`Append "x" to README.md`)
	wantRun(t, s.run("cancel"), 0, "cancelled ", "")
	plan = s.planned(`Append "x" to README.md`)
	got = s.run("run", "--approve", plan, "--json")
	wantRun(t, got, 0, "{\n  \"execution_id\": \"", "")
	if strings.Contains(got.stdout, "step") {
		t.Errorf("events among JSON: %s", got.stdout)
	}
	s.write("fix.diff", "--- a/README.md\n+++ b/README.md\n@@ -2,4 +2,4 @@\n \n Hello.\n Bye.\n-x\n+y\n")
	wantRun(t, s.run("apply", s.dir+"/fix.diff"), 0, "applied, rollback point ", "")
	if got = s.run("apply", s.dir+"/fix.diff"); strings.Contains(got.stderr, "hint") {
		t.Errorf("the same diff cannot be applied later: %s", got.stderr)
	}
	wantRun(t, got, 40, "", "trunkline: VAL-005: ")
	wantRun(t, s.run("apply", s.dir+"/none.diff"), 2, "", "cannot read the diff")
	wantRun(t, s.run("watch", "--count", "-1"), 2, "", "neither can be negative")
	wantRun(t, s.run("watch", "--after", "-2"), 2, "", "neither can be negative")
	wantRun(t, s.run("close"), 0, "closed "+s.dir, "")
	wantRun(t, s.run("watch", "--after", "1000000"), 60, "", "trunkline: IPC-007: ")
}

// TestPreviewsAndDiagnostics: an interrupt before its handle is known ends a preview, as the handle
// does later; a bundle is where the answer has it.
func TestPreviewsAndDiagnostics(t *testing.T) {
	needMake(t)
	s := startProjects(t, map[string]string{"Makefile": "run:\n\t@touch started; sleep 600\n"})
	p := &projectPeer{cmd: &cobra.Command{}, addr: s.addr, path: s.dir}
	if err := p.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer p.conn.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := p.ask(ctx, "Preview", p.payload().Int("timeout_seconds", 60), func(*exactaclient.Message) { interrupt() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("not interrupted: %v", err)
	}
	got := s.run("preview", "--seconds", "60")
	wantRun(t, got, 0, "started, handle ", "")
	s.await("started")
	wantRun(t, s.run("preview"), 60, "", "trunkline: RES-004: ")
	_, handle, _ := strings.Cut(strings.TrimSpace(got.stdout), "handle ")
	wantRun(t, s.run("cancel", handle), 0, "cancelled "+handle, "")
	wantRun(t, s.run("cancel", handle), 60, "", "trunkline: ST-")
	wantRun(t, s.run("diagnostics", "report.zip", "--tree", "--debug"), 0, s.dir+"/.exacta/diagnostics/report.zip\n", "")
	wantRun(t, s.run("diagnostics", "report.zip"), 50, "", "trunkline: FS-002: ")
	wantRun(t, s.run("diagnostics", "../report.zip"), 20, "", "trunkline: SEC-001: ")
	if text := s.read(".exacta/diagnostics/report.zip"); !strings.HasPrefix(text, "PK") {
		t.Errorf("no zip: %.20q", text)
	}
}

// TestPlansOfHostileServers: what a server has in the place of ids and numbers is no text for a
// terminal either, and of more diffs than a plan can have the rest is dropped.
func TestPlansOfHostileServers(t *testing.T) {
	answer := func(result string) string {
		return fakeAnswer + `"ok":true,"result":` + result + `,"error":null}` + "\n"
	}
	event := func(name, payload string) string {
		return `{"ipc_version":"1.0","type":"event","event":"` + name + `","request_id":"{R}","correlation_id":"00000000-0000-4000-8000-00000000000c","payload":` + payload + "}\n"
	}
	text := event("PlanProposed", `{"plan":{"id":"\u001b]0;id","steps":[]}}`)
	for i := range maxShownDiffs + 1 {
		text += event("DiffProposed", `{"step_id":"`+string(rune('a'+i))+`","diff":"+line\n"}`)
	}
	addr := hostileProjects(t, text+answer(`{"intent":{"id":"x","type":"\u001b]0;type","confidence":"\u009b2J"}}`), false)
	got := runProjects(t, "", "plan", "x", "--addr", addr)
	wantRun(t, got, 0, "\nPlan \\x1b]0;id, version 0", "approve \\x1b]0;id\n")
	if strings.ContainsAny(got.stdout+got.stderr, "\x1b\u009b") || strings.Count(got.stdout, "+line\n") != maxShownDiffs {
		t.Errorf("%q %q", got.stdout, got.stderr)
	}
}
