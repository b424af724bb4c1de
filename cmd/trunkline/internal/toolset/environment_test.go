package toolset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/tool"
)

func TestRoot(t *testing.T) {
	clean(t)
	base := t.TempDir()
	write(t, base, "named/f.txt", "named")
	write(t, base, "env/f.txt", "env")
	write(t, base, "f.txt", "here")
	t.Chdir(base)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f := func(option, env, want string) {
		t.Helper()
		t.Setenv("MACHINA_ROOT", env)
		s := open(t, Options{Builtins: true, Root: option})
		if want = filepath.Join(wd, want); s.Env.Root != want || s.Env.WriteRoot != filepath.Join(want, "work") {
			t.Errorf("%q over %q: %s and %s, want %s", option, env, s.Env.Root, s.Env.WriteRoot, want)
		}
		if got := s.run("AID.FILE.READ.v1", `{"inputs":{"path":"f.txt"}}`); !strings.Contains(got, filepath.Join(want, "f.txt")) {
			t.Errorf("%q over %q read %s", option, env, got)
		}
	}
	f("", "", "")
	f("", "env", "env")
	f("", filepath.Join(wd, "env", "..", "env"), "env")
	f("named", "", "named")
	f("named", "env", "named")
	f("./named/.", "nowhere", "named")
	f(filepath.Join(wd, "named"), "env", "named")

	t.Setenv("MACHINA_ROOT", "nowhere") // may come into being later: only a setting promises that it is there
	if s := open(t, Options{}); s.Env.Root != filepath.Join(wd, "nowhere") {
		t.Error(s.Env.Root)
	}
}

// TestDirectories: the other directories count from the root that was named, not from the
// environment's.
func TestDirectories(t *testing.T) {
	clean(t)
	root := t.TempDir()
	t.Setenv("MACHINA_ROOT", t.TempDir())
	t.Setenv("MACHINA_REQUEST_DIR", "requests")
	t.Setenv("MACHINA_FS_WRITE_ROOT", "out")
	t.Setenv("MACHINA_MEMORY_ROOT", filepath.Join(root, "notes"))
	t.Setenv("MACHINA_VECDB_DIM", "16")
	write(t, root, "requests/q.txt", "hi")
	s := open(t, Options{Builtins: true, Root: root})
	f := func(aid, inputs, want string) {
		t.Helper()
		if got := s.run(aid, `{"inputs":`+inputs+`}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", aid, got, want)
		}
	}
	f("AID.FILE.READ.v1", `{"path":"q.txt"}`, filepath.Join(root, "requests", "q.txt"))
	f("AID.FILE.WRITE.v1", `{"path":"w.txt","content":"x"}`, filepath.Join(root, "out", "w.txt"))
	f("AID.MEMORY.APPEND.v1", `{"text":"x"}`, filepath.Join(root, "notes", "default.jsonl"))
	f("AID.VECDB.UPSERT.v1", `{"stream":"s","text":"x"}`, `"status":"OK"`)
	if schema, err := os.ReadFile(filepath.Join(root, "work", "vectordb", "s", "schema.json")); err != nil || !strings.Contains(string(schema), `"dim":16`) {
		t.Errorf("%s %v", schema, err)
	}
}

// TestNoWorkingDirectory: who names an absolute root does not need one.
func TestNoWorkingDirectory(t *testing.T) {
	clean(t)
	root, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Getwd(); err == nil {
		t.Skip("this system knows a directory that is gone")
	}
	if s := open(t, Options{Root: root}); s.Env.Root != root {
		t.Error(s.Env.Root)
	}
	if _, err := Open(Options{Root: "x"}); err == nil || !strings.Contains(err.Error(), "cannot use root") {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), "cannot use root") {
		t.Errorf("%v", err)
	}
}

func TestToolTimeout(t *testing.T) {
	clean(t)
	f := func(ms, s string, want time.Duration) {
		t.Helper()
		t.Setenv("MACHINA_TOOLHOST_TIMEOUT_MS", ms)
		t.Setenv("MACHINA_TOOLHOST_TIMEOUT", s)
		if got := ToolTimeout(); got != want {
			t.Errorf("%q ms, %q s: %v, want %v", ms, s, got, want)
		}
		if got := open(t, plain()).config(t).ToolTimeout; got != want {
			t.Errorf("%q ms, %q s: a server has %v, want %v", ms, s, got, want)
		}
	}
	most := strconv.Itoa(math.MaxInt)
	f("", "", 30*time.Second)
	f("1", "2", time.Millisecond)
	f("", "2", 2*time.Second)
	f("0", "2", 2*time.Second)
	f("-1", "2", 2*time.Second)
	f("x", "2", 2*time.Second)
	f("1.5", "0", 30*time.Second)
	f("", "-3", 30*time.Second)
	f("", "1.5", 30*time.Second)
	f("600000", "", 600*time.Second)
	f("600001", "", 600*time.Second)
	f("", "600", 600*time.Second)
	f("", "601", 600*time.Second)
	f(most, "", 600*time.Second)
	f("", most, 600*time.Second)
	f("", "18446744073709552", 600*time.Second) // 1000 times that is 384 in 64 bits
	f(strconv.Itoa(math.MinInt), strconv.Itoa(math.MinInt), 30*time.Second)
	f("99999999999999999999", "2", 2*time.Second)
}

func TestBreakerOptions(t *testing.T) {
	clean(t)
	f := func(threshold, cooldown string, o Options, wantN int, want time.Duration) {
		t.Helper()
		t.Setenv("MACHINA_TOOL_FAIL_THRESHOLD", threshold)
		t.Setenv("MACHINA_TOOL_COOLDOWN_MS", cooldown)
		c := o.breaker("AID.A.v1")
		if c.Threshold != wantN || c.Cooldown != want || c.Now == nil {
			t.Errorf("%q, %q, %+v: %d and %v, want %d and %v", threshold, cooldown, o, c.Threshold, c.Cooldown, wantN, want)
		}
	}
	f("", "", plain(), tool.DefaultThreshold, tool.DefaultCooldown)
	f("5", "30000", plain(), 5, 30*time.Second)
	f("1", "0", plain(), 1, 0)
	f("many", "long", plain(), tool.DefaultThreshold, tool.DefaultCooldown)
	f("7", "70", Options{BreakerThreshold: 2, BreakerCooldown: -1}, 2, 70*time.Millisecond)
	f("7", "70", Options{BreakerThreshold: -1, BreakerCooldown: time.Second}, 7, time.Second)
	f("7", "70", Options{}, 0, 0) // which a breaker takes for 1 and no rest
	f("7", "-5", plain(), 7, 0)
	f("7", strconv.Itoa(math.MinInt), plain(), 7, 0)
	f("7", strconv.Itoa(math.MaxInt), plain(), 7, math.MaxInt64/time.Millisecond*time.Millisecond)
	if c := (&Options{}).breaker("AID.A.v1"); c.Changed != nil {
		t.Error("a breaker is reported without a subscriber")
	}
}

func TestServerConfig(t *testing.T) {
	clean(t)
	s := open(t, plain("builtin"))
	c := s.config(t)
	if c.APIToken != "" || c.OperatorToken != "" || c.EnforceLeases != toolhost.EnforceTCP || c.Policy != nil || c.Registry != s.Registry || c.Events != nil {
		t.Errorf("%+v", c)
	}
	for value, want := range map[string]toolhost.Enforcement{"1": toolhost.EnforceOn, "true": toolhost.EnforceOn, "0": toolhost.EnforceOff, "false": toolhost.EnforceOff} {
		t.Setenv("MACHINA_LEASE_ENFORCE", value)
		if got := s.config(t).EnforceLeases; got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	t.Setenv("MACHINA_API_TOKEN", "a")
	t.Setenv("MACHINA_OPERATOR_TOKEN", "o")
	t.Setenv("MACHINA_POLICY_CMD", "sh policies/p.sh")
	if c = s.config(t); c.APIToken != "a" || c.OperatorToken != "o" || c.Policy == nil {
		t.Errorf("%+v", c)
	}
	t.Setenv("MACHINA_POLICY_CMD", `sh "p`)
	if s.config(t).Policy != nil {
		t.Error("a command line that is not closed is a policy")
	}
}

// TestSwitches: a boolean of the environment is on, off or not set; with any other value nothing is
// served.
func TestSwitches(t *testing.T) {
	clean(t)
	f := func(name, value string, want bool) {
		t.Helper()
		t.Run(name+"="+value, func(t *testing.T) {
			t.Setenv(name, value)
			s, err := Open(plain("builtin"))
			if err == nil {
				defer s.Close()
				_, err = s.ServerConfig(toolhost.Config{})
			}
			if text := fmt.Sprintf("cannot use %s = %q: want 1, true, 0 or false", name, value); (err == nil) != want || err != nil && err.Error() != text {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	for _, name := range switches {
		for _, value := range []string{"1", "true", "0", "false"} {
			f(name, value, true)
		}
		for _, value := range []string{"", "TRUE", "True", "yes", "on", "1 ", " 1", "01", "2", "-1", "t", "FALSE", "no", "off", "null"} {
			f(name, value, false)
		}
	}
	t.Setenv("MACHINA_WAL_FSYNC", "true")
	if s := open(t, plain("builtin")); !s.Env.WALFsync {
		t.Error("true is not on")
	}
	t.Setenv("MACHINA_WAL_FSYNC", "0")
	if s := open(t, plain("builtin")); s.Env.WALFsync {
		t.Error("0 is on")
	}
}
