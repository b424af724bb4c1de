package selector

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// scripted is a policy that is a shell script, with what it needs to run and to be watched.
type scripted struct {
	*testing.T
	root, tmp string
	cfg       *Config
	now       int64
}

// withScript makes a policy of a script. settings are the variables behind MACHINA_POLICY_, as
// "NAME=value".
func withScript(t *testing.T, script string, settings ...string) *scripted {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh to run a policy with:", err)
	}
	p := &scripted{T: t, root: tree(t, map[string]string{"policies/p.sh": script}), tmp: t.TempDir()}
	env := environ{"MACHINA_POLICY_CMD": "/bin/sh policies/p.sh", "PATH": os.Getenv("PATH"), "TMPDIR": p.tmp, "MACHINA_API_TOKEN": "secret"}
	env["MACHINA_POLICY_TIMEOUT_MS"], env["MACHINA_POLICY_RLIMIT_NPROC"] = "60000", "0" // the machine may be slow and crowded
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		env["MACHINA_POLICY_"+name] = value
	}
	p.cfg = &Config{Tools: tools(), Policy: PolicyFrom(env.get, p.root, func() int64 { return p.now })}
	t.Cleanup(func() {
		left, err := os.ReadDir(p.tmp)
		if err != nil || len(left) > 0 {
			t.Errorf("files left behind: %v %v", left, err)
		}
	})
	return p
}

// step takes the first step of a new run.
func (p *scripted) step(mode string) Step {
	p.Helper()
	run := open(p.T, p.cfg, `{"goal_id":"g","candidate_tags":["tag.error"],"inputs":{"a": 1.0},"control_mode":"`+mode+`"}`)
	st := run.Select(context.Background(), state("67", "S\\\""))
	return st
}

// read returns what the script wrote to a file of its working directory.
func (p *scripted) read(name string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		p.Error(err)
	}
	return strings.TrimSpace(string(b))
}

const (
	pickNoop = `printf '<PICK><SID0002><END>'`
	ownRaw   = "<PICK><SID0001><END>" // the heuristic's output
)

func TestPolicyOutcomes(t *testing.T) {
	f := func(script, kind, raw string, settings ...string) {
		t.Helper()
		st := withScript(t, script, settings...).step("POLICY_ONLY")
		if st.Selection.Raw != raw || st.Selection.Kind.String() != kind {
			t.Errorf("%s: %+v, want %s %q", script, st.Selection, kind, raw)
		}
	}
	failed := func(script, why string, settings ...string) {
		t.Helper()
		f(script, "PICK", "[policy_failure]"+why+"\n"+ownRaw, settings...)
	}
	f(pickNoop, "PICK", "<PICK><SID0002><END>")
	f(`echo '<PICK><SID0002>'; echo '<INP>{"b":2}</INP><END>'`, "PICK", "<PICK><SID0002>\n<INP>{\"b\":2}</INP><END>\n")
	f(`echo '<NOOP><END>'`, "NOOP", "<NOOP><END>\n")
	f(`echo '<ASK_SUP><END>'`, "ASK_SUP", "<ASK_SUP><END>\n")
	f(`echo noise >&2; echo '<NOOP><END>'; i=0; while [ $i -lt 3000 ]; do echo 'more noise, more than a pipe holds' >&2; i=$((i+1)); done`, "NOOP", "<NOOP><END>\n")
	f(`cat; echo '<NOOP><END>'`, "NOOP", "<NOOP><END>\n") // stdin is empty

	failed(`exit 3`, "policy exit_code=3")
	failed(pickNoop+`; exit 1`, "policy exit_code=1")
	failed(`kill -SEGV $$`, "policy exit_code=139")
	failed(`kill -KILL $$`, "policy exit_code=137")
	failed(`no such command`, "policy exit_code=127")
	failed(``, "empty policy output")
	failed(`printf ' \n\t\r\n'`, "empty policy output")
	failed(`echo only noise >&2`, "empty policy output")
	failed(`echo garbage`, "invalid policy output")
	failed(`echo '<PICK><SID2><END>'`, "invalid policy output")
	failed(`printf '\377<NOOP><END>'`, "invalid policy output")
	failed(`echo '<NOOP><END>'; echo '<NOOP><END>'`, "invalid policy output")
	failed(`echo '<PICK><SID0003><END>'`, "policy picked non-existent sid: SID0003")
	failed(`echo '<PICK><SID0000><INP>{}</INP><END>'`, "policy picked non-existent sid: SID0000")

	// The cap on stdout.
	f(`printf '<NOOP> <END>'`, "NOOP", "<NOOP> <END>", "STDOUT_MAX=12")
	failed(`printf '<NOOP> <END> '`, "invalid policy output", "STDOUT_MAX=12")
	failed(`while :; do echo '<NOOP><END>'; done`, "invalid policy output")

	// Time.
	failed(`sleep 300`, "policy timed out", "TIMEOUT_MS=50")
	failed(pickNoop+`; exec sleep 300`, "policy timed out", "TIMEOUT_MS=200")
	failed(pickNoop+`; exec >&-; sleep 300`, "policy timed out", "TIMEOUT_MS=200")
	failed(`trap '' TERM INT HUP; sleep 300; sleep 300`, "policy timed out", "TIMEOUT_MS=50")

	// Not started.
	failed(``, "policy not started", "CMD=./gone/sh policies/p.sh")
	failed(``, "policy not started", "CMD=not-a-command-at-all policies/p.sh", "ALLOW_UNSAFE=1")
	failed(``, "policy not started", "CMD='' policies/p.sh", "ALLOW_UNSAFE=1")

	// The guards, which are no failure.
	f(pickNoop, "INVALID", "policy exe not allowed: ruby", "CMD=ruby policies/p.sh")
	f(pickNoop, "INVALID", "policy script path not allowed: ../p.sh", "CMD=/bin/sh ../p.sh")
	f(pickNoop, "PICK", "<PICK><SID0002><END>", `CMD=/bin/sh -c '. "./policies/p.sh"'`, "ALLOW_UNSAFE=1")
}

func TestPolicySees(t *testing.T) {
	p := withScript(t, `
		cp "$1" question.json; stat -c '%a %u' "$1" >stat.txt; echo "$#" >args.txt; pwd >pwd.txt; env >env.txt
		echo '<PICK><SID0002><INP>{"b":2,"_system":3}</INP><END>'`)
	st := p.step("BLENDED")
	if st.Status != tool.OK || st.PickAID != "AID.NOOP.v1" || string(st.Inputs) != `{"a":1.0,"b":2}` {
		t.Errorf("%+v", st)
	}
	want := `{"goal_digest":"g|FLAGS:DS0=0;DS2=0;DS6=1;DS7=1;DS6_STAGE=S\\\";|tag.error|tag.meta","state_digest":"` + st.StateDigest + `","control_mode":"BLENDED","inputs":{"a": 1.0},"menu":[` +
		`{"sid":"SID0001","aid":"AID.ERROR_SCAN.v1","name":"error_scan","tags":["tag.log","tag.scan","tag.error"]},{"sid":"SID0002","aid":"AID.NOOP.v1","name":"noop","tags":["tag.meta"]}]}`
	want = strings.Replace(want, `S\\\"`, `S\"`, 1) // the artifact holds the stage as a JSON string
	if got := p.read("question.json"); got != want || !json.Valid([]byte(got)) {
		t.Errorf("asked %s, want\n%s", got, want)
	}
	if got := p.read("stat.txt"); got != "600 "+strconv.Itoa(os.Getuid()) {
		t.Errorf("the file with the question has mode and owner %q", got)
	}
	if got := p.read("args.txt"); got != "1" {
		t.Errorf("%s arguments, want 1", got)
	}
	if got := p.read("pwd.txt"); got != p.root {
		t.Errorf("it works in %q, want %q", got, p.root)
	}
	for line := range strings.Lines(p.read("env.txt")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.Contains(" PATH HOME LANG LC_ALL TMPDIR MACHINA_ROOT PWD OLDPWD SHLVL _ ", " "+name+" ") || value == "secret" {
			t.Errorf("it finds %s in its environment", line)
		}
	}
}

func TestControlModes(t *testing.T) {
	const refused = "policy exe not allowed: ruby"
	const failure = "[policy_failure]policy exit_code=1\n" + ownRaw
	f := func(mode, script, cmd, aid, raw, shadow string) {
		t.Helper()
		p := withScript(t, script, "CMD="+cmd)
		if cmd == "" {
			p.cfg.Policy = nil
		}
		st := p.step(mode)
		if st.PickAID != aid || st.Selection.Raw != raw || st.ShadowRaw != shadow {
			t.Errorf("%s: %+v, want %s %q, shadow %q", mode, st, aid, raw, shadow)
		}
	}
	const scan, noop, theirs, sh = "AID.ERROR_SCAN.v1", "AID.NOOP.v1", "<PICK><SID0002><END>", "/bin/sh policies/p.sh"
	f("FALLBACK_ONLY", pickNoop, sh, scan, ownRaw, "")
	f("POLICY_ONLY", pickNoop, sh, noop, theirs, "")
	f("BLENDED", pickNoop, sh, noop, theirs, "")
	f("SHADOW_POLICY", pickNoop, sh, scan, ownRaw, theirs)

	f("FALLBACK_ONLY", "exit 1", sh, scan, ownRaw, "")
	f("POLICY_ONLY", "exit 1", sh, scan, failure, "")
	f("BLENDED", "exit 1", sh, scan, failure, "")
	f("SHADOW_POLICY", "exit 1", sh, scan, ownRaw, failure)

	f("FALLBACK_ONLY", pickNoop, "ruby x", scan, ownRaw, "")
	f("POLICY_ONLY", pickNoop, "ruby x", "", refused, "")
	f("BLENDED", pickNoop, "ruby x", scan, ownRaw, "")
	f("SHADOW_POLICY", pickNoop, "ruby x", scan, ownRaw, refused)

	const none = "[policy_failure]policy not started\n" + ownRaw
	f("FALLBACK_ONLY", "", "", scan, ownRaw, "")
	f("POLICY_ONLY", "", "", scan, none, "")
	f("BLENDED", "", "", scan, none, "")
	f("SHADOW_POLICY", "", "", scan, ownRaw, "")
}

// TestFallbackRunsNoPolicy is toolhost D27.
func TestFallbackRunsNoPolicy(t *testing.T) {
	p := withScript(t, "touch started")
	p.step("FALLBACK_ONLY")
	if _, err := os.Stat(filepath.Join(p.root, "started")); err == nil {
		t.Error("the policy was run")
	}
}

func TestPolicyBreaker(t *testing.T) {
	p := withScript(t, "echo x >>runs.txt; test -e good && "+pickNoop, "FAIL_THRESHOLD=2", "COOLDOWN_MS=1000")
	f := func(now int64, raw string, runs int) {
		t.Helper()
		p.now = now * int64(time.Millisecond)
		if st := p.step("POLICY_ONLY"); st.Selection.Raw != raw {
			t.Errorf("at %d: %+v, want %q", now, st.Selection, raw)
		}
		if got := strings.Count(p.read("runs.txt"), "x"); got != runs {
			t.Errorf("at %d: %d runs, want %d", now, got, runs)
		}
	}
	const failure = "[policy_failure]policy exit_code=1\n" + ownRaw
	f(0, failure, 1)
	f(10, failure, 2)
	f(11, ownRaw, 2)
	f(1009, ownRaw, 2)
	f(1010, failure, 3) // the probe
	f(2009, ownRaw, 3)
	if err := os.WriteFile(filepath.Join(p.root, "good"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f(2010, "<PICK><SID0002><END>", 4)
	f(2011, "<PICK><SID0002><END>", 5)
}

// Refusals of the guards neither open the breaker nor use up its probe.
func TestRefusalIsNoFailure(t *testing.T) {
	p := withScript(t, pickNoop, "FAIL_THRESHOLD=1", "CMD=ruby policies/p.sh")
	for range 3 {
		if st := p.step("POLICY_ONLY"); st.Selection.Kind != Invalid || st.Status != tool.InvalidPick || st.Error != "invalid_pick" {
			t.Errorf("%+v", st)
		}
	}
	if st, failures := p.cfg.Policy.breaker.State(); st != tool.BreakerClosed || failures != 0 {
		t.Error("refusals count as failures")
	}
}

func TestUnwritableQuestion(t *testing.T) {
	p := withScript(t, pickNoop)
	p.cfg.Policy.tmp = filepath.Join(p.tmp, "gone")
	if st := p.step("POLICY_ONLY"); st.Selection.Raw != "[policy_failure]policy not started\n"+ownRaw {
		t.Errorf("%+v", st.Selection)
	}
}

// Sessions share a policy: each gets the answer to its own question.
func TestPolicyIsShared(t *testing.T) {
	p := withScript(t, `if grep -q '"inputs":{"n":1}' "$1"; then `+pickNoop+`; else echo '<NOOP><END>'; fi`)
	done := make(chan string)
	for n := range 8 {
		run := open(t, p.cfg, `{"goal_id":"g","candidate_tags":["tag.error"],"control_mode":"POLICY_ONLY","inputs":{"n":`+strconv.Itoa(n%2)+`}}`)
		go func() {
			st := run.Select(context.Background(), state("", ""))
			if want := [2]string{"", "AID.NOOP.v1"}[n%2]; st.PickAID != want || st.Status != tool.OK {
				done <- "input " + strconv.Itoa(n%2) + " got " + st.Selection.Raw
				return
			}
			done <- ""
		}()
	}
	for range 8 {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
}
