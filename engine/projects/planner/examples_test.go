package planner

import (
	"slices"
	"strings"
	"testing"

	"trunkline/engine/projects/plan"
)

// TestIntents is E14 (exacta §9).
func TestIntents(t *testing.T) {
	f := func(input, intent string, confidence float64, files ...string) Intent {
		t.Helper()
		in, bad := Extract(input, demo(), debug())
		if bad != nil {
			t.Fatalf("%s: %v", input, bad)
		}
		if in.Type != intent || in.Confidence != confidence || !slices.Equal(in.Files, files) {
			t.Errorf("%s: %s %v %v, want %s %v %v", input, in.Type, in.Confidence, in.Files, intent, confidence, files)
		}
		return in
	}
	f("Add a login button", addFeature, 0.7)
	f("Fix the null reference in UserService", fixBug, 0.85, "src/user.go")
	f(`Replace "foo" with "bar" in main.go, then build`, fixBug, 0.95, "main.go")
	f("delete a.txt and b.txt", fixBug, 0.95, "a.txt", "b.txt")
	f("create file main.go", addFeature, 0.6, "main.go")
	f("Build a login page", buildPackage, 0.7)
	f("package the app", buildPackage, 0.95)
	f("Create a new WPF app", createProject, 0.6)
	f("Refactor everything", UnknownIntent, 0)
	in := f(`Append "x" to README.md and don't touch src/db/`, addFeature, 0.95, "README.md")
	want := []plan.Constraint{{Type: "MUST_NOT", Description: "touch src/db/", Scope: "src/db"}}
	if !slices.Equal(in.Constraints, want) {
		t.Errorf("constraints %v", in.Constraints)
	}
}

// steps plans an input and returns "type target description" of each step.
func steps(t *testing.T, input string, tr Tree, c *Config) ([]string, []Step) {
	t.Helper()
	in, bad := Extract(input, tr, c)
	if bad != nil {
		t.Fatalf("%s: %v", input, bad)
	}
	list, bad := Plan(&in, tr, c)
	if bad != nil {
		t.Fatalf("%s: %v", input, bad)
	}
	var out []string
	for _, s := range list {
		out = append(out, s.Type+" "+s.Target+" "+s.Description)
	}
	return out, list
}

// TestExamples is E2, E3 and E13 (exacta §9).
func TestExamples(t *testing.T) {
	in, _ := Extract(`Append "Bye." to README.md`, demo(), debug())
	if in.Type != addFeature || in.Confidence != 0.95 || in.Description != `Append "Bye." to README.md` ||
		!slices.Equal(in.Files, []string{"README.md"}) || in.Symbols != nil || in.Constraints != nil {
		t.Errorf("E2: %+v", in)
	}
	text, list := steps(t, `Append "Bye." to README.md`, demo(), debug())
	if strings.Join(text, "|") != "file_modify README.md Modify README.md: append text" ||
		string(list[0].New) != "# Demo\n\nHello.\nBye.\n" || string(list[0].Old) != "# Demo\n\nHello.\n" ||
		list[0].Dependencies != nil {
		t.Errorf("E3: %q %+v", text, list)
	}
	text, list = steps(t, `append "1" to a.txt; build; create file z.txt`, demo(), debug())
	if strings.Join(text, "|") != "file_modify a.txt Modify a.txt: append text|build . Build (Debug)|"+
		"file_create z.txt Create z.txt" || string(list[0].New) != "a\n1\n" || string(list[2].New) != "z.txt\n" {
		t.Errorf("E13: %q %+v", text, list)
	}
}
