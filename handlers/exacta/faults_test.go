package exacta

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/codec"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/exacta/workspace"
)

// faulty is a disk whose system calls from number from to number to fail.
type faulty struct {
	calls
	from, to int
	err      error
}

func (f *faulty) before(op, name string) error {
	_ = f.calls.before(op, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.list); n >= f.from && n <= f.to {
		return f.err
	}
	return nil
}

// never is beyond every call.
const never = 1 << 30

// conversation sends requests until one is refused and reads until nothing runs. It returns what
// was sent.
func conversation(t *testing.T, f *faulty, lines []string) string {
	t.Helper()
	s := newServer(t)
	s.options.Lazy, s.options.Before = true, f.before
	p := newPeer(t, s, 1)
	heard := ""
	for i, line := range lines {
		p.send(line)
		answer := p.until(i + 1)
		heard += answer
		if strings.Contains(answer, `"ok":false`) {
			break
		}
	}
	if strings.Contains(heard, `"to":"Executing"`) {
		for !strings.Contains(heard+string(p.rest), `"from":"Executing"`) || s.project(parsed(pid)).journal.Status().State.Runs() {
			p.pump()
		}
	}
	s.Close()
	return heard + string(p.rest)
}

// TestEachFaultOfAnExecution lets each system call of an execution fail once: the tree is as before
// or as after it, the state fits, and the code names the fault (exacta §4.8).
func TestEachFaultOfAnExecution(t *testing.T) {
	fakeBuild(t)
	eachFault(t, func(dir string) []string { return executes(dir, planOf(clauses)) }, `"to":"Completed"`)
}

// TestEachFaultOfASet does the same to a set of diffs (exacta §4.12).
func TestEachFaultOfASet(t *testing.T) {
	eachFault(t, func(dir string) []string {
		return []string{ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "ApplyDiffSet", threeDiffs)}
	}, `"applied":true`)
}

func eachFault(t *testing.T, lines func(dir string) []string, done string) {
	dir := scene(t)
	before := whole(t, dir)
	none := &faulty{from: never}
	conversation(t, none, lines(dir))
	after := whole(t, dir)
	failed := 0
	for i, errno := range []unix.Errno{unix.ENOSPC, unix.EIO} {
		code := [...]string{"FS-004", "FS-002"}[i]
		for n := 1 + 2*i; n <= len(none.list); n += rounds.Pick(37, rounds.Step(37, 11)) {
			dir := scene(t)
			f := &faulty{from: n, to: n, err: errno}
			heard := conversation(t, f, lines(dir))
			name := fmt.Sprintf("%v of call %d (%s)", errno, n, f.list[n-1])
			want := before
			if strings.Contains(heard, done) {
				want = after
			} else if failed++; !strings.Contains(heard, `"code":"`+code+`"`) && !strings.HasPrefix(f.list[n-1], "open ") {
				t.Errorf("%s: no %s\n%s", name, code, brief(heard)) // what cannot be read may also have changed
			}
			if got := whole(t, dir); got != want {
				t.Errorf("%s: got\n%swant\n%s%s", name, got, want, brief(heard))
			}
			if started, completed := strings.Count(heard, "StepStarted"), strings.Count(heard, "StepCompleted"); started != completed {
				t.Errorf("%s: %d steps started, %d completed", name, started, completed)
			}
			settled(t, dir, name, before, after, heard)
		}
	}
	if failed == 0 {
		t.Error("nothing failed")
	}
}

// settled opens a project after faults, with a disk that works: an execution that is paused is
// taken back, and what a rollback could not restore is in the rollback point.
func settled(t *testing.T, dir, name, before, after, heard string) {
	t.Helper()
	p, state := reopened(t, dir)
	switch state {
	case "Paused":
		p.send(ask(2, "Cancel", `"execution_id":"`+nth(codec.Execution, 1)+`"`))
		p.reach("Idle")
	case "Failed":
		p.sess.(*session).srv.Close()
		for _, id := range points(t, dir) {
			takeBack(t, dir, id)
		}
	}
	got := whole(t, dir)
	if got != before && (state != "Completed" && state != "Idle" || got != after) {
		t.Errorf("%s: opened %s\n%swant\n%s%s", name, state, got, before, brief(heard))
	}
}

// brief returns lines that a test can show.
func brief(heard string) string {
	var out []string
	for line := range strings.Lines(heard) {
		text := short(line)
		if _, e, ok := strings.Cut(line, `"error":{"code":`); ok {
			text += e[:min(len(e), 160)]
		} else if _, e, ok := strings.Cut(line, `"to":`); ok {
			text += e
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "\n")
}

// points returns the ids of all rollback points.
func points(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".exacta", "rollback", "*", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		out = append(out, filepath.Base(filepath.Dir(path)))
	}
	return out
}

// takeBack restores a rollback point as the offline command does.
func takeBack(t *testing.T, dir, id string) {
	t.Helper()
	ws, f := workspace.Open(dir, workspace.Options{Lazy: true, Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	pt, f := ws.LoadPoint(id)
	if f == nil {
		f = pt.Undo(0)
	}
	if f != nil {
		t.Fatal(f)
	}
}

// TestDiskStaysFull lets all calls from each one on fail, those of the rollback too: what cannot be
// restored is reported as FS-006, the project is Failed, and the original bytes are in the point.
func TestDiskStaysFull(t *testing.T) {
	fakeBuild(t)
	lines := func(dir string) []string { return executes(dir, planOf(clauses)) }
	dir := scene(t)
	before := whole(t, dir)
	none := &faulty{from: never}
	conversation(t, none, lines(dir))
	after := whole(t, dir)
	conflicts := 0
	for n := 1; n <= len(none.list); n += rounds.Pick(29, rounds.Step(29, 9)) {
		dir := scene(t)
		f := &faulty{from: n, to: never, err: unix.ENOSPC}
		heard := conversation(t, f, lines(dir))
		name := fmt.Sprintf("full from call %d on (%s)", n, f.list[n-1])
		got := whole(t, dir)
		switch {
		case strings.Contains(heard, `"to":"Completed"`):
			if got != after {
				t.Errorf("%s: completed\n%s", name, got)
			}
		case strings.Contains(heard, `"code":"FS-006"`):
			conflicts++
			if !strings.Contains(heard, `"to":"Failed","trigger":"StepFailed"`) {
				t.Errorf("%s: not failed\n%s", name, brief(heard))
			}
		case got != before || !strings.Contains(heard, `"code":"FS-004"`):
			t.Errorf("%s:\n%swant\n%s%s", name, got, before, brief(heard))
		}
		settled(t, dir, name, before, after, heard)
	}
	if conflicts == 0 {
		t.Error("no rollback failed")
	}
}

// full is a disk that has no space from the state.json on that is the n-th after begun was closed.
type full struct {
	begun chan struct{}
	mu    sync.Mutex
	left  int
	over  bool // there is space again
}

func (f *full) before(op, name string) error {
	select {
	case <-f.begun:
	default:
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if op == "create" && name == "state.json.tmp" {
		f.left--
	}
	if (op == "create" || op == "write") && f.left < 0 && !f.over {
		return unix.ENOSPC
	}
	return nil
}

// slowBuild makes builds wait until there is a file "go on" in the project, and then fail.
func slowBuild(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\ntouch building\nwhile test ! -e 'go on'; do sleep 0.02; done\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestFailedOnAFullDisk: a state that could not be saved when it was reported is saved at the next
// request, or at the end of the server, so that nothing runs again at the next open (exacta §5.5).
func TestFailedOnAFullDisk(t *testing.T) {
	slowBuild(t)
	for _, asks := range []bool{false, true} {
		dir := scene(t)
		s, f := newServer(t), &full{begun: make(chan struct{})}
		s.options.Lazy, s.options.Before = true, f.before
		p := newPeer(t, s, 1)
		p.send(executes(dir, "build; append \\\"x\\\" to m.txt")...)
		written(t, dir, "building")
		close(f.begun)
		files(t, dir, map[string]string{"go on": ""})
		p.reach("Failed")
		f.mu.Lock()
		f.over = true
		f.mu.Unlock()
		if asks {
			p.send(ask(6, "Resume", `"execution_id":"`+nth(codec.Execution, 1)+`"`))
			p.until(6)
			if text, err := os.ReadFile(filepath.Join(dir, ".exacta/state.json")); err != nil || !strings.Contains(string(text), `"state":"Failed"`) {
				t.Errorf("%s %v", text, err)
			}
		}
		s.Close()
		if _, state := reopened(t, dir); state != "Failed" {
			t.Errorf("opened %s", state)
		}
	}
}

// TestCancelOnAFullDisk: a Cancel whose state cannot be saved cancels all the same, and is answered
// so.
func TestCancelOnAFullDisk(t *testing.T) {
	slowBuild(t)
	dir := scene(t)
	before := whole(t, dir)
	s, f := newServer(t), &full{begun: make(chan struct{})}
	s.options.Lazy, s.options.Before = true, f.before
	p := newPeer(t, s, 1)
	p.send(executes(dir, "create file n.txt; build")...)
	written(t, dir, "building")
	close(f.begun)
	p.send(ask(6, "Cancel", `"execution_id":"`+nth(codec.Execution, 1)+`"`))
	if heard := p.until(6); !strings.Contains(heard, `"status":"cancelling"`) || !strings.Contains(heard, `"code":"FS-004"`) {
		t.Error(brief(heard))
	}
	p.reach("Idle")
	if err := os.Remove(filepath.Join(dir, "building")); err != nil || whole(t, dir) != before {
		t.Errorf("%v\n%s", err, whole(t, dir))
	}
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	s.Close()
	if _, state := reopened(t, dir); state != "Idle" {
		t.Errorf("opened %s", state)
	}
}
