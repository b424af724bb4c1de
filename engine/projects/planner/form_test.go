package planner

import (
	"strings"
	"testing"
)

// TestForms is every row of the table of edit forms (exacta §4.19), with what is near it.
func TestForms(t *testing.T) {
	names := []string{"insert", "append", "prepend", "replace", "remove", "delete", "create", "project", "build"}
	f := func(in, want string) {
		t.Helper()
		r, bad := parse(in, demo())
		if bad != nil {
			if bad.Code != want {
				t.Errorf("%s: %v, want %s", in, bad, want)
			}
			return
		}
		var out []string
		for _, m := range r.forms {
			s := names[m.do]
			if m.text != "" || m.filled {
				s += " <" + m.text + ">"
			}
			if m.with != "" {
				s += " with <" + m.with + ">"
			}
			if m.anchor != "" {
				s += map[bool]string{true: " after <", false: " before <"}[m.after] + m.anchor + ">"
			}
			out = append(out, s+strings.Join(append([]string{""}, m.paths...), " "))
		}
		if got := strings.Join(out, "; "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
	// insert
	for v := range strings.FieldsSeq(insertVerbs) {
		f(v+` the line "a" before the one with "b" in the file a.txt`, "insert <a> before <b> a.txt")
	}
	f(`Please insert "a" right after "b" a.txt now`, "insert <a> after <b> a.txt")
	f(`insert "a" after "b" of c, "d" in a.txt`, "insert <a> after <d> a.txt")
	f(`insert "a" near "b" in a.txt`, "")
	f(`insert "a" after b in a.txt`, "")
	f(`insert "a" after "b" in ../a.txt`, "SEC-001")
	// append, prepend
	for v := range strings.FieldsSeq(appendVerbs) {
		f(v+` "a" to the end of a.txt`, "append <a> a.txt")
	}
	f(`append the "a" and "b" to some list, to my a.txt`, "append <a> a.txt")
	f(`append "a" in a.txt`, "")
	f(`append to a.txt "a"`, "")
	f(`append "x" to ../b`, "SEC-001")
	f(`append "x" to ..`, "SEC-001")
	f(`append "x" to a/../b`, "SEC-001")
	f(`append "x" to /abs/file.txt`, "FS-003")
	f(`append "x" to ~/file.txt`, "FS-003")
	f(`append "x" to C:\file.txt`, "FS-003")
	f(`append "x" to ..\file.txt`, "SEC-001")
	f("append \"x\" to `a\\b.txt`", "FS-003")
	f(`prepend "a" to the top of this file a.txt`, "prepend <a> a.txt")
	// replace
	for v := range strings.FieldsSeq(replaceVerbs) {
		f(v+` "a" with "b" in the file main.go`, "replace <a> with <b> main.go")
	}
	f(`rename "a" to "b" in main.go`, "replace <a> with <b> main.go")
	f(`swap every "a" by a "b" there in main.go`, "replace <a> with <b> main.go")
	f(`replace "a" with "b" main.go`, "")
	f(`replace "a" in main.go`, "")
	f(`replace "a" with "b" in /x.go`, "FS-003")
	// remove, delete
	for v := range strings.FieldsSeq(removeVerbs) {
		f(v+` "a" from a.txt`, "remove <a> a.txt")
		f(v+` all with "a" in a.txt`, "remove <a> a.txt")
		f(v+" a.txt and b.txt", "delete a.txt b.txt")
	}
	f(`remove "a" from ../a.txt`, "SEC-001")
	f(`remove "a" of a.txt`, "")
	f("delete a.txt from b.txt", "delete a.txt")
	f("delete the line in a.txt", "")
	f("delete a.txt, a.txt", "delete a.txt")
	f("delete ../a.txt", "SEC-001")
	f("delete a.txt and /b", "FS-003")
	f("delete src/", "")
	// create
	for v := range strings.FieldsSeq(createVerbs) {
		f(v+" x.go", "create x.go")
	}
	f(`create x.txt with "a" and "b"`, "create <a> x.txt")
	f("create x.txt:\n```\na\nb\n```\nbuild", "create <a\nb\n> x.txt; build")
	f(`create x.txt with ""`, "create <> x.txt")
	f("create x.go, y.go and z.go", "create x.go y.go z.go")
	f(`create x.go and y.go with "a"`, "")
	for w := range strings.FieldsSeq(bound) {
		if w != "to" {
			f("create something "+w+" x.go", "")
		}
	}
	f("create a page to x.go", "")
	f("create a route /users", "")
	f("create a route /users in x.go", "")
	f("create /users.go", "FS-003")
	f("create ../users", "SEC-001")
	f("add x.go to /users.go", "create x.go")
	// project
	for v := range strings.FieldsSeq(projectVerbs) {
		f(v+" a go project", "project")
	}
	for n := range strings.FieldsSeq(nouns) {
		f("create a go "+n, "project")
	}
	for w := range strings.FieldsSeq(known) {
		f("create a page for "+w+" app", "")
		f("init "+w+" app", "project")
	}
	f("create an app for the project", "project")
	f("create a go app with main.go", "create main.go")
	f("create a go app in /tmp", "")
	f("create a new node.js app", "project")
	f("create a makefile project", "project")
	f("create a Makefile for a go project", "create Makefile")
	f("create node.js for my app", "create node.js")
	f("create node.js", "create node.js")
	f("create a go thing", "")
	// build
	for v := range strings.FieldsSeq(buildVerbs) {
		f(v+" the project", "build")
		f(v, "build")
	}
	for w := range strings.FieldsSeq(buildWords) {
		f("build "+w, "build")
	}
	f("build a page", "")
	f("build a.txt", "")
	f(`build "a"`, "")
	// first match, several clauses, none
	f(`add "a" to a.txt; then add "b" to b.txt, delete x.md and build`, "append <a> a.txt; append <b> b.txt; delete x.md; build")
	f(`"a" to a.txt`, "")
	f("please", "")
	f("", "")
}

// TestTypes is the type and the confidence of requests with and without forms (exacta §4.19).
func TestTypes(t *testing.T) {
	tr := demo().with("src/twin.go", "package src\n\ntype TwinName struct{}\n").with("x/twin.go", "func (a *B) TwinName(")
	f := func(in, intent string, confidence float64) {
		t.Helper()
		got, bad := Extract(in, tr, debug())
		if bad != nil || got.Type != intent || got.Confidence != confidence {
			t.Errorf("%s: %s %v %v, want %s %v", in, got.Type, got.Confidence, bad, intent, confidence)
		}
	}
	// Forms.
	f("build", buildPackage, 0.95)
	f("build; create x.md", addFeature, 0.95)
	f("delete a.txt; create x.md", fixBug, 0.95)
	f("create a go app; create x.md", UnknownIntent, 0)
	f("create a go app; init a rust app", UnknownIntent, 0)
	f("create a go app; build", createProject, 0.6)
	f("create x.md; append \"a\" to x.md", addFeature, 0.95)
	f("append \"a\" to x.md; create x.md", addFeature, 0.6)
	f("delete x.md", fixBug, 0.6)
	f("create x.md; create x.md", addFeature, 0.6)
	// Words: first word, a path or symbol, ties, symbols with more definitions.
	f("crash", fixBug, 0.7)
	f("There is a crash", fixBug, 0.5)
	f("a crash in main.go", fixBug, 0.65)
	f("a crash in none.go", fixBug, 0.5)
	f("Please fix main.go", fixBug, 0.85)
	f("fix TwinName", fixBug, 0.55)
	f("fix TwinName and UserService", fixBug, 0.7)
	f("fix NoSuchName", fixBug, 0.7)
	f("a crash of support", fixBug, 0.3)
	f("support of a release", addFeature, 0.7)
	f("a nice release with support", addFeature, 0.3)
	f("never fix it. a crash", fixBug, 0.5)
	f("`x` fix. bug it", fixBug, 0.7)
	f("nothing", UnknownIntent, 0)
	f("don't fix it", UnknownIntent, 0)
	lists := map[string]string{
		fixBug: "fix bug repair correct resolve debug crash crashes crashing broken fails failing failure error" +
			" exception wrong incorrect regression leak hang",
		addFeature:   "add implement introduce support create write extend enable include provide insert append",
		buildPackage: "build compile package bundle installer msi nsis publish release artifact",
	}
	for intent, words := range lists {
		for w := range strings.FieldsSeq(words) {
			f(w+" xyz", intent, 0.7)
			f("xyz "+w, intent, 0.5)
		}
	}
	if _, c := (&request{forms: []form{{do: runBuild}}, tree: tr}).intent(&Config{}, &symbols{}); c != 0.6 {
		t.Errorf("a build without a toolchain: %v", c)
	}
}

// TestProjectFits is when a new project is sure: a template, and no marker that speaks against it.
func TestProjectFits(t *testing.T) {
	f := func(in string, want float64, markers ...string) {
		t.Helper()
		got, _ := Extract(in, &tree{markers: markers}, &Config{})
		if got.Type != createProject || got.Confidence != want {
			t.Errorf("%s: %s %v", in, got.Type, got.Confidence)
		}
	}
	f("create a go app", 0.95)
	f("create a go app; build", 0.95, ".exacta", ".git")
	f("create an app", 0.6)
	f("create a go app", 0.6, ".git", "Makefile")
}
