package exacta

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
	"trunkline/handlers/exacta/workspace"
)

// files writes files below a directory.
func files(t testing.TB, dir string, list map[string]string) {
	t.Helper()
	for name, text := range list {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatAPreviewRuns has the commands of exacta §4.14.
func TestWhatAPreviewRuns(t *testing.T) {
	f := func(tool, dir, want string, list map[string]string) {
		t.Helper()
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		files(t, root, list)
		ws, no := workspace.Open(root, workspace.Options{Key: key()})
		if no != nil {
			t.Fatal(no)
		}
		defer ws.Close()
		if got := strings.Join(start(ws, tool, dir), " "); got != want {
			t.Errorf("%s %v: %q, want %q", tool, list, got, want)
		}
	}
	const program, library, ignored = "package main\nfunc main() {}\n", "package x\n", "//go:build ignore\n\npackage main\n"
	f("go", "", "go run .", map[string]string{"main.go": program, "cmd/a/main.go": program, "x_test.go": "package main_test\n"})
	f("go", "", "go run ./cmd/a", map[string]string{"x.go": library, "make.go": ignored, "cmd/a/main.go": program, "cmd/b/b.go": library, "cmd/main.go": program})
	f("go", "", "", map[string]string{"x.go": library, "cmd/a/main.go": program, "cmd/b/main.go": program})
	f("go", "", "", map[string]string{"x.go": library})
	f("go", "", "", map[string]string{"main.go": "package"})
	f("go", "sub", "go run .", map[string]string{"sub/main.go": program, "x.go": library})
	f("cargo", "", "cargo run", nil)
	f("npm", "", "npm start", map[string]string{"package.json": `{"scripts":{"start":"x"}}`})
	f("npm", "sub", "npm start", map[string]string{"sub/package.json": `{"scripts":{"start":"x"}}`})
	f("npm", "", "", map[string]string{"package.json": `{"scripts":{"build":"x"}}`})
	f("npm", "", "", map[string]string{"package.json": `{"scripts":{"start":7}}`})
	f("npm", "", "", map[string]string{"package.json": `{`})
	f("make", "", "make run", map[string]string{"Makefile": "all: x\n\nrun: all\n"})
	f("make", "", "make run", map[string]string{"Makefile": "test run ::\n"})
	f("make", "", "", map[string]string{"Makefile": "run := x\n.PHONY: run\n\trun: x\n#run: x\nrun ::= x\n"})
	f("make", "", "", map[string]string{"GNUmakefile": "all:\n", "Makefile": "run:\n"})
	f("make", "", "", nil)
	f("dotnet", "", "dotnet run --project a.fsproj", map[string]string{"a.fsproj": "", "b.sln": ""})
	f("dotnet", "", "", map[string]string{"a.fsproj": "", "b.csproj": ""})
	f("dotnet", "", "", nil)
}

// TestPreviewsLeaveNothing: the program gets a directory for temporary files of its own, and with
// its end that and all it started are gone, whatever they do about SIGTERM.
func TestPreviewsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	s, dir := newServer(t), newRoot(t)
	files(t, dir, map[string]string{".exacta/config.json": `{"schema_version":1,"build":{"tool":"make"}}`,
		"Makefile": "run:\n\t@trap '' TERM; echo x > $$TMPDIR/x; echo $$TMPDIR $$TMP $$TEMP > new; mv new dirs; echo $$$$ > new; mv new pid; while :; do echo flood; sleep 0.01; done\n"})
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "Preview", ""))
	p.want(5, "LogEntry1 101:ok Progress2 Progress3 102:ok")
	pid, dirs := written(t, dir, "pid")[0], written(t, dir, "dirs")
	if _, err := os.Stat(filepath.Join(dirs[0], "x")); err != nil || dirs[0] == os.TempDir() || dirs[1] != dirs[0] || dirs[2] != dirs[0] {
		t.Errorf("%v: %v", dirs, err)
	}
	p.send(ask(3, "CloseProject", ""))
	p.want(2, "LogEntry4 103:ok")
	if _, err := os.Stat(dirs[0]); err == nil {
		t.Errorf("%s is there", dirs[0])
	}
	goneBy(t, pid)
}

// written waits for a file and returns its words.
func written(t *testing.T, dir, name string) (words []string) {
	t.Helper()
	kit.Until(t, name+" is written", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, name))
		words = strings.Fields(string(text))
		return err == nil
	})
	return words
}

// goneBy waits for the end of a process. One that ended counts, whatever is to reap it.
func goneBy(t *testing.T, pid string) {
	t.Helper()
	n, _ := strconv.Atoi(pid)
	kit.Until(t, "process "+pid+" has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return unix.Kill(n, 0) == unix.ESRCH || err == nil && strings.Contains(string(stat), ") Z ")
	})
}

// TestBuildsThatLeaveTheirGroup: a build and a preview that are cancelled end what they started in
// another session.
func TestBuildsThatLeaveTheirGroup(t *testing.T) {
	for _, name := range []string{"make", "setsid"} {
		if _, err := exec.LookPath(name); err != nil || runtime.GOOS != "linux" {
			t.Skip(name + " is not installed, or the system shows no descendants")
		}
	}
	s, dir := newServer(t), newRoot(t)
	const other = `@setsid sh -c 'trap "" TERM; echo $$$$ > new.$@; mv new.$@ $@; while :; do sleep 0.05; done' & wait`
	files(t, dir, map[string]string{".exacta/config.json": `{"schema_version":1,"build":{"tool":"make"}}`,
		"Makefile": ".PHONY: all run\nall:\n\t" + other + "\nrun:\n\t" + other + "\n"})
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "Preview", ""))
	p.want(5, "LogEntry1 101:ok Progress2 Progress3 102:ok")
	p.send(ask(3, "Build", ""))
	shown, built := written(t, dir, "run")[0], written(t, dir, "all")[0]
	p.send(ask(4, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000103"`))
	p.until(4)
	p.send(ask(5, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000102"`))
	p.until(5)
	goneBy(t, built)
	goneBy(t, shown)
}
