package load

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunOnce(t *testing.T) {
	wall, cpu, err := RunOnce(exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.02"))
	if err != nil || wall < 20*time.Millisecond || cpu <= 0 {
		t.Errorf("%v, %v of CPU, %v", wall, cpu, err)
	}
	if _, _, err := RunOnce(exec.Command("/bin/sh", "-c", "exit 3")); err == nil || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("a program that failed: %v", err)
	}
}

// TestChanged: the revision is that of the sources, whatever runs have written.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=n", "-c", "user.email=e"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	f := func(want string) {
		t.Helper()
		if got := changed(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("-dirty") // no repository
	for _, name := range []string{"a.go", "bench/data/peers.json", "docs/charts/c.svg", "BENCHMARKS.md"} {
		write(name, "one")
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "m")
	f("")
	for _, name := range []string{"bench/data/peers.json", "docs/charts/c.svg", "BENCHMARKS.md", "left.txt"} {
		write(name, "two")
	}
	f("")
	if err := os.Chdir("docs"); err != nil {
		t.Fatal(err)
	}
	f("")
	write("../a.go", "two")
	f("-dirty")
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.CPUs < 1 || m.OS != "linux" || m.Kernel == "unknown" || m.Load == "unknown" || m.Disk != "" || !strings.HasPrefix(m.Go, "go") && !strings.HasPrefix(m.Go, "devel") {
		t.Errorf("%+v", m)
	}
}
