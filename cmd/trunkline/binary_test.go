package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"trunkline/fuzz/kit"
	"trunkline/handlers/toolhost/workerexec"
)

// TestTheBinaryUnderItsOtherNames calls the program as it is shipped by the names that clients of
// the envelope exchange look for.
func TestTheBinaryUnderItsOtherNames(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	program := kit.Program(t, dir)
	version := versionOf(t, program)
	f := func(name string, code int, stdin, want string, args ...string) {
		t.Helper()
		link := filepath.Join(dir, name)
		if err := os.Symlink(program, link); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := exec.Command(link, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(out.String(), want) {
			t.Errorf("%s %q: %v, %s, want %d with %s", name, args, err, out.String(), code, want)
		}
	}
	if runtime.GOOS == "linux" {
		checkWorkers(t, program)
	}
	for _, name := range []string{"trunkline", "go-envelope", "go-coreengine", "x"} {
		f(name, 0, `{"envelope_id":"e","stage_order":["a"]}`, `"current_stage":"a"`, "process")
		f(name, 0, `{"command":"can_continue","envelope":{"envelope_id":"e"}}`, `{"can_continue":true,"terminal_reason":null,`)
		f(name, 0, "", `"server_version":"`+version+`"`, "version")
		f(name, 1, "", "Unknown command: frobnicate\n", "frobnicate")
		f(name, 1, "", "Usage")
	}
	closed := func(command string, code int) {
		t.Helper()
		cmd := exec.Command("sh", "-c", command, program)
		cmd.Stdin = strings.NewReader(`{"envelope_id":"e"}` + "\n")
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != code {
			t.Errorf("%s: %v, want exit code %d", command, err, code)
		}
	}
	if ownEntry { // a stdout that was closed loses output, one that goes nowhere was asked for
		for _, args := range []string{"process", "version", "--help", "config show", "--list builtin", "--serve builtin"} {
			closed(`exec "$0" `+args+` >&-`, 1)
			closed(`exec "$0" `+args+` 1<>/dev/null`, 0)
		}
	}
}

// versionOf returns the version that the linker gave a program; "dev" is that of a program without
// one, which only sources outside of git have.
func versionOf(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "--version").Output()
	f := strings.Fields(string(out))
	_, outside := os.Stat("../../.git")
	if err != nil || len(f) < 2 || f[0] != "trunkline" || f[1] == "dev" && outside == nil {
		t.Fatalf("%v: %q", err, out)
	}
	return f[1]
}

// checkWorkers starts the program as workers and policies are started.
func checkWorkers(t *testing.T, program string) {
	t.Helper()
	f := func(argv []string, code int, output, status string, files ...*os.File) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out, trace bytes.Buffer
		cmd := &exec.Cmd{Path: program, Args: argv, Env: append(os.Environ(), "GODEBUG=inittrace=1"), Stdout: &out, Stderr: &trace, ExtraFiles: append([]*os.File{w}, files...)}
		err = cmd.Run()
		_ = w.Close()
		said, _ := io.ReadAll(r)
		_ = r.Close()
		if got := cmd.ProcessState.ExitCode(); got != code || out.String() != output || !strings.HasPrefix(string(said), status) {
			t.Errorf("%q: %v, %q, status %q, want %d, %q, %q", argv, err, out.String(), said, code, output, status)
		}
		// Only a runtime that begins leaves a trace.
		if direct := trace.Len() == 0; runtime.GOARCH == "amd64" && direct != (len(argv) > 3 && argv[3] != "") {
			t.Errorf("%q: without the runtime: %v", argv, direct)
		}
	}
	limits := workerexec.Limits{CPU: 7, OpenFiles: 33, FileSize: 1 << 20, AddressSpace: 1 << 30, Data: 1 << 29}
	const script = "echo $(ulimit -t; ulimit -n; ulimit -f; ulimit -v; ulimit -d; grep NoNewPrivs /proc/self/status) $0 $1"
	f(workerexec.Argv(limits, "/bin/sh", []string{"sh", "-c", script, "a", "b c"}), 0, "7 33 2048 1048576 524288 NoNewPrivs: 1 a b c\n", "")
	f(workerexec.Argv(limits, "/no/such/file", []string{"x"}), 127, "", string(rune(syscall.ENOENT)))
	f(workerexec.Argv(limits, "/", []string{"x"}), 127, "", string(rune(syscall.EACCES)))
	f(workerexec.Argv(workerexec.Limits{}, "", []string{"/no/such.wasm", "", ""}), 1, "", "absent open /no/such.wasm: ")
	f([]string{"trunkline", workerexec.Verb}, 1, "", "")
	file, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	f(workerexec.Argv(limits, workerexec.ByDescriptor, []string{"sh", "-c", "ls /proc/self/fd/4 2>/dev/null || echo none"}), 127, "", "")
	f(workerexec.Argv(limits, workerexec.ByDescriptor, []string{"sh", "-c", "test -e /proc/self/fd/3 -o -e /proc/self/fd/4 || echo none"}), 0, "none\n", "", file)
}

// TestAReaderThatWentAwayIsAFailure: the exit code shows it, where other programs die of SIGPIPE.
func TestAReaderThatWentAwayIsAFailure(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.Command(os.Args[0], "version")
	cmd.Args[0] = "trunkline" // see TestMain
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &talk
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(talk.String(), "broken pipe") {
		t.Errorf("%v, stderr %s", err, talk.String())
	}
}

// TestTwoQuickSignalsAreOneOrder: a drain goes on when the order to stop arrives twice, as
// timeout(1) sends it.
func TestTwoQuickSignalsAreOneOrder(t *testing.T) {
	cmd := exec.Command(os.Args[0], "serve", "--dev", "--listen=127.0.0.1:0", "--http-listen=", "--threads-listen=",
		"--set=threads.lines_addr=", "--admin-listen=", "--log-format=text")
	cmd.Args[0] = "trunkline" // see TestMain
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(talk); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "serving") {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // another one: the same would be delivered once
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "stopped") || strings.Contains(said.String(), "second signal") {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// TestAFullStdoutIsAFailure: whatever is written there, its loss shows in the exit code.
func TestAFullStdoutIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range []string{
		"--help", "help", "help serve", "serve --help", "version", "--version", "config show", "config show --json", "config check",
		"completion bash", "completion zsh", "completion fish", "call --list", "process", "create", "can-continue", "result", "validate",
		"--list builtin", "--run builtin AID.ASK_SUP.v1", "tool_exec AID.ASK_SUP.v1", "--serve builtin",
	} {
		var talk strings.Builder
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Args[0], cmd.Dir = "trunkline", t.TempDir() // see TestMain
		cmd.Stdin, cmd.Stdout = strings.NewReader(`{"envelope_id":"e"}`+"\n"), full
		cmd.Stderr = &talk
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(talk.String(), "no space left on device") {
			t.Errorf("%s: %v, stderr %q, want exit code 1 and the reason", args, err, talk.String())
		}
	}
}
