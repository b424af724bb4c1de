package external

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/projects/plan"
)

// TestResolve applies changes to files, and has what is wrong with a change as a violation.
func TestResolve(t *testing.T) {
	pr := newProject(t, "", "a.txt=a\n", "empty.txt=", "b.bin=\x00", "c.env=x", "src/x=1")
	f := func(step, want string) {
		t.Helper()
		steps, f := decodeSteps([]byte(`{"steps":[` + step + `]}`))
		if f != nil {
			t.Fatalf("%s: %v", step, f)
		}
		got, violations := Resolve(steps, pr, pr.Planner)
		text := fmt.Sprintf("%q %q %v %v %s", got[0].Old, got[0].New, got[0].Old == nil, got[0].New == nil, got[0].Configuration)
		if violations != nil {
			v := violations[0]
			text = v.Code + " " + v.Message + " " + v.StepID
		}
		if text != want {
			t.Errorf("%s: %s, want %s", step, text, want)
		}
	}
	step := func(kind, target, rest string) string {
		return `{"type":"` + kind + `","target":"` + target + `","description":"d","dependencies":[]` + rest + `}`
	}
	modify := func(target, lines string) string {
		return step(plan.FileModify, target, `,"diff":"--- a/`+target+`\n+++ b/`+target+`\n`+lines+`\n"`)
	}
	f(modify("a.txt", `@@ -1 +1 @@\n-a\n+b`), `"a\n" "b\n" false false `)
	f(modify("empty.txt", `@@ -0,0 +1 @@\n+b`), `"" "b\n" false false `)
	f(step(plan.FileDelete, "empty.txt", ""), `"" "" false true `)
	f(step(plan.FileDelete, "a.txt", ""), `"a\n" "" false true `)
	f(step(plan.FileCreate, "n.txt", `,"content":""`), `"" "" true false `)
	f(step(plan.FileCreate, "n.txt", `,"content":"é"`), `"" "é" true false `)
	f(step(plan.FileCreate, "n.txt", `,"diff":"--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+x\n"`), `"" "x\n" true false `)
	f(step(plan.FileCreate, "n.txt", `,"diff":"--- /dev/null\n+++ b/n.txt\n"`), `"" "" true false `)
	f(step(plan.Build, ".", ""), `"" "" true true Debug`)
	// Targets that the rules of plans have as violations.
	for _, target := range []string{"missing", "b.bin", "c.env", "src"} {
		f(step(plan.FileDelete, target, ""), `"" "" true true `)
	}
	const cannot = "the change of step 1 cannot be made: "
	f(modify("a.txt", `@@ -1 +1 @@\n-x\n+b`), "VAL-005 "+cannot+"context: a.txt:1 1")
	f(modify("missing", `@@ -1 +1 @@\n-x\n+b`), `"" "" true true `) // PV-9
	f(modify("a.txt", `@@ -1 +1 @@\n-a\n+a`), "VAL-003 "+cannot+"no_change: a.txt 1")
	f(modify("a.txt", `@@ -1 +1,2 @@\n-a\n+a`), "VAL-003 "+cannot+"hunk_count: line 3 1")
	f(step(plan.FileModify, "a.txt", `,"diff":"NO_CHANGES_REQUIRED"`), "VAL-003 "+cannot+"no_change: a.txt 1")
	f(step(plan.FileModify, "a.txt", `,"diff":""`), "VAL-003 "+cannot+"empty: 0 bytes 1")
	f(strings.Replace(modify("a.txt", `@@ -1 +1 @@\n-a\n+b`), `"target":"a.txt"`, `"target":"b.txt"`, 1), "VAL-003 "+cannot+"target: not a diff of b.txt 1")
}
