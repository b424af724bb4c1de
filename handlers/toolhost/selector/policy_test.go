package selector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

// environ is an environment for PolicyFrom.
type environ map[string]string

func (e environ) get(name string) string { return e[name] }

func TestSplitCommand(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		if got, ok := SplitCommand(text); !ok || cmp.Diff(want, got) != "" {
			t.Errorf("%q is %q %v, want %q", text, got, ok, want)
		}
	}
	f("")
	f(" \t\r\n")
	f("a", "a")
	f("  a  b\tc\n", "a", "b", "c")
	f(`sh 'a b' "c d"`, "sh", "a b", "c d")
	f(`a'b c'd"e f"g`, "ab cde fg")
	f(`'' "" a`, "", "", "a")
	f(`'a"b' "c'd"`, `a"b`, "c'd")
	f(`"a\"b\\c\d\ "`, `a"b\cd `)
	f(`'a\' b\ c \"x"`, `a\`, `b\`, "c", `\x`)
	f("\u00e9 '\xff'", "\u00e9", "\xff")

	for _, text := range []string{`'`, `"`, `a 'b`, `a "b`, `"a\"`, `"a\`, `'a"`, `a''"`} {
		if got, ok := SplitCommand(text); ok {
			t.Errorf("%q is %q, want it refused", text, got)
		}
	}
}

// rest is a breaker of a policy that no run has used.
func rest(threshold int, cooldown time.Duration) *tool.Breaker {
	return tool.NewBreaker(tool.BreakerConfig{Threshold: threshold, Cooldown: cooldown})
}

func TestPolicyFrom(t *testing.T) {
	f := func(env environ, change func(*Policy)) {
		t.Helper()
		dir := t.TempDir()
		want := Policy{
			root: dir, env: []string{"MACHINA_ROOT=" + dir}, tmp: os.TempDir(), argv: []string{"sh", "x.sh"},
			allowedExe: []string{"python3", "python", "bash", "sh", "node"}, scriptRoot: filepath.Join(dir, "policies"),
			timeout: 2500 * time.Millisecond, stdoutMax: 65536, limits: workerexec.Limits{CPU: 2, AddressSpace: 768 << 20, FileSize: 10 << 20, OpenFiles: 64, UserThreads: 32},
			breaker: rest(5, 30*time.Second),
		}
		change(&want)
		full := environ{"MACHINA_POLICY_CMD": "sh x.sh"}
		for name, v := range env {
			full[strings.Replace(name, "~", "MACHINA_POLICY_", 1)] = v
		}
		got := PolicyFrom(full.get, dir, nil)
		if got == nil {
			t.Fatalf("%v: no policy", env)
		}
		opt := cmp.AllowUnexported(Policy{}, tool.Breaker{})
		if diff := cmp.Diff(&want, got, opt, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".mu" }, cmp.Ignore())); diff != "" {
			t.Errorf("%v:\n%s", env, diff)
		}
	}
	f(nil, func(*Policy) {})
	f(environ{"~CMD": `python3 'a b.py'`}, func(p *Policy) { p.argv = []string{"python3", "a b.py"} })
	f(environ{"~ALLOWED_EXE": " Ruby, ,lua "}, func(p *Policy) { p.allowedExe = []string{"ruby", "lua"} })
	f(environ{"~ALLOWED_SCRIPT_ROOT": "a/../b"}, func(p *Policy) { p.scriptRoot = filepath.Join(p.root, "b") })
	f(environ{"~ALLOWED_SCRIPT_ROOT": "/opt/p/"}, func(p *Policy) { p.scriptRoot = "/opt/p" })
	f(environ{"~ALLOW_UNSAFE": "1"}, func(p *Policy) { p.unsafe = true })
	f(environ{"~ALLOW_UNSAFE": "true"}, func(*Policy) {})
	f(environ{"~TIMEOUT_MS": "10", "~STDOUT_MAX": "20", "~FAIL_THRESHOLD": "3", "~COOLDOWN_MS": "4"}, func(p *Policy) {
		p.timeout, p.stdoutMax, p.breaker = 10*time.Millisecond, 20, rest(3, 4e6)
	})
	f(environ{"~TIMEOUT_MS": "0", "~STDOUT_MAX": "-1", "~FAIL_THRESHOLD": "0", "~COOLDOWN_MS": "-5"}, func(p *Policy) {
		p.timeout, p.stdoutMax, p.breaker = time.Millisecond, 1, rest(1, 0)
	})
	f(environ{"~TIMEOUT_MS": "600001", "~STDOUT_MAX": "1048577", "~FAIL_THRESHOLD": "2147483648", "~COOLDOWN_MS": "2147483648"}, func(p *Policy) {
		p.timeout, p.stdoutMax, p.breaker = 10*time.Minute, 1<<20, rest(1<<31-1, (1<<31-1)*1e6)
	})
	f(environ{"~TIMEOUT_MS": "1.5", "~STDOUT_MAX": "64k", "~FAIL_THRESHOLD": " 3", "~COOLDOWN_MS": "99999999999999999999", "~RLIMIT_NPROC": "x"}, func(*Policy) {})
	f(environ{"~RLIMIT_CPU_SEC": "1", "~RLIMIT_AS_MB": "0", "~RLIMIT_FSIZE_MB": "3", "~RLIMIT_NOFILE": "-1", "~RLIMIT_NPROC": "5"}, func(p *Policy) {
		p.limits = workerexec.Limits{CPU: 1, FileSize: 3 << 20, UserThreads: 5}
	})
	f(environ{"PATH": "/a:/b", "HOME": "/h", "LANG": "C", "LC_ALL": "D", "TMPDIR": "/t", "LD_PRELOAD": "x", "MACHINA_API_TOKEN": "y", "MACHINA_ROOT": "/other"}, func(p *Policy) {
		p.tmp = "/t"
		p.env = []string{"PATH=/a:/b", "HOME=/h", "LANG=C", "LC_ALL=D", "TMPDIR=/t", "MACHINA_ROOT=" + p.root}
	})

	for _, cmd := range []string{"", " ", `sh "x.sh`} {
		if p := PolicyFrom(environ{"MACHINA_POLICY_CMD": cmd}.get, t.TempDir(), nil); p != nil {
			t.Errorf("%q is a policy: %q", cmd, p.argv)
		}
	}
}

// tree makes files, and links where the content begins with "->", below a new folder.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if to, ok := strings.CutPrefix(content, "->"); err == nil && ok {
			err = os.Symlink(to, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGuards(t *testing.T) {
	root := tree(t, map[string]string{
		"policies/p.py": "", "policies/sub/p.js": "", "policies/in.sh": "->p.py", "policies/out.sh": "->../other.sh", "policies/dir": "->..", "other.sh": "",
		"policies/p.txt": "", "linked": "->policies", "policiesx/p.sh": "", "policies/dangling.sh": "->gone.sh", "policies/folder.sh/x": "",
	})
	f := func(cmd string, env environ, want string) {
		t.Helper()
		full := environ{"MACHINA_POLICY_CMD": cmd}
		for name, v := range env {
			full["MACHINA_POLICY_"+name] = v
		}
		if got := PolicyFrom(full.get, root, nil).refusal(); got != want {
			t.Errorf("%s %v: %q, want %q", cmd, env, got, want)
		}
	}
	for _, exe := range []string{"python3", "python", "bash", "sh", "node", "/usr/bin/Python3", "./sh", "SH"} {
		f(exe+" policies/p.py", nil, "")
	}
	for exe, name := range map[string]string{"ruby": "ruby", "/bin/ZSH": "zsh", "sh.exe": "sh.exe", "python3.11": "python3.11", "''": "", "sh/": "", "/bin/env": "env"} {
		f(exe+" policies/p.py", nil, "policy exe not allowed: "+name)
	}
	f("ruby policies/p.py", environ{"ALLOWED_EXE": "lua,Ruby"}, "")
	f("sh policies/p.py", environ{"ALLOWED_EXE": "lua,Ruby"}, "policy exe not allowed: sh")

	script := func(path string, ok bool) {
		t.Helper()
		want := ""
		if !ok {
			want = "policy script path not allowed: " + path
		}
		f("sh '"+path+"' more", nil, want)
	}
	script("policies/sub/p.js", true)
	script("policies/sub/../p.py", true)
	script(filepath.Join(root, "policies/p.py"), true)
	script("linked/p.py", true)
	script("policies/in.sh", true)
	script("policies/missing.sh", true) // the error comes when it runs
	script("policies/out.sh", false)
	script("policies/dir/other.sh", false)
	script("policies/../other.sh", false)
	script("policiesx/p.sh", false)
	script("other.sh", false)
	script("../policies/p.py", false)
	script("missing.sh", false)
	script("policies", false)
	script("policies/p.txt", false)
	script("policies/p.py ", false)
	script("-c", false)
	script("", false)
	f("sh", nil, "policy script path not allowed: ")
	f("sh policies/p.py", environ{"ALLOWED_SCRIPT_ROOT": "policies/sub"}, "policy script path not allowed: policies/p.py")
	f("sh policies/sub/p.js", environ{"ALLOWED_SCRIPT_ROOT": "linked/sub"}, "")
	f("sh other.sh", environ{"ALLOWED_SCRIPT_ROOT": "."}, "")
	f("sh other.sh", environ{"ALLOWED_SCRIPT_ROOT": "gone"}, "policy script path not allowed: other.sh")
	f("ruby -e x", environ{"ALLOW_UNSAFE": "1"}, "")
}

func TestExecutable(t *testing.T) {
	root := tree(t, map[string]string{"one/tool": "x", "two/tool": "x", "two/other": "x", "one/folder/x": "", "plain/file": ""})
	if err := os.Chmod(filepath.Join(root, "plain/file"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "one") + ":two::" + filepath.Join(root, "two") + ":" + filepath.Join(root, "plain")
	f := func(name, want string) {
		t.Helper()
		if want != "" {
			want = filepath.Join(root, want)
		}
		p := PolicyFrom(environ{"MACHINA_POLICY_CMD": name, "PATH": path}.get, root, nil)
		if got, err := p.executable(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	f("tool", "one/tool")
	f("other", "two/other")
	f("folder", "")
	f("file", "")
	f("gone", "")
	f("./two/tool", "two/tool")
	f("two/tool", "two/tool")
}
