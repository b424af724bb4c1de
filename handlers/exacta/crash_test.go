package exacta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/fuzz/rounds"
)

// killAt is the variable that makes the test binary a server which kills itself before that system
// call of its disk, the first one being 1.
const killAt = "EXACTA_TEST_KILL_AT"

// serveUntilKilled is the main function then. Requests come on stdin.
func serveUntilKilled(text string) {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	s := New(fixed(Config{}))
	c := &calls{kill: n}
	s.options.Lazy, s.options.Before = true, c.before
	s.ServeStdio(context.Background(), standard{os.Stdin, os.Stdout})
}

// standard is stdin and stdout.
type standard struct {
	io.Reader
	io.Writer
}

// Close implements io.Closer.
func (standard) Close() error { return nil }

// calls counts the system calls of a disk, and can end the program before one.
type calls struct {
	mu   sync.Mutex
	kill int
	list []string
}

var ids = regexp.MustCompile(`[0-9a-f]{8}-[-0-9a-f]{27}`)

func (c *calls) before(op, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, op+" "+ids.ReplaceAllString(name, "ID"))
	if len(c.list) == c.kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
	return nil
}

// name describes a kill.
func (c *calls) name(n int) string {
	if n > len(c.list) {
		return "not killed"
	}
	return fmt.Sprintf("killed before call %d of %d (%s)", n, len(c.list), c.list[n-1])
}

// at returns the number of the first call of that name.
func (c *calls) at(name string) int { return slices.Index(c.list, name) + 1 }

// last returns the number of the last call of that name.
func (c *calls) last(name string) int {
	for i, other := range slices.Backward(c.list) {
		if other == name {
			return i + 1
		}
	}
	return 0
}

// chosen returns the numbers of the calls to stop at: all in the long form, else some of the first
// ones of each kind; in each case the one behind the last.
func (c *calls) chosen() (out []int) {
	seen := make(map[string]bool)
	digits := regexp.MustCompile(`[0-9]+`)
	for i, name := range c.list {
		kind := digits.ReplaceAllString(name, "N")
		if rounds.Long() || !seen[kind] && len(seen)%rounds.Step(12, 12) == 0 {
			out = append(out, i+1)
		}
		seen[kind] = true
	}
	return append(out, len(c.list)+1)
}

// crash runs a server as a program that ends before call n, with these requests.
func crash(t *testing.T, n int, lines []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killAt+"="+strconv.Itoa(n))
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// whole returns all names below a root with their mode and bytes, without .exacta.
func whole(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if e.Name() == ".exacta" {
			return fs.SkipDir
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		text := []byte{}
		if st.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %s %q\n", strings.TrimPrefix(path, root), st.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(b.String())
}

// sorted returns the lines of a tree in the order of whole.
func sorted(tree string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(tree, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// scene is a project on which a conversation works.
func scene(t testing.TB) string {
	t.Helper()
	dir := newRoot(t)
	for name, mode := range map[string]fs.FileMode{"m.txt": 0o640, "d/x.txt": 0o700, "d/y.txt": 0o604} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("old\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nth returns the n-th id of a kind of the project.
func nth(k codec.Kind, n int) string {
	scope := codec.NewScope("t1", "p1")
	for range n - 1 {
		scope.Next(k)
	}
	return scope.Next(k).String()
}

// clauses are the steps of the plan that is executed.
var clauses = []string{`append \"1\" to m.txt`, "create file n/e/w.txt", "delete d/x.txt", "build", `append \"2\" to d/y.txt`, "create file n/f.txt"}

func planOf(clauses []string) string { return strings.Join(clauses, "; ") }

// executes is the conversation that executes a plan.
func executes(dir, input string) []string {
	return []string{
		ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "ExtractIntent", `"user_input":"`+input+`"`),
		ask(3, "GeneratePlan", `"intent_id":"`+nth(codec.Intent, 1)+`"`), ask(4, "ApprovePlan", `"plan_id":"`+nth(codec.Plan, 1)+`"`),
		ask(5, "ExecutePlan", `"plan_id":"`+nth(codec.Plan, 1)+`"`),
	}
}

// fakeBuild makes builds succeed, unless there is a file "broken" in the project.
func fakeBuild(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\ntest ! -e broken\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// counted has the conversation in this process, and returns its calls. It ends in the state, or
// with the answer of the last request.
func counted(t *testing.T, dir, end string, lines []string) *calls {
	t.Helper()
	c := &calls{}
	s := newServer(t)
	s.options.Lazy, s.options.Before = true, c.before
	p := newPeer(t, s, 1)
	p.send(lines...)
	if end == "" {
		p.until(len(lines))
	} else {
		p.reach(end)
	}
	s.Close()
	return c
}

// reach reads until a transition leads to a state.
func (p *peer) reach(state string) {
	p.t.Helper()
	for !strings.Contains(string(p.rest), `"to":"`+state+`"`) {
		p.pump()
	}
	p.rest = nil
}

// reopened opens a project after a crash and returns its state.
func reopened(t *testing.T, dir string) (*peer, string) {
	t.Helper()
	s := newServer(t)
	s.options.Lazy = true
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	line := p.until(1)
	_, state, _ := strings.Cut(line, `"state":"`)
	state, _, ok := strings.Cut(state, `"`)
	if !ok {
		t.Fatalf("not opened: %s", line)
	}
	return p, state
}

// prefixes returns the trees before the first step of a plan, and after each.
func prefixes(t *testing.T, clauses []string) (out []string) {
	t.Helper()
	for n := range len(clauses) + 1 {
		dir := scene(t)
		if n > 0 {
			counted(t, dir, "Completed", executes(dir, planOf(clauses[:n])))
		}
		out = append(out, whole(t, dir))
	}
	return out
}

var nextStep = regexp.MustCompile(`"next":(\d+)`)
