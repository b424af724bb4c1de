package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// withWorkers starts a server that has the tools of ext.json.
func withWorkers(t *testing.T, over string, env []string, args ...string) (*server, string) {
	t.Helper()
	s := newScript(t, over, "external")
	s.copyFiles([]string{"ext.json"})
	return serve(t, over, s.root, env, append([]string{"--serve", "ext.json"}, args...)...), s.root
}

func output(t *testing.T, reply string) string {
	t.Helper()
	var r struct {
		Status string `json:"status"`
		Output string `json:"output_json"`
	}
	if err := json.Unmarshal([]byte(reply), &r); err != nil || r.Status != "OK" {
		t.Fatalf("%v: %s", err, clip(reply))
	}
	return r.Output
}

func TestEnvironmentOfAWorker(t *testing.T) {
	srv, _ := withWorkers(t, stdio, []string{"LD_SOMETHING=1", "MACHINA_OPERATOR_TOKEN=op", "MACHINA_API_TOKEN=x", "SECRET=1", "MACHINA_LEASE_ENFORCE=0", "TMPDIR=/tmp"})
	say1(srv.io, `{"aid":"AID.EXT.MANY.v1","inputs":{"do":"env"}}`)
	var vars []string
	if err := json.Unmarshal([]byte(output(t, srv.io.next(patience))), &vars); err != nil {
		t.Fatal(err)
	}
	allowed := []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MACHINA_ROOT", "CONFORMANCE_WORKER", "GOTRACEBACK"}
	for _, v := range vars {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(allowed, name) {
			t.Errorf("the worker sees %s", v)
		}
	}
	if !slices.Contains(vars, "CONFORMANCE_WORKER=1") || !slices.Contains(vars, "TMPDIR=/tmp") {
		t.Errorf("missing: %v", vars)
	}
}

// TestWorkersCannotReadTheTokens: not in the environment of the server either, which its user, and
// root, can read; the server has them all the same.
func TestWorkersCannotReadTheTokens(t *testing.T) {
	srv, _ := withWorkers(t, tcp, []string{"MACHINA_OPERATOR_TOKEN=operator's", "MACHINA_API_TOKEN=caller's"})
	c := srv.dial(t)
	say1(c, `{"aid":"_auth","token":"wrong"}`)
	if got := c.next(patience); !strings.Contains(got, `"ok":false`) {
		t.Fatalf("the server does not ask for its token: %s", got)
	}
	c = srv.dial(t)
	say1(c, `{"aid":"_auth","token":"caller's"}`)
	if got := c.next(patience); !strings.Contains(got, `"ok":true`) {
		t.Fatalf("the server does not know its token: %s", got)
	}
	say1(c, `{"aid":"AID.EXT.MANY.v1","inputs":{"do":"server-env"}}`)
	got := output(t, c.next(patience))
	if strings.Contains(got, "operator's") || strings.Contains(got, "caller's") {
		t.Errorf("a worker reads the tokens of the server: %s", got)
	}
	if !strings.Contains(got, "PATH=") {
		t.Logf("a worker reads nothing there: %s", got)
	}
}

func TestWorkersInheritNoDescriptors(t *testing.T) {
	srv, _ := withWorkers(t, unix, nil)
	c := srv.dial(t)
	for _, aid := range []string{"AID.EXT.MANY.v1", "AID.EXT.ONE.v1"} {
		say1(c, `{"aid":"`+aid+`","inputs":{"do":"fds"}}`)
		got := output(t, c.next(patience))
		if !strings.Contains(got, "pipe:") {
			t.Errorf("%s cannot see its own: %s", aid, got)
		}
		for _, kind := range []string{inheritedName, "socket:"} {
			if strings.Contains(got, kind) {
				t.Errorf("%s sees a descriptor of the server: %s", aid, got)
			}
		}
	}
}

// gone waits until a process does not run any more; one that only waits for its parent counts.
func gone(pid string) bool {
	for range 100 {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// TestATimeoutKillsTheGroup: what a worker started dies with it.
func TestATimeoutKillsTheGroup(t *testing.T) {
	srv, root := withWorkers(t, stdio, nil)
	pidFile := filepath.Join(root, "child")
	say1(srv.io, `{"aid":"AID.EXT.PY.v1","inputs":{"do":"hang","reply":"`+pidFile+`"}}`)
	if got := srv.io.next(patience); !strings.Contains(got, `"type":"timeout"`) {
		t.Fatalf("got %s", got)
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if !gone(string(pid)) {
		exec.Command("kill", string(pid)).Run()
		t.Error("the worker's child lives on")
	}
}

// TestMaxProcs: a worker with more processes than the operator permits is ended with all of them,
// at once; one with as many is not.
func TestMaxProcs(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be counted here: ", err)
	}
	f := func(procs, aid, want string) {
		t.Helper()
		srv, root := withWorkers(t, stdio, []string{"MACHINA_WORKER_MAX_PROCS=" + procs})
		pidFile := filepath.Join(root, "child")
		say1(srv.io, `{"aid":"`+aid+`","inputs":{"do":"hang","reply":"`+pidFile+`"}}`)
		if got := srv.io.next(patience); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", procs, got)
		}
		pid, err := os.ReadFile(pidFile)
		if err == nil && len(pid) > 0 && !gone(string(pid)) { // empty: the worker was ended before it wrote
			t.Errorf("%s: the worker's child lives on", procs)
		}
	}
	f("1", "AID.EXT.MANY.v1", `"error":"toolhost exit 137: more than 1 processes"`) // long before its timeout
	f("2", "AID.EXT.PY.v1", `"type":"timeout"`)
}

// TestWorkersEndWithTheServer, also when it has no time to state so.
func TestWorkersEndWithTheServer(t *testing.T) {
	for _, how := range []string{"killed", "ended"} {
		srv, _ := withWorkers(t, stdio, nil)
		say1(srv.io, `{"aid":"AID.EXT.MANY.v1","inputs":{"do":"who"}}`)
		var who struct{ Pid int }
		if err := json.Unmarshal([]byte(output(t, srv.io.next(patience))), &who); err != nil {
			t.Fatal(err)
		}
		if how == "killed" {
			srv.cmd.Process.Kill()
		} else {
			srv.io.halfClose()
		}
		srv.exit(patience)
		if !gone(strconv.Itoa(who.Pid)) {
			exec.Command("kill", strconv.Itoa(who.Pid)).Run()
			t.Errorf("%s: worker %d lives on", how, who.Pid)
		}
	}
}

// TestAPoolServesInParallel: four workers at once and no more; a fifth request waits.
func TestAPoolServesInParallel(t *testing.T) {
	srv, _ := withWorkers(t, unix, nil)
	var conns []*stream
	for range 6 {
		c := srv.dial(t)
		say1(c, `{"aid":"AID.EXT.MANY.v1","inputs":{"do":"who","ms":500}}`)
		conns = append(conns, c)
	}
	pids := map[int]bool{}
	for _, c := range conns {
		var who struct{ Pid int }
		if err := json.Unmarshal([]byte(output(t, c.next(patience))), &who); err != nil {
			t.Fatal(err)
		}
		pids[who.Pid] = true
	}
	if len(pids) != 4 {
		t.Errorf("%d workers served six requests at once, want 4", len(pids))
	}
}

// TestSingleShotUnderTheRunnersLimits: address space 1 GiB, 64 descriptors, 32 threads (toolhost
// §2.1).
func TestSingleShotUnderTheRunnersLimits(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	n := 10
	if rounds.Long() {
		n = 60
	}
	for i := range n {
		cmd := exec.Command("prlimit", "--as=1073741824", "--nofile=64", "--nproc=32",
			kit.Program(t, scratch), "tool_exec", "AID.NOOP.v1")
		cmd.Dir, cmd.Env, cmd.Stdin = newDir(t), environ(nil), strings.NewReader("{}\n")
		out, err := cmd.CombinedOutput()
		if want := `{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"slots":{}}}` + "\n"; err != nil || string(out) != want {
			t.Fatalf("call %d: %v: %s", i, err, clip(string(out)))
		}
	}
}

// TestOneProbe: when the cooldown is over one call tries, the others are tripped.
func TestOneProbe(t *testing.T) {
	srv, _ := withWorkers(t, unix, nil, "--breaker-threshold", "1", "--breaker-cooldown-ms", "300")
	a, b := srv.dial(t), srv.dial(t)
	say1(a, `{"aid":"AID.EXT.MANY.v1","inputs":{"do":"exit","n":1}}`)
	if got := a.next(patience); !strings.Contains(got, `"type":"crash"`) {
		t.Fatal(got)
	}
	time.Sleep(400 * time.Millisecond)
	say1(a, `{"aid":"AID.EXT.MANY.v1","inputs":{"ms":600}}`)
	time.Sleep(200 * time.Millisecond)
	trip := `{"ok":false,"status":"BREAKER_TRIP","output_json":"{}","error":"circuit breaker open for AID.EXT.MANY.v1","ds_state":{"delta":true,"slots":{},"removed_slots":[]}}`
	say1(b, `{"aid":"AID.EXT.MANY.v1"}`)
	want(t, b, trip)
	want(t, a, nop)
	say1(b, `{"aid":"AID.EXT.MANY.v1"}`)
	want(t, b, nop)
}

// TestThePolicyHasABreakerToo: five failures in a row, and it is not asked for a while.
func TestThePolicyHasABreakerToo(t *testing.T) {
	s := newScript(t, stdio, "policy")
	s.copyFiles([]string{"j.json"})
	s.put("policies/p.sh", "echo x >> "+s.root+"/asked; exit 1\n")
	srv := serve(t, stdio, s.root, []string{"MACHINA_POLICY_CMD=sh " + s.root + "/policies/p.sh", "MACHINA_POLICY_COOLDOWN_MS=700"}, "--serve", "j.json")
	c := srv.io
	say1(c, `{"aid":"_run.open","goal_id":"g","candidate_tags":["tag.error"],"control_mode":"POLICY_ONLY"}`)
	c.next(patience)
	n := 0
	pick := func() string {
		n++
		say1(c, fmt.Sprintf(`{"aid":"AID.NOOP.v1","ds_state":{"slots":{"7":{"size_bytes":%d}}}}`, n))
		c.next(patience)
		say1(c, `{"aid":"_run.select"}`)
		return c.next(patience)
	}
	asked := func(want int) {
		t.Helper()
		b, _ := os.ReadFile(s.root + "/asked")
		if got := strings.Count(string(b), "x"); got != want {
			t.Errorf("the policy was asked %d times, want %d", got, want)
		}
	}
	for range 5 {
		if got := pick(); !strings.Contains(got, `[policy_failure]policy exit_code=1\n`) {
			t.Fatal(got)
		}
	}
	for range 3 {
		if got := pick(); !strings.Contains(got, `"sid":"SID0001"`) {
			t.Fatal(got)
		}
	}
	asked(5)
	time.Sleep(800 * time.Millisecond)
	pick()
	pick()
	asked(6) // one probe, which failed
}

// TestAnIdleWorkerIsStopped after its idle_ms.
func TestAnIdleWorkerIsStopped(t *testing.T) {
	s := newScript(t, stdio, "idle")
	s.copyFiles([]string{"ext.json"})
	b, err := os.ReadFile(filepath.Join(s.root, "ext.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.put("ext.json", strings.ReplaceAll(string(b), `"idle_ms":60000`, `"idle_ms":300`))
	c := serve(t, stdio, s.root, nil, "--serve", "ext.json").io
	say1(c, `{"aid":"AID.EXT.PY.v1"}`)
	want(t, c, nop)
	stats := func() string {
		say1(c, `{"aid":"_stats"}`)
		return c.next(patience)
	}
	if got := stats(); !strings.HasSuffix(got, `"workers":1}`) {
		t.Errorf("after a call: %s", got)
	}
	for range 100 {
		if strings.HasSuffix(stats(), `"workers":0}`) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("it is still there: %s", stats())
}
