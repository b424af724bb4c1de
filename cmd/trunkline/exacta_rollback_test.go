package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rollback runs exacta rollback, which needs no server.
func (s *projectServer) rollback(args ...string) ran {
	s.t.Helper()
	return runProjects(s.t, "", append([]string{"rollback", "--project", s.dir}, args...)...)
}

// executed runs a plan to its end and returns the id of its execution.
func (s *projectServer) executed(text string) string {
	s.t.Helper()
	got := s.run("run", "--approve", s.planned(text), "--json")
	var out struct {
		ID string `json:"execution_id"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.code != 0 {
		s.t.Fatalf("%+v", got)
	}
	return out.ID
}

func (s *projectServer) missing(name string) {
	s.t.Helper()
	if _, err := os.Lstat(filepath.Join(s.dir, name)); !os.IsNotExist(err) {
		s.t.Errorf("%s: %v", name, err)
	}
}

func TestRollback(t *testing.T) {
	s := startProjects(t, demo())
	s.write("old.txt", "1\n")
	if err := os.Chmod(filepath.Join(s.dir, "old.txt"), 0o640); err != nil {
		t.Fatal(err)
	}
	point := s.executed(`Append "Bye." to README.md; create file docs/new.md; delete old.txt`)
	wantRun(t, s.rollback(point), 50, "", "trunkline: FS-005: In use by another process: .exacta/lock")
	wantRun(t, s.rollback("--list"), 0, point[:8]+"  plan  ", "") // while the server has it
	wantRun(t, s.run("close"), 0, "closed", "")
	list := s.rollback("--list")
	wantRun(t, list, 0, point[:8]+"  plan  ", "")
	wantRun(t, s.rollback(point[:3]), 2, "", "1 begin with it, of at least 4 characters")
	wantRun(t, s.rollback("00000000"), 2, "", "0 begin with it")
	wantRun(t, s.rollback("--list", "--json"), 0, `"old.txt"`, "")
	wantRun(t, s.rollback(strings.ToUpper(point[:8])), 0, "restored README.md\nremoved  docs/new.md\nrestored old.txt\n", "")
	if s.read("README.md") != "# Demo\n\nHello.\n" || s.read("old.txt") != "1\n" {
		t.Error("files are not as before")
	}
	if info, err := os.Stat(filepath.Join(s.dir, "old.txt")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	s.missing("docs")
	wantRun(t, s.rollback(point), 50, "", "trunkline: FS-001: ")
	wantRun(t, s.run("status"), 0, "state      Completed\n", "")
	s.executed(`Append "Bye." to README.md`)
}

func TestRollbackOfASetOfDiffs(t *testing.T) {
	s := startProjects(t, demo())
	s.write("fix.diff", "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # Demo\n \n-Hello.\n+Hi.\n")
	got := s.run("apply", s.dir+"/fix.diff")
	_, point, _ := strings.Cut(strings.TrimSpace(got.stdout), "rollback point ")
	s.run("close")
	got = s.rollback(point, "--json")
	wantRun(t, got, 0, `"restored": [
    "README.md"
  ],
  "conflicts": []`, "")
	if s.read("README.md") != "# Demo\n\nHello.\n" {
		t.Error("README.md is not as before")
	}
}

// TestRollbackKeepsWhatWasChanged: a file that was changed since stays, and the point too.
func TestRollbackKeepsWhatWasChanged(t *testing.T) {
	s := startProjects(t, demo())
	point := s.executed(`Append "Bye." to README.md; create file docs/new.md`)
	s.run("close")
	s.write("README.md", "mine\n")
	wantRun(t, s.rollback(point), 50, "removed  docs/new.md\nkept     README.md\n", "trunkline: FS-006: Rollback could not restore 1 file(s). (conflict: README.md)")
	if s.read("README.md") != "mine\n" {
		t.Error("the user's file was changed")
	}
	s.missing("docs")
	wantRun(t, s.rollback("--list"), 0, "1      1\n", "")
	s.write("README.md", "# Demo\n\nHello.\nBye.\n")
	wantRun(t, s.rollback(point), 0, "restored README.md\n", "")
	wantRun(t, s.rollback("--list", "--json"), 0, "[]\n", "")
}

// TestRollbackOfWhatIsNotAtItsEnd: the next session of a paused execution compares the files with
// what it did to them.
func TestRollbackOfWhatIsNotAtItsEnd(t *testing.T) {
	needMake(t)
	s := startProjects(t, demo())
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	s.write("Makefile", "all:\n\t@touch started; n=0; while test -e slow && test $$n -lt 600; do sleep 0.1; n=$$((n+1)); done\n")
	s.write("slow", "")
	plan := s.planned(`Append "1" to README.md; build; create file z.txt`)
	ended := make(chan ran, 1)
	go func() { ended <- s.run("run", "--approve", plan) }()
	s.await("started")
	s.srv.Stop()
	if err := os.Remove(filepath.Join(s.dir, "slow")); err != nil {
		t.Fatal(err)
	}
	s.srv.Close()
	wantRun(t, <-ended, 60, "Executing -> Paused (Pause)", "trunkline: the execution is paused\nhint: 'trunkline exacta resume' goes on")
	var points []pointOutput
	if err := json.Unmarshal([]byte(s.rollback("--list", "--json").stdout), &points); err != nil || len(points) != 1 {
		t.Fatalf("%v: %v", err, points)
	}
	refused := func(code int, stderr string) {
		t.Helper()
		wantRun(t, s.rollback(points[0].ID), code, "", stderr)
		if got := s.read("README.md"); got != "# Demo\n\nHello.\n1\n" {
			t.Errorf("README.md: %q", got)
		}
	}
	refused(60, "trunkline: ST-001: Invalid state transition: Paused → Rollback (an execution is not at its end)\nhint: a server that opens the project resumes it or cancels it")
	state := s.read(".exacta/state.json")
	s.write(".exacta/state.json", "{}")
	refused(60, "trunkline: ST-002: ")
	if got := s.read(".exacta/state.json"); got != "{}" {
		t.Errorf("state.json: %q", got)
	}
	s.write(".exacta/state.json", state)
	s = startProjectsIn(t, s.dir)
	wantRun(t, s.run("status"), 0, "state      Paused\n", "")
	wantRun(t, s.run("show"), 0, "Plan "+plan+", version 1, about 42 tokens\n", "") // from its document
	wantRun(t, s.run("resume"), 0, "completed "+points[0].ID+"\n", "take it back with: trunkline exacta close && trunkline exacta rollback "+points[0].ID[:8]+"\n")
	s.read("z.txt")
	wantRun(t, s.run("close"), 0, "", "")
	wantRun(t, s.rollback(points[0].ID), 0, "restored README.md\nremoved  z.txt\n", "")
}

func TestRollbackOfNothing(t *testing.T) {
	dir := t.TempDir()
	f := func(code int, stderr string, args ...string) {
		t.Helper()
		wantRun(t, runProjects(t, "", append([]string{"rollback", "--project", dir}, args...)...), code, "", stderr)
	}
	f(50, "trunkline: FS-001: ", "00000000-0000-4000-8000-000000000001")
	f(2, `cannot use "../x" as the id of a rollback point`, "../x")
	f(2, "missing argument POINT")
	f(2, `cannot use argument "x"`, "--list", "x")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the project was changed: %v %v", entries, err)
	}
	dir = filepath.Join(dir, "missing")
	f(50, "trunkline: FS-001: Not found: missing", "--list")
}
