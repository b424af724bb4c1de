package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/clientcontext"
)

// TestCompletions asks as a script does.
func TestCompletions(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	store, err := clientcontext.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put("prod", clientcontext.Context{Addr: "a"}, false); err != nil {
		t.Fatal(err)
	}
	f := func(line string, directive string, want ...string) {
		t.Helper()
		got := runMain(append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		lines := strings.Fields(got.stdout)
		if got.code != 0 || len(lines) == 0 || lines[len(lines)-1] != directive {
			t.Fatalf("%s: %+v", line, got)
		}
		for _, w := range want {
			if !slices.Contains(lines, w) {
				t.Errorf("%s: no %s in %q", line, w, lines)
			}
		}
		if len(want) == 0 && len(lines) != 1 {
			t.Errorf("%s: %q, want none", line, lines)
		}
	}
	const noFile, noFileNoSpace = ":4", ":6"
	f("call ", noFile, "kernel.CreateProcess", "engine.CreateEnvelope", "commbus.Publish")
	f("call kernel.GetP", noFile, "kernel.GetProcess", "kernel.GetProcessCounts")
	f("call kernel.GetProcess ", noFile)
	f("sub process.", noFile, "process.created", "process.terminated")
	f("sub ", noFile, "resource.exhausted", "toolhost.tool.finished")
	f("pub ", noFile)
	f("serve --set kernel.max_conn", noFileNoSpace, "kernel.max_connections=")
	f("call --set store.mo", noFileNoSpace, "store.mode=")
	f("doctor --set store.mode=", noFile, "store.mode=always", "store.mode=interval", "store.mode=memory")
	f("serve --set kernel.huge_pages=", noFile, "kernel.huge_pages=true", "kernel.huge_pages=false")
	f("serve --set kernel.loops=", noFile)
	f("serve --set nothing", noFileNoSpace)
	f("serve --log-level ", noFile, "debug", "warn")
	f("serve --log-format=", noFile, "json")
	f("token sign --role ", noFile, "coordinator", "operator")
	f("bench --protocol ", noFile, "kernel", "exacta")
	f("connections --protocol ", noFile, "ipc", "http", "exacta")
	f("connections --sort ", noFile, "id", "in_flight", "unsent")
	f("slowlog --protocol ", noFile, "ipc", "threads")
	f("top --sort ", noFile, "rate", "p99")
	f("slowlog --sort ", noFile, "time", "duration")
	f("context use ", noFile, "prod")
	f("context show ", noFile, "prod")
	f("context remove ", noFile, "prod")
	f("help ", noFile, "topics", "pipelines", "serve")
	f("help store ", noFile, "verify")
	f("completion ", noFile, "bash", "powershell")
	f("do", noFile, "doctor")
	f("config show --config ", ":8", "yaml")
}

// TestEventTypesAreDocumented: a type that the server does not publish would complete to silence.
func TestEventTypesAreDocumented(t *testing.T) {
	var pages string
	for _, name := range []string{"kernel-ipc", "toolhost"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	for _, name := range eventTypes() {
		if last := name[strings.LastIndex(name, ".")+1:]; !strings.Contains(pages, "`"+name+"`") && !strings.Contains(pages, "`."+last+"`") {
			t.Errorf("no page has %s", name)
		}
	}
}

// shell returns a shell, or skips the test with the name of its package.
func shell(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: its package is %s", name, name)
	}
	return path
}

// completionScript is the script of a shell in a file, and a directory with the program.
func completionScript(t *testing.T, shell string) (script, bin string) {
	t.Helper()
	got := runMain("completion", shell)
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	script, bin = filepath.Join(t.TempDir(), "script"), t.TempDir()
	if err := os.WriteFile(script, []byte(got.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is the program when a test script calls it by that name.
	if err := os.Symlink(program, filepath.Join(bin, "trunkline")); err != nil {
		t.Fatal(err)
	}
	return script, bin
}

// TestCompletionInBash has bash complete without the bash-completion package. Bash splits words at
// = and :, as it does here.
func TestCompletionInBash(t *testing.T) {
	bash := shell(t, "bash")
	script, bin := completionScript(t, "bash")
	f := func(line string, point, word int, want ...string) {
		t.Helper()
		const ask = `
			source "$1"
			COMP_LINE=$2 COMP_POINT=$3 COLUMNS=80 COMP_TYPE=9 COMP_KEY=9
			read -r -a parts <<<"$2"
			COMP_WORDS=() COMP_CWORD=0
			for part in "${parts[@]}"; do
				while [[ $part == *[=:]* ]]; do
					before=${part%%[=:]*}
					[[ -n $before ]] && COMP_WORDS+=("$before")
					COMP_WORDS+=("${part:${#before}:1}")
					part=${part:${#before}+1}
				done
				[[ -n $part ]] && COMP_WORDS+=("$part")
			done
			[[ $2 == *" " ]] && COMP_WORDS+=("")
			COMP_CWORD=$(($4 < 0 ? ${#COMP_WORDS[@]} - 1 : $4))
			complete -p trunkline >/dev/null || exit 3
			__start_trunkline
			printf '%s\n' "${COMPREPLY[@]}"`
		cmd := exec.Command(bash, "--norc", "--noprofile", "-c", ask, "bash", script, line, strconv.Itoa(point), strconv.Itoa(word))
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.Output() // on stderr compopt complains of not being called by a key
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		for i := range lines {
			lines[i], _, _ = strings.Cut(lines[i], "  (") // the description
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		slices.Sort(lines)
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", line, lines, want)
		}
	}
	end := func(line string, want ...string) {
		t.Helper()
		f(line, len(line), -1, want...)
	}
	end("trunkline doc", "doctor")
	end("trunkline call kernel.GetProcess", "kernel.GetProcess", "kernel.GetProcessCounts")
	end("trunkline call kernel.GetProcessC", "kernel.GetProcessCounts")
	end("trunkline serve --set store.mod", "store.mode=")
	end("trunkline serve --set store.mode=", "always", "interval", "memory")
	end("trunkline serve --set store.mode=al", "always")
	end("trunkline serve --set=store.mode=al", "always")
	end("trunkline serve --log-level=de", "debug")
	end("trunkline serve --listen 127.0.0.1:0 --log-level de", "debug")
	end("trunkline store ver", "verify")
	f("trunkline doc --json", len("trunkline doc"), 1, "doctor")
}

// TestCompletionInZsh: the script is one that zsh can load, without compinit before it.
func TestCompletionInZsh(t *testing.T) {
	zsh := shell(t, "zsh")
	script, _ := completionScript(t, "zsh")
	out, err := exec.Command(zsh, "-f", "-c", "source "+script+" && (( $+_comps[trunkline] )) && echo loaded").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "loaded") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCompletionInFish has fish complete.
func TestCompletionInFish(t *testing.T) {
	fish := shell(t, "fish")
	script, bin := completionScript(t, "fish")
	cmd := exec.Command(fish, "--no-config", "-c", "source "+script+"; complete -C 'trunkline call kernel.GetProcessC'")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "kernel.GetProcessCounts") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCompletionInPowerShell has PowerShell complete.
func TestCompletionInPowerShell(t *testing.T) {
	pwsh := shell(t, "pwsh")
	script, bin := completionScript(t, "powershell")
	cmd := exec.Command(pwsh, "-NoProfile", "-Command", "Get-Content -Raw "+script+" | Invoke-Expression; (TabExpansion2 'trunkline call kernel.GetProcessC' 37).CompletionMatches.CompletionText")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kernel.GetProcessCounts") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestScriptOfZsh: where zsh is not installed, its first lines are still what it needs.
func TestScriptOfZsh(t *testing.T) {
	got := runMain("completion", "zsh")
	if want := "#compdef trunkline\n" + zshInit + "compdef _trunkline trunkline\n"; !strings.HasPrefix(got.stdout, want) {
		t.Errorf("%.200s, want %s", got.stdout, want)
	}
}
