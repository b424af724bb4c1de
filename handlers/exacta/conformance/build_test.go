package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeTool is a build tool that notes how it was started. It prints the file output and ends with
// the code in the file code.
const fakeTool = `#!/bin/sh
printf '<%s>' "$@" > "$HOME/args"
pwd > "$HOME/cwd"
env > "$HOME/env"
cat > "$HOME/stdin"
if test -e output; then cat output >&2; fi
if test -e script; then . ./script; fi
if test -e code; then exit $(cat code); fi
`

// tools starts a server that finds fake tools of these names only.
func tools(t testing.TB, names string, files ...string) *client {
	t.Helper()
	s := &server{t: t, via: stdio, home: realTemp(t), flags: fixed}
	bin := filepath.Join(s.home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(names + " cat env pwd sleep") {
		var err error
		if path := "/bin/" + name; strings.Contains(" cat env pwd sleep ", " "+name+" ") {
			err = os.Symlink(path, filepath.Join(bin, name))
		} else {
			err = os.WriteFile(filepath.Join(bin, name), []byte(fakeTool), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"PATH=" + bin, "GOFLAGS=-mod=mod", "SECRET_TOKEN=hunter2", "CARGO_HOME=/c", "LANG=C"}
	for i := 0; i < len(files); i += 2 {
		s.write(files[i], files[i+1])
	}
	s.start()
	c := s.connect()
	c.opens("")
	return c
}

// noted returns what a fake tool wrote beside the project.
func (c *client) noted(name string) string {
	return strings.TrimSpace(c.read("../" + name))
}

// TestCommands4_13 has the command of each tool and configuration.
func TestCommands4_13(t *testing.T) {
	t.Parallel()
	f := func(args string, files ...string) *client {
		t.Helper()
		c := tools(t, "go cargo npm make dotnet", files...)
		for configuration, want := range map[string]string{"Debug": strings.Split(args, " | ")[0], "Release": args[strings.LastIndex(args, " | ")+3:]} {
			c.ask("Build", `{"configuration":"`+configuration+`"}`).want("build 0/1; build 1/1", `{"exit_code":0,"duration_ms":0,"warnings":0,"errors":0}`)
			if got := c.noted("args"); got != want {
				t.Errorf("%v %s: %s, want %s", files, configuration, got, want)
			}
			if got := c.noted("cwd"); got != c.dir() {
				t.Errorf("it ran in %s", got)
			}
			if got := c.noted("stdin"); got != "" {
				t.Errorf("its stdin had %q", got)
			}
		}
		return c
	}
	f("<build><-o></dev/null><./...> | <build><-trimpath><-ldflags=-s -w><-o></dev/null><./...>", "go.mod", "", "package.json", "{}", "Makefile", "")
	f("<build> | <build><--release>", "Cargo.toml", "", "go.mod", "")
	f("<run><build> | <run><build>", "package.json", `{"scripts":{"build":"x"}}`, "Makefile", "")
	f("<> | <>", "Makefile", "")
	f("<build><x.sln><-c><Debug><--nologo> | <build><x.sln><-c><Release><--nologo>", "x.sln", "", "y.csproj", "", "z.csproj", "", "go.mod", "")
	f("<build><y.csproj><-c><Debug><--nologo> | <build><y.csproj><-c><Release><--nologo>", "y.csproj", "", "Cargo.toml", "")
	f("<build> | <build><--release>", "go.mod", "", ".exacta/config.json", `{"schema_version":1,"build":{"tool":"cargo"}}`)
	// names that a shell would interpret
	c := f("<build><a b;$(touch x)'.csproj><-c><Debug><--nologo> | <build><a b;$(touch x)'.csproj><-c><Release><--nologo>", "a b;$(touch x)'.csproj", "")
	if c.read("x") != "-" {
		t.Error("a shell ran")
	}
}

// TestConfigurations4_13 has the defaults of a Build and what it refuses.
func TestConfigurations4_13(t *testing.T) {
	t.Parallel()
	c := tools(t, "make npm dotnet go", "Makefile", "", "sub/a.txt", "")
	env := func(name string) string {
		for line := range strings.Lines(c.noted("env") + "\n") {
			if v, ok := strings.CutPrefix(line, name+"="); ok {
				return strings.TrimSpace(v)
			}
		}
		return "-"
	}
	is := func(configuration, node string) {
		t.Helper()
		c.ask("Build", "").is(`{"exit_code":0,…}`)
		if env("CONFIGURATION") != configuration || env("NODE_ENV") != node || env("DOTNET_CLI_TELEMETRY_OPTOUT") != "1" {
			t.Errorf("the environment is %s", c.noted("env"))
		}
	}
	is("Debug", "development")
	allowed := strings.Fields("PATH HOME USERPROFILE TMPDIR TEMP TMP LANG LC_ALL GOPATH GOCACHE GOMODCACHE GOROOT GOTOOLCHAIN CARGO_HOME RUSTUP_HOME DOTNET_ROOT NUGET_PACKAGES SystemRoot APPDATA LOCALAPPDATA ProgramFiles CONFIGURATION NODE_ENV DOTNET_CLI_TELEMETRY_OPTOUT PWD OLDPWD SHLVL _")
	for line := range strings.Lines(c.noted("env")) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(allowed, name) {
			t.Errorf("a build gets %s", line)
		}
	}
	if env("CARGO_HOME") != "/c" || env("LANG") != "C" || env("HOME") != c.home {
		t.Errorf("the environment is %s", c.noted("env"))
	}
	c.server.write(".exacta/config.json", `{"schema_version":1,"build":{"configuration":"Release","working_directory":"sub/"}}`)
	is("Release", "production")
	if got := c.noted("cwd"); got != filepath.Join(c.dir(), "sub") {
		t.Errorf("it ran in %s", got)
	}
	for tool, file := range map[string]string{"npm": "package.json", "dotnet": "x.csproj"} { // what they need is in the directory too
		c.server.write("sub/"+file, `{"scripts":{"build":"x"}}`)
		c.server.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"`+tool+`","working_directory":"sub"}}`)
		is("Debug", "development")
	}
	refused := func(files, outcome string) {
		t.Helper()
		name, text, _ := strings.Cut(files, "=")
		c.server.write(name, text)
		code, _, _ := strings.Cut(outcome, " ")
		c.ask("Build", "").want("build 0/1; raised "+code, outcome)
	}
	refused(`.exacta/config.json={"schema_version":1,"build":{"working_directory":"none"}}`, "CFG-003 ")
	refused(`.exacta/config.json={"schema_version":1,"build":{"tool":"cargo"}}`, "BLD-001 ")
	refused(`.exacta/config.json={"schema_version":1,"build":{"tool":"dotnet"}}`, "CFG-002 ")
	c.server.write("a.csproj", "")
	refused(`b.fsproj=`, "CFG-002 ")
	c.server.write("a.sln", "")
	refused(`b.sln=`, "CFG-002 ")
	for _, text := range []string{"{}", "[]", "{", `{"scripts":{}}`, `{"scripts":[]}`, `{"scripts":{"Build":"x"}}`} {
		c.server.write("package.json", text)
		refused(`.exacta/config.json={"schema_version":1,"build":{"tool":"npm"}}`, "CFG-002 ")
	}
	for _, payload := range []string{`{"configuration":"debug"}`, `{"configuration":5}`, `{"configuration":null}`, `{"timeout_seconds":0}`, `{"timeout_seconds":3601}`,
		`{"timeout_seconds":1.0}`, `{"timeout_seconds":"5"}`, `{"timeout_seconds":true}`, `{"timeout_seconds":null}`} {
		field, _, _ := strings.Cut(payload[2:], `"`)
		r := c.ask("Build", payload).want("", "IPC-009 "+field+":")
		if r.end.Error.Message != "The request payload is invalid: "+field+"." {
			t.Errorf("got %s", r.end.line)
		}
	}
	none := tools(t, "", "a.txt", "")
	r := none.ask("Build", "").want("build 0/1; raised BLD-001", "BLD-001 ")
	if r.end.Error.Message != "Build tool not found: none." {
		t.Errorf("got %s", r.end.line)
	}
}

// TestCounting4_13 has the rules of counting, for the tools that have their own.
func TestCounting4_13(t *testing.T) {
	t.Parallel()
	c := tools(t, "go cargo npm make", "package.json", `{"scripts":{"build":"x"}}`)
	f := func(tool, output string, warnings, errors string) {
		t.Helper()
		c.server.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"`+tool+`"}}`)
		c.server.write("output", output)
		c.ask("Build", "").is(`{"exit_code":0,"duration_ms":0,"warnings":` + warnings + `,"errors":` + errors + `}`)
	}
	f("make", "", "0", "0")
	f("make", "a.c:1:1: warning: w\na.c:2:2: error: e\n", "1", "1")
	f("make", "a: warning: w\n  a: warning: w  \na: warning: w", "1", "0")
	f("make", "\x1b[31merror\x1b[0m: e\nerror: e\n", "0", "1")
	f("make", "ERROR CS0103: x\nerror [TS2304]: y\nFatal Error: z\nerror  : two spaces\nerrors: no\nterror: no\n", "0", "4")
	f("make", "Warning CS0168: x\nwarning: error: both\n", "1", "1")
	f("make", "warning: x generated 3 warnings\nerror: could not compile `x`\nerror: aborting due to 2 errors\nFor more information about this error: x\n", "0", "0")
	f("make", "main.go:3:1: undefined: x\nTypeError: x\n", "0", "0")
	f("go", "main.go:3:1: undefined: x\nsub/a.go:3: y\nnot a.go:3: y\nmain.go:3:1: undefined: x\r\n", "0", "2")
	f("npm", "TypeError: x\nError: y\n at Error: z\nnpm ERR! code\n", "0", "3")
	f("cargo", "warning: unused\nerror[E0425]: cannot find\n", "1", "1")
	// without a counted error a failure is one
	c.server.write("output", "")
	c.server.write("code", "7")
	r := c.ask("Build", "").want("build 0/1; build 1/1; raised BLD-002", `{"exit_code":7,"duration_ms":0,"warnings":0,"errors":1}`)
	if !strings.Contains(r.events[2].line, `"message":"The build failed with 1 error(s)."`) {
		t.Errorf("got %s", r.events[2].line)
	}
	// a signal
	c.server.write("script", "kill -9 $$\n")
	c.ask("Build", "").is(`{"exit_code":137,…}`)
	c.server.write("script", "kill -15 $$\n")
	c.ask("Build", "").is(`{"exit_code":143,…}`)
}

// TestTail4_13 has the end of the output in the detail: 4096 bytes, without secrets and paths.
func TestTail4_13(t *testing.T) {
	t.Parallel()
	c := tools(t, "make", "Makefile", "", "code", "1")
	detail := func(output string) string {
		t.Helper()
		c.server.write("output", output)
		r := c.ask("Build", "").want("build 0/1; build 1/1; raised BLD-002", "{…}")
		var b struct{ Error failure }
		mustDecode(t, r.events[2].Payload, &b)
		return b.Error.Detail
	}
	if got := detail("<a> é\n"); got != "<a> é\n" {
		t.Errorf("got %q", got)
	}
	if got := detail(strings.Repeat("é", 10_000) + "end"); len(got) > 4096 || len(got) < 4090 || !strings.HasSuffix(got, "éend") {
		t.Errorf("got %d bytes: %.20q", len(got), got)
	}
	if got := detail("in " + c.dir() + "/a.c\n"); strings.Contains(got, c.dir()) {
		t.Errorf("got %q", got)
	}
	for _, secret := range append(slices.Clone(highSecrets), "Cookie: a=b; c=d", "set-cookie: x", "Authorization: Digest abc", "bearer abcdefgh", "api_key=abcd", "API-KEY: \"abcd\"",
		"secret_key: abcd", "private-key=abcd", "client_secret = 'abcd'", "access_token=abcd", "refresh-token: abcd", "password=abcd", "passwd: abcd", "pwd=abcd", "secret: abcd", "token=abcd",
		"https://user:pass@host/") {
		got := detail("x " + secret + "\nrest\n")
		if strings.Contains(got, secret) || !strings.Contains(got, "[REDACTED]") || !strings.Contains(got, "rest") {
			t.Errorf("%s: got %q", secret, got)
		}
	}
	for _, plain := range []string{"sk-short", "ghx_01234567890123456789", "AKIA0123456789ABCDE", "bearer abc", "token=abc", "https://host/a@b", "tokens=abcdef"} {
		if got := detail(plain + "\n"); got != plain+"\n" {
			t.Errorf("%s: got %q", plain, got)
		}
	}
}

// highSecrets has one text of each pattern of high confidence (exacta §6.6).
var highSecrets = []string{"-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "sk-abcdefghij_klmnopqrst", "ghp_abcdefghij0123456789", "gho_abcdefghij0123456789",
	"ghu_abcdefghij0123456789", "ghs_abcdefghij0123456789", "ghr_abcdefghij0123456789", "github_pat_abcdefghij0123456789", "xoxa-0123456789", "xoxb-0123456789", "xoxp-0123456789",
	"xoxr-0123456789", "xoxs-0123456789", "AKIA0123456789ABCDEF", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "Authorization: Bearer x", "authorization:basic eA=="}

// TestSecrets6_6 refuses them in requests, diffs, plans and configurations, and shows them nowhere.
func TestSecrets6_6(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, "go.mod", "module x\n", "one.txt", "one\n")
	for i, secret := range highSecrets {
		shown := func(r *reply) {
			t.Helper()
			for _, m := range append(r.events, r.end) {
				if strings.Contains(m.line, secret) {
					t.Errorf("%s is shown: %s", secret, m.line)
				}
			}
		}
		shown(c.ask("ExtractIntent", `{"user_input":`+quote("append \"x "+secret+" x\" to one.txt")+`}`).want("", "SEC-003 "))
		shown(c.ask("ApplyDiffSet", diffs(modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+x "+secret+" x\n"))).want("raised SEC-003", "SEC-003 diffs[0] secret"))
		c.server.write("held.txt", "x "+secret+" x\n")
		r := c.ask("GeneratePlan", `{"intent_id":"`+c.intent(`append "x" to held.txt`)+`"}`).is("SEC-003 ")
		shown(r)
		if r.shorts() != "Idle→Planning GeneratePlan; planning 1/3; raised SEC-003; Planning→Failed PlanInvalid" && r.shorts() != "Failed→Planning GeneratePlan; planning 1/3; raised SEC-003; Planning→Failed PlanInvalid" {
			t.Errorf("events %s", r.shorts())
		}
		name := "q" + string(rune('a'+i))
		c.server.write("../"+name+"/.exacta/config.json", `{"schema_version":1,"x":`+quote(secret)+`}`)
		shown(c.at(filepath.Join(c.home, name), "SEC-003 "))
		e := c.envelope()
		e.command = quote("x " + secret)
		shown(c.message(e.String()).is("IPC-003 "))
	}
	// near misses, and what is only redacted, are allowed
	for _, text := range []string{"sk-abcdefghijklmnopqrs", "xsk-abcdefghij_klmnopqrst", "ghp_abcdefghij012345678", "xoxc-0123456789", "AKIA0123456789ABCDEFG", "password=abcdef"} {
		c.ask("ApplyDiffSet", diffs(modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+"+text+"\n"))).is(`{"applied":true,…}`)
		c.server.write("one.txt", "one\n")
	}
}

// TestGroup4_13 ends a build that ignores SIGTERM, with what it started.
func TestGroup4_13(t *testing.T) {
	t.Parallel()
	c := tools(t, "make", "Makefile", "", "script", "trap '' TERM\nsleep 1000 &\necho $! > pid\nwait\nsleep 1000\n")
	c.ask("Build", `{"timeout_seconds":1}`).want("build 0/1; raised BLD-004", "BLD-004 ")
	c.ends("pid")
}

// ends waits until the process ends whose number is in a file.
func (c *client) ends(name string) {
	c.t.Helper()
	pid := 0
	for deadline := time.Now().Add(waitFor); pid == 0 || !gone(pid); time.Sleep(5 * time.Millisecond) {
		if text := c.read(name); strings.HasSuffix(text, "\n") {
			pid = atoi(c.t, text)
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("process %d is there", pid)
		}
	}
}

// gone reports whether a process has ended; nothing may have waited for it.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "Z")
}

// TestPreviewCommands4_14 has the command of each tool, and projects without one.
func TestPreviewCommands4_14(t *testing.T) {
	t.Parallel()
	f := func(args string, files ...string) {
		t.Helper()
		c := tools(t, "go cargo npm make dotnet", files...)
		c.ask("Preview", "").want("preview 0/1; preview 1/1", `{"started":true}`)
		if got := c.noted("args"); got != args {
			t.Errorf("%v: %s, want %s", files, got, args)
		}
		if got := c.noted("cwd"); got != c.dir() {
			t.Errorf("it ran in %s", got)
		}
		private := ""
		for line := range strings.Lines(c.noted("env")) {
			if dir, ok := strings.CutPrefix(line, "TMPDIR="); ok {
				private = strings.TrimSpace(dir)
			}
		}
		if private == "" || private == os.TempDir() {
			t.Errorf("TMPDIR is %q", private)
		}
	}
	const program = "package main\n\nfunc main() {}\n"
	f("<run><.>", "go.mod", "module x\n", "main.go", program)
	f("<run><./cmd/x>", "go.mod", "module x\n", "x.go", "package x\n", "cmd/x/main.go", program)
	f("<run>", "Cargo.toml", "")
	f("<start>", "package.json", `{"scripts":{"start":"x"}}`)
	f("<run>", "Makefile", "all:\nrun:\n")
	f("<run><--project><x.csproj>", "x.csproj", "")
	none := func(code string, names string, files ...string) {
		t.Helper()
		r := tools(t, names, files...).ask("Preview", "").is(code + " ")
		if got := r.shorts(); !strings.HasSuffix(got, "raised "+code) {
			t.Errorf("%v: events %s", files, got)
		}
	}
	none("BLD-005", "go", "go.mod", "module x\n", "x.go", "package x\n")
	none("BLD-005", "go", "go.mod", "module x\n", "cmd/x/main.go", program, "cmd/y/main.go", program)
	none("BLD-005", "npm", "package.json", `{"scripts":{"build":"x"}}`)
	none("BLD-005", "make", "Makefile", "all:\n")
	none("BLD-001", "", "Makefile", "run:\n")
	none("BLD-001", "", "a.txt", "")
	none("BLD-005", "make", "Makefile", "run:\n", "code", "3")
	none("BLD-005", "make", "Makefile", "run:\n", "script", "kill -9 $$\n")
}

// TestPreviewGroup4_14 stops a preview, with what it started, in each of the ways.
func TestPreviewGroup4_14(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(c *client, id string){
		"Cancel": func(c *client, id string) {
			c.ask("Cancel", `{"execution_id":"`+id+`"}`).is(`{…"status":"cancelling"}`)
		},
		"CloseProject": func(c *client, _ string) { c.ask("CloseProject", "").is(`{"closed":true}`) },
		"life limit":   func(*client, string) {},
		"end of stdin": func(c *client, _ string) { c.server.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tools(t, "make", "Makefile", "run:\n", "script", "sleep 1000 &\necho $! > pid\nwait\n")
			id := c.begin("Preview", map[string]string{"life limit": `{"timeout_seconds":1}`}[name])
			c.await(id).want("preview 0/1; preview 1/1", `{"started":true}`)
			c.ask("Preview", "").want("", "RES-004 ")
			for deadline := time.Now().Add(waitFor); c.read("pid") == "-" && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			}
			stop(c, id)
			c.ends("pid")
		})
	}
}
