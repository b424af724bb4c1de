package exacta

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"trunkline/engine/projects/codec"
)

// outcome is what a plan leads to: the trees before its first step and after each, the state at its
// end and the tree then.
type outcome struct {
	trees []string
	state string
	tree  string
}

// TestCrashesOfAnExecution kills the server before system calls of the disk, of each kind at least
// once: the interrupted step is taken back, steps that were done stay, and the execution goes on to
// its end or is taken back as a whole (exacta §5.6).
func TestCrashesOfAnExecution(t *testing.T) {
	fakeBuild(t)
	end := &outcome{trees: prefixes(t, clauses), state: "Completed"}
	end.tree = end.trees[len(clauses)]
	dir := scene(t)
	list := counted(t, dir, "Completed", executes(dir, planOf(clauses)))
	seen := make(map[string]int)
	for i, n := range list.chosen() {
		dir := scene(t)
		crash(t, n, executes(dir, planOf(clauses)))
		seen[goesOn(t, dir, end, i%2 == 0, list.name(n))]++
	}
	if len(seen) != 3 || seen["Idle"] == 0 || seen["Paused"] == 0 || seen["Completed"] == 0 {
		t.Errorf("states at the next open: %v", seen)
	}
}

// failing is a plan whose last step fails, in a scene with a broken build.
func failing(t *testing.T) (start func() string, text string, end *outcome) {
	list := append(append([]string(nil), clauses[:3]...), "build")
	end = &outcome{state: "Failed"}
	for _, tree := range prefixes(t, list[:3]) {
		end.trees = append(end.trees, sorted(tree+"/broken -rw-r--r-- \"\"\n"))
	}
	return func() string {
		dir := scene(t)
		if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}, planOf(list), end
}

// TestCrashesOfAFailure kills the server while a plan runs whose last step fails, and while its
// steps are taken back: once that has begun, the next open ends it (exacta §4.8).
func TestCrashesOfAFailure(t *testing.T) {
	fakeBuild(t)
	start, text, end := failing(t)
	dir := start()
	end.tree = whole(t, dir)
	list := counted(t, dir, "Failed", executes(dir, text))
	seen := make(map[string]int)
	for i, n := range list.chosen() {
		dir := start()
		crash(t, n, executes(dir, text))
		seen[goesOn(t, dir, end, i%2 == 0, list.name(n))]++
	}
	if len(seen) != 3 || seen["Idle"] == 0 || seen["Paused"] == 0 || seen["Failed"] == 0 {
		t.Errorf("states at the next open: %v", seen)
	}
	n := list.last("rename m.txt") // of the rollback
	dir = start()
	crash(t, n, executes(dir, text))
	if state := goesOn(t, dir, end, false, list.name(n)); state != "Failed" {
		t.Errorf("%s: %s", list.name(n), state)
	}
}

// TestCrashesOfARecovery kills a server in a step, and the next one while it takes the step back,
// goes on or takes all steps back.
func TestCrashesOfARecovery(t *testing.T) {
	fakeBuild(t)
	end := &outcome{trees: prefixes(t, clauses), state: "Completed"}
	end.tree = end.trees[len(clauses)]
	dir := scene(t)
	list := counted(t, dir, "Completed", executes(dir, planOf(clauses)))
	inStep := list.at("rename y.txt") + 1 // the fifth step is done, and not noted
	half := func() string {
		dir := scene(t)
		crash(t, inStep, executes(dir, planOf(clauses)))
		return dir
	}
	for command, last := range map[string]string{"Resume": "Completed", "Cancel": "Idle"} {
		then := func(dir string) []string {
			return []string{ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, command, `"execution_id":"`+nth(codec.Execution, 1)+`"`)}
		}
		dir := half()
		list := counted(t, dir, last, then(dir))
		seen := make(map[string]int)
		for i, n := range list.chosen() {
			dir := half()
			crash(t, n, then(dir))
			seen[goesOn(t, dir, end, i%2 == 0, command+" "+list.name(n))]++
		}
		if len(seen) != 2 || seen["Paused"] == 0 || seen[last] == 0 {
			t.Errorf("%s: states at the next open: %v", command, seen)
		}
	}
}

// goesOn opens a project whose execution a crash interrupted, checks its tree, and has the
// execution go on or be cancelled. It returns the state in which it was opened.
func goesOn(t *testing.T, dir string, end *outcome, resume bool, name string) string {
	t.Helper()
	p, state := reopened(t, dir)
	want, then := end.trees[0], ""
	switch state {
	case "Idle":
	case end.state:
		want = end.tree
	case "Paused":
		text, err := os.ReadFile(filepath.Join(dir, ".exacta", "state.json"))
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(string(nextStep.FindSubmatch(text)[1]))
		if got := whole(t, dir); got != end.trees[n-1] {
			t.Errorf("%s: paused before step %d\n%swant\n%s", name, n, got, end.trees[n-1])
		}
		command := "Cancel"
		if then = "Idle"; resume {
			command, then, want = "Resume", end.state, end.tree
		}
		p.send(ask(2, command, `"execution_id":"`+nth(codec.Execution, 1)+`"`))
		p.reach(then)
	default:
		t.Errorf("%s: %s", name, state)
	}
	if got := whole(t, dir); got != want {
		t.Errorf("%s: %s, then %s\n%swant\n%s", name, state, then, got, want)
	}
	return state
}

const threeDiffs = `"diffs":["--- a/m.txt\n+++ b/m.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n",` +
	`"--- /dev/null\n+++ b/n/e/w.txt\n@@ -0,0 +1,1 @@\n+w\n","--- a/d/x.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-old\n"]`

// TestCrashesOfASet kills the server while it applies a set of diffs: until its point is sealed the
// next open takes all of it back, also if that is killed again (exacta §4.12, D32).
func TestCrashesOfASet(t *testing.T) {
	applies := func(dir string) []string {
		return []string{ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "ApplyDiffSet", threeDiffs)}
	}
	dir := scene(t)
	before := whole(t, dir)
	list := counted(t, dir, "", applies(dir))
	after := whole(t, dir)
	sealed := list.last("rename manifest.json")
	for _, n := range list.chosen() {
		dir := scene(t)
		crash(t, n, applies(dir))
		want := before
		if n > sealed {
			want = after
		}
		if _, state := reopened(t, dir); whole(t, dir) != want || state != "Idle" {
			t.Errorf("%s: %s\n%swant\n%s", list.name(n), state, whole(t, dir), want)
		}
	}
	half := func() string {
		dir := scene(t)
		crash(t, sealed, applies(dir))
		return dir
	}
	dir = half()
	opens := func(dir string) []string { return []string{ask(1, "OpenProject", `"path":"`+dir+`"`)} }
	list = counted(t, dir, "", opens(dir))
	for _, n := range list.chosen() {
		dir := half()
		crash(t, n, opens(dir))
		if _, state := reopened(t, dir); whole(t, dir) != before || state != "Idle" {
			t.Errorf("again %s: %s\n%s", list.name(n), state, whole(t, dir))
		}
	}
}
