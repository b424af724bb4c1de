package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestFormsOfARequest: each form that the hint shows is a plan.
func TestFormsOfARequest(t *testing.T) {
	s := startProjects(t, demo())
	s.write("old.txt", "OLD\n")
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	got := s.run("plan", "add a button in README.md")
	wantRun(t, got, 40, "", "trunkline: VAL-004: The plan is not valid: no concrete edit. (")
	forms := regexp.MustCompile(`'([^']{3,})'`).FindAllStringSubmatch(got.stderr, -1)
	if len(forms) != 6 {
		t.Fatalf("%d forms in %s", len(forms), got.stderr)
	}
	for _, form := range forms {
		request := strings.NewReplacer("LINE", "Hello", "create file FILE", "create file new.txt", "FILE", "README.md").Replace(form[1])
		if strings.HasPrefix(request, "replace") || strings.HasPrefix(request, "delete") {
			request = strings.ReplaceAll(request, "README.md", "old.txt")
		}
		wantRun(t, s.run("plan", request), 0, "\nPlan ", "approve it with")
		wantRun(t, s.run("reject"), 0, "rejected ", "")
	}
}

// TestAFailedProjectSaysWhy: in its status, as long as the server knows it.
func TestAFailedProjectSaysWhy(t *testing.T) {
	s := startProjects(t, demo())
	wantRun(t, s.run("plan", `delete none.txt`), 40, "", "a target is missing")
	wantRun(t, s.run("status"), 0, "state      Failed\n", "")
	wantRun(t, s.run("status"), 0, "error      VAL-004: The plan is not valid: a target is missing. (none.txt)\n", "")
	wantRun(t, s.run("status", "--json"), 0, `"state": "Failed"`, "")
	s.srv.Stop()
	s.srv.Close()
	s = startProjectsIn(t, s.dir)
	wantRun(t, s.run("status"), 0, "error      the server that knew it has ended\n", "")
}

// TestADeniedFileIsCalledDenied: by the planner, by a rule of the project, and in a set of diffs.
func TestADeniedFileIsCalledDenied(t *testing.T) {
	s := startProjects(t, demo())
	s.write(".env", "A=1\n")
	s.write("held/x.txt", "1\n")
	s.write(".exacta/config.json", `{"schema_version":1,"file_rules":{"deny":["held/"]}}`)
	for _, request := range []string{`append "B=2" to .env`, `append "2" to held/x.txt`, `delete held/x.txt`, `create file held/y.txt with "y"`} {
		wantRun(t, s.run("plan", request), 40, "", "denied by the rules for files")
	}
	s.write("d.diff", "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A=1\n+A=2\n")
	wantRun(t, s.run("apply", s.dir+"/d.diff"), 20, "", "d.diff:1: the file is denied: a rule of the project or of all projects protects it (denied: .env)")
}

// TestALargeIndex reports that it does not have all files.
func TestALargeIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run makes no ten thousand files")
	}
	s := startProjects(t, demo()) // of two files
	for i := range 9997 {
		s.write(fmt.Sprintf("%04d", i), "")
	}
	got := s.run("plan", `append "x" to README.md`)
	wantRun(t, got, 0, "", "approve it with")
	if strings.Contains(got.stderr, "warning") {
		t.Error(got.stderr)
	}
	wantRun(t, s.run("reject"), 0, "", "")
	s.write("one", "")
	wantRun(t, s.run("plan", `append "x" to README.md`), 0, "", "warning: the index of the project stops at 10000 files")
}

// TestExitCodesInHelp: each verb on projects has them.
func TestExitCodesInHelp(t *testing.T) {
	for verb := range strings.SplitSeq("call, "+projectVerbs, ", ") {
		if got := runProjects(t, "", verb, "--help"); strings.Count(strings.Join(strings.Fields(got.stdout), " "), "Exit codes: 0 ok, 1 ") != 1 {
			t.Errorf("%s: %s", verb, got.stdout)
		}
	}
}
