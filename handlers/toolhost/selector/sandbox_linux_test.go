package selector

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// ended waits until no process of that number runs; one that only waits to be reaped does not.
func ended(t *testing.T, pid string) {
	t.Helper()
	if pid == "" {
		t.Fatal("the script did not say what it started")
	}
	for range 1000 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if _, rest, _ := strings.Cut(string(stat), ") "); err != nil || strings.HasPrefix(rest, "Z") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s still runs", pid)
}

func TestNoProcessIsLeftBehind(t *testing.T) {
	f := func(script, raw string, settings ...string) {
		t.Helper()
		p := withScript(t, "echo $$ >self.txt; sleep 300 & echo $! >pid.txt; "+script, settings...)
		if st := p.step("POLICY_ONLY"); st.Selection.Raw != raw {
			t.Errorf("%s: %q, want %q", script, st.Selection.Raw, raw)
		}
		ended(t, p.read("self.txt"))
		ended(t, p.read("pid.txt"))
	}
	fail := func(why string) string { return "[policy_failure]" + why + "\n" + ownRaw }
	f(pickNoop, "<PICK><SID0002><END>") // although the other one holds the pipe
	f("exit 4", fail("policy exit_code=4"))
	f("sleep 300", fail("policy timed out"), "TIMEOUT_MS=1000")
	f("while :; do echo too much; done", fail("invalid policy output"))
}

func TestCallerGivesUp(t *testing.T) {
	p := withScript(t, "echo $$ >self.txt; sleep 300")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for range 1000 {
			if text, err := os.ReadFile(p.root + "/self.txt"); err == nil && len(text) > 1 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	run := open(t, p.cfg, `{"goal_id":"g","candidate_tags":["tag.error"],"control_mode":"POLICY_ONLY"}`)
	if st := run.Select(ctx, state("", "")); st.Selection.Raw != "[policy_failure]policy timed out\n"+ownRaw {
		t.Errorf("%+v", st.Selection)
	}
	ended(t, p.read("self.txt"))
}

// What left the group keeps the pipe open; the answer is what was written by then.
func TestDescendantHoldsThePipe(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid to leave the group with:", err)
	}
	p := withScript(t, "setsid sleep 2 & "+pickNoop+"; while ! test -e /proc/$!/exe; do :; done; sleep 0.2")
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "<PICK><SID0002><END>" {
		t.Errorf("%+v", st.Selection)
	}
}

func TestResourceLimits(t *testing.T) {
	p := withScript(t, `cat /proc/self/limits >limits.txt; `+pickNoop, "RLIMIT_CPU_SEC=7", "RLIMIT_AS_MB=600", "RLIMIT_FSIZE_MB=3", "RLIMIT_NOFILE=33", "RLIMIT_NPROC=0")
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "<PICK><SID0002><END>" {
		t.Errorf("%+v", st.Selection)
	}
	got := p.read("limits.txt")
	for name, want := range map[string]string{"Max cpu time": "7 7 seconds", "Max file size": "3145728 3145728 bytes", "Max open files": "33 33 files", "Max address space": "629145600 629145600 bytes"} {
		_, rest, _ := strings.Cut(got, name)
		line, _, _ := strings.Cut(rest, "\n")
		if fields := strings.Join(strings.Fields(line), " "); fields != want {
			t.Errorf("%s: %s, want %s", name, fields, want)
		}
	}
}

func TestCPUTimeIsLimited(t *testing.T) {
	p := withScript(t, "while :; do :; done", "RLIMIT_CPU_SEC=1")
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "[policy_failure]policy exit_code=137\n"+ownRaw {
		t.Errorf("%+v", st.Selection)
	}
}

// TestNoNewPrivileges: a policy gets no more rights by what it starts.
func TestNoNewPrivileges(t *testing.T) {
	p := withScript(t, "grep NoNewPrivs /proc/self/status >status.txt; "+pickNoop)
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "<PICK><SID0002><END>" {
		t.Errorf("%+v", st.Selection)
	}
	if got := strings.Join(strings.Fields(p.read("status.txt")), " "); got != "NoNewPrivs: 1" {
		t.Errorf("%q", got)
	}
}

// TestPolicyThatCannotBegin: its file may be run and is no program.
func TestPolicyThatCannotBegin(t *testing.T) {
	p := withScript(t, "", "ALLOW_UNSAFE=1")
	if err := os.WriteFile(p.root+"/nonsense", []byte("nonsense"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.cfg.Policy.argv = []string{p.root + "/nonsense"}
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "[policy_failure]policy not started\n"+ownRaw {
		t.Errorf("%+v", st.Selection)
	}
}
