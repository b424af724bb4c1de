package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
	"trunkline/fuzz/kit"
)

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	switch got, err := os.ReadFile(name); {
	case want == "" && !os.IsNotExist(err):
		t.Errorf("%s is there: %q %v", name, got, err)
	case want != "" && string(got) != want:
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// TestAResultReplacesTheOneBefore only once it is there.
func TestAResultReplacesTheOneBefore(t *testing.T) {
	f := func(before string, write, want string) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "r")
		if before != "" {
			if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := benchResult{name: name, format: func(w io.Writer, _ *loadgen.Result) error {
			_, err := io.WriteString(w, write)
			return err
		}}
		if err := r.open(); err != nil {
			t.Fatal(err)
		}
		if write == "" {
			r.giveUp()
		} else if err := r.write(nil); err != nil {
			t.Fatal(err)
		}
		wantFile(t, name, want)
	}
	f("", "", "")
	f("before, and long", "", "before, and long")
	f("", "new", "new")
	f("before, and long", "new", "new")
	if err := (&benchResult{name: filepath.Join(t.TempDir(), "no", "r")}).open(); err == nil {
		t.Error("a file in no directory")
	}
	if err := (&benchResult{name: t.TempDir()}).open(); err == nil {
		t.Error("a directory")
	}
}

// TestBenchKeepsTheResultBefore: when the server is not there, nothing is written, created or lost.
func TestBenchKeepsTheResultBefore(t *testing.T) {
	addr, stop := kernelServer(t, nil)
	stop()
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old.json"), filepath.Join(dir, "fresh.svg")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, talk := bench(addr, "--json", "--json-file", old, "--svg", fresh)
	if code != cli.CodeUnavailable || !strings.Contains(talk, `"code":5`) {
		t.Errorf("%d: %s", code, talk)
	}
	wantFile(t, old, "old")
	wantFile(t, fresh, "")
}

func TestBenchOutputsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	f := func(want string, args ...string) {
		t.Helper()
		code, out, talk := bench(append([]string{"127.0.0.1:1"}, args...)...)
		if code != cli.CodeUsage || out != "" || !strings.Contains(talk, want) {
			t.Errorf("%v: %d, %s%s", args, code, out, talk)
		}
	}
	f("cannot write two results to -", "--json", "--svg", "-")
	f("cannot write two results to -", "--json-file", "-", "--svg", "-")
	f(`"hint":"--json takes no file, --json-file does"`, "--json", "r.json")
	f("cannot write two results to "+dir+"/x", "--hdr", dir+"/x", "--svg", dir+"/x")
	f("cannot write the result: open "+dir+": is a directory", "--svg", dir)
	f("no such file", "--hdr", dir+"/no/x")
	wantFile(t, dir+"/x", "")
}

// TestBenchWithoutAReader: a reader that goes away ends the run, with all that belongs to its end.
func TestBenchWithoutAReader(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	file := filepath.Join(t.TempDir(), "r.json")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var out bytes.Buffer
	cmd := benchCommand(addr, "--duration", "1h", "--warmup", "0s", "--interval", "50ms", "--json-file", file)
	cmd.Stdout, cmd.Stderr = &out, w
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	r.Close()
	_ = cmd.Wait() // the exit code shows it
	if code := cmd.ProcessState.ExitCode(); code != cli.CodeFailed || !strings.Contains(out.String(), "The run was ended before its time") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Contains(data, []byte(`"stopped": true`)) {
		t.Errorf("no result: %v", err)
	}
}
