package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// e14 is the tree of the examples E14 (exacta §9).
var e14 = []string{"go.mod", "module x\n", "main.go", "package main\n\nfunc main() { println(\"foo\") }\n", "README.md", "# Demo\n", "a.txt", "a\n", "b.txt", "b\n",
	"src/user.go", "package src\n\ntype UserService struct{}\n"}

// TestIntents9 is the table E14 and what is near it (exacta §4.19, §9).
func TestIntents9(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, e14...)
	f := func(input, kind, confidence, files string) *reply {
		t.Helper()
		r := c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`)
		return r.is(`{"intent":{"id":"…","type":"` + kind + `","confidence":` + confidence + `,"raw_input":` + quote(input) + `,"target":{"files":` + files + `,…`)
	}
	f("Add a login button", "AddFeature", "0.7", "[]")
	f("Fix the null reference in UserService", "FixBug", "0.85", `["src/user.go"]`).is(`{…"symbols":["UserService"],…}`)
	f(`Replace "foo" with "bar" in main.go, then build`, "FixBug", "0.95", `["main.go"]`)
	f("delete a.txt and b.txt", "FixBug", "0.95", `["a.txt","b.txt"]`)
	f("create file main.go", "AddFeature", "0.6", `["main.go"]`)
	f("Build a login page", "BuildPackage", "0.7", "[]")
	f("package the app", "BuildPackage", "0.95", "[]")
	f("Create a new WPF app", "CreateProject", "0.6", "[]")
	f("Refactor everything", "UnknownIntent", "0", "[]")
	f(`Append "x" to README.md and don't touch src/db/`, "AddFeature", "0.95", `["README.md"]`).
		is(`{…"constraints":[{"type":"MUST_NOT","description":"touch src/db/","scope":"src/db"}],…}`)
	// the types of constraints, their descriptions and scopes
	constraint := func(input, kind, description, scope string) {
		t.Helper()
		f(`append "x" to a.txt. `+input, "AddFeature", "0.95", `["a.txt"]`).
			is(`{…"constraints":[{"type":"` + kind + `","description":` + quote(description) + `,"scope":` + quote(scope) + `}],…}`)
	}
	for _, w := range []string{"must not", "mustn't", "do not", "don't", "dont", "never", "without", "avoid", "no", "Please do not", "But never"} {
		constraint(w+" delete b.txt", "MUST_NOT", "delete b.txt", "b.txt")
	}
	for _, w := range []string{"make sure", "must", "always", "ensure", "also you must"} {
		constraint(w+" the “tests” run", "MUST", "the “tests” run", "global")
	}
	constraint("only touch src/", "MUST", "only touch src/", "src")
	constraint("keep UserService", "MUST", "keep UserService", "UserService")
	for _, w := range []string{"if possible", "prefer", "preferably", "ideally", "should"} {
		constraint(w+" use `small` functions", "PREFER", "use small functions", "small")
	}
	// nothing left is no constraint
	f(`append "x" to a.txt. never.`, "AddFeature", "0.95", `["a.txt"]`).is(`{…"constraints":[],…}`)
	// a description of 200 characters, white space collapsed
	long := strings.Repeat("é ", 150) + `append "x" to a.txt`
	f("add  "+long, "AddFeature", "0.95", `["a.txt"]`).is(`{…"description":` + quote("add "+strings.Repeat("é ", 98)) + `},…}`)
}

// planned is a request that becomes files: pairs of a name and a content, "-" for none.
type planned struct {
	input string
	files []string
}

// everyForm has the edit forms and the spans of exacta §4.19.
var everyForm = []planned{
	{`insert "x" before "a" in a.txt`, []string{"a.txt", "x\na\n"}},
	{`add the line "x" after the one with "a" in the file a.txt`, []string{"a.txt", "a\nx\n"}},
	{`append "x" to a.txt`, []string{"a.txt", "a\nx\n"}},
	{`write "x" to the end of a.txt`, []string{"a.txt", "a\nx\n"}},
	{`append "x" to open.txt`, []string{"open.txt", "o\nx\n"}},
	{`append "x\ny" to crlf.txt`, []string{"crlf.txt", "c\r\nd\r\nx\r\ny\r\n"}},
	{`prepend "x" to the top of a.txt`, []string{"a.txt", "x\na\n"}},
	{`prepend "x" to bom.txt`, []string{"bom.txt", "\uFEFFx\nb\n"}},
	{`replace "a" with "b" in a.txt`, []string{"a.txt", "b\n"}},
	{`rename "c\nd" to "e" in crlf.txt`, []string{"crlf.txt", "e\r\n"}},
	{`remove "c" from crlf.txt`, []string{"crlf.txt", "d\r\n"}},
	{`drop a.txt and b.txt`, []string{"a.txt", "-", "b.txt", "-"}},
	{`create file n.txt`, []string{"n.txt", "n.txt\n"}},
	{`create n.txt with "x\ty"`, []string{"n.txt", "x\ty\n"}},
	{"create n.txt:\n```\nx\n  y\n```\n", []string{"n.txt", "x\n  y\n"}},
	{"create n.txt:\n```text\nx\ny", []string{"n.txt", "x\ny\n"}},
	{`create n.txt with ""`, []string{"n.txt", ""}},
	{"create n.txt with `x y`", []string{"n.txt", "x y\n"}},
	{"append \"x\" to `a.txt`", []string{"a.txt", "a\nx\n"}},
	{`append "a \"b\" \\ c" to a.txt`, []string{"a.txt", "a\na \"b\" \\ c\n"}},
	{`create x/Some-Dir.9/n.go`, []string{"x/Some-Dir.9/n.go", "package somedir9\n"}},
	{`create n.go`, []string{"n.go", "package main\n"}},
	{`create doc/n.md and n.json`, []string{"doc/n.md", "# n\n", "n.json", "{}\n"}},
	{`create n.py, n.sh and n.yaml`, []string{"n.py", "# n.py\n", "n.sh", "# n.sh\n", "n.yaml", "# n.yaml\n"}},
	{`create d/n.js and n.rs`, []string{"d/n.js", "// d/n.js\n", "n.rs", "// n.rs\n"}},
	{`create n.html`, []string{"n.html", "<!doctype html>\n"}},
	{`create Dockerfile`, []string{"Dockerfile", "Dockerfile\n"}},
	{`append "x" to a.txt; replace "x" with "y" in a.txt, and delete b.txt`, []string{"a.txt", "a\ny\n", "b.txt", "-"}},
	{`append "x" to a.txt and b.txt stays`, []string{"b.txt", "b\n"}},
	{`create n.txt with "a"; append "b" to n.txt`, []string{"n.txt", "a\nb\n"}},
	{`Please append "x" to a.txt! Then create n.txt.`, []string{"a.txt", "a\nx\n", "n.txt", "n.txt\n"}},
	{`append "it’s <&>" to a.txt`, []string{"a.txt", "a\nit’s <&>\n"}},
	{"Add a login button", []string{"docs/login-button.md", "# login button\n"}},
	{"Add support for the 2 factor login", []string{"docs/f2-factor-login.md", "# f2 factor login\n"}},
}

// formFiles are the files that the requests of everyForm find.
var formFiles = []string{"a.txt", "a\n", "b.txt", "b\n", "open.txt", "o", "crlf.txt", "c\r\nd\r\n", "bom.txt", "\uFEFFb\n", "pyproject.toml", ""}

// TestForms4_19 runs a request of each form to its end and looks at the files.
func TestForms4_19(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, formFiles...)
	for _, p := range everyForm {
		c.completes(p.input)
		for i := 0; i < len(p.files); i += 2 {
			if got := c.read(p.files[i]); got != p.files[i+1] {
				t.Errorf("%s: %s has %q, want %q", p.input, p.files[i], got, p.files[i+1])
			}
			c.remove(p.files[i])
		}
		for i := 0; i < len(formFiles); i += 2 {
			c.server.write(formFiles[i], formFiles[i+1])
		}
	}
}

// TestTemplates4_19 makes a project of each template in an empty directory.
func TestTemplates4_19(t *testing.T) {
	t.Parallel()
	f := func(input string, files map[string]string) {
		t.Helper()
		s := serve(t, stdio)
		if err := os.Mkdir(filepath.Join(s.home, "p"), 0o755); err != nil {
			t.Fatal(err)
		}
		c := s.connect()
		c.opens(`"detected_markers":[]`)
		c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`).is(`{"intent":{…"type":"CreateProject","confidence":0.95,…}}`)
		c.completes(input)
		for name, part := range files {
			if got := c.read(name); !strings.Contains(got, part) {
				t.Errorf("%s: %s has %q", input, name, got)
			}
		}
		if names, _ := filepath.Glob(filepath.Join(c.dir(), "[A-Za-z]*")); len(names) != 2 {
			t.Errorf("%s: %v", input, names)
		}
		if got := c.opens("").end.Result; !strings.Contains(string(got), `"state":"Completed"`) {
			t.Errorf("%s: %s", input, got)
		}
	}
	f("Create a new Go project named Hello World!", map[string]string{"go.mod": "module hello\n\ngo 1.22\n", "main.go": `"Hello from hello"`})
	f("scaffold a golang app called my_App-2", map[string]string{"go.mod": "module my_app-2\n", "main.go": "Hello from my_app-2"})
	f("init a node application", map[string]string{"package.json": "\"name\": \"p\",\n  \"version\": \"0.1.0\",\n  \"private\": true,\n  \"main\": \"index.js\"", "index.js": "Hello from p"})
	f("bootstrap a rust program named 9lives", map[string]string{"Cargo.toml": "name = \"app\"", "src/main.rs": "Hello from app"})
	f("initialize a C# solution named x", map[string]string{"x.csproj": "<OutputType>Exe</OutputType>", "Program.cs": "Hello from x"})
	f("new C project named tool", map[string]string{"Makefile": "\nrun:", "main.c": "Hello from tool"})
}

// TestFeatures4_19 has the file of an AddFeature without a form, for each toolchain.
func TestFeatures4_19(t *testing.T) {
	t.Parallel()
	f := func(marker, content, path, text string) {
		t.Helper()
		c := open(t, stdio, marker, content)
		c.completes("Implement the fast User search for my support of logs in it")
		if got := c.read(path); got == "-" || !strings.Contains(got, text) {
			t.Errorf("%s: %s has %q", marker, path, got)
		}
	}
	f("go.mod", "module x\n", "internal/fastusersearchlogs/fastusersearchlogs.go", "package fastusersearchlogs\n")
	f("go.mod", "module x\n", "internal/fastusersearchlogs/fastusersearchlogs.go", "func Enabled() bool")
	f("package.json", "{}", "src/fast-user-search-logs.js", "")
	f("Cargo.toml", "", "src/fast_user_search_logs.rs", "")
	f("x.csproj", "", "FastUserSearchLogs.cs", "")
	f("Makefile", "", "docs/fast-user-search-logs.md", "# fast user search logs\n")
}

// TestNoPlan4_19 has requests without a plan: VAL-004 and Failed (exacta §4.4, §8).
func TestNoPlan4_19(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, append([]string{"nul.txt", "a\x00", "latin.txt", "\xff\n"}, e14...)...)
	before := tree(t, c.dir())
	for _, input := range []string{`append "x" to none.txt`, "delete none.txt", `append "x" to nul.txt`, `append "x" to latin.txt`, `replace "none" with "x" in a.txt`,
		`insert "x" after "none" in a.txt`, `remove "none" from a.txt`, `replace "a" with "a" in a.txt`, `delete a.txt; append "x" to a.txt`, "create a.txt",
		"Fix the null reference in UserService", "Build a login page", "Create a new app"} {
		r := c.ask("GeneratePlan", `{"intent_id":"`+c.intent(input)+`"}`).is("VAL-004 ")
		if got := r.shorts(); !strings.HasSuffix(got, "raised VAL-004; Planning→Failed PlanInvalid") {
			t.Errorf("%s: events %s", input, got)
		}
		if !strings.HasPrefix(r.end.Error.Message, "The plan is not valid: ") || strings.HasPrefix(r.end.Error.Message, "The plan is not valid: .") {
			t.Errorf("%s: %s", input, r.end.line)
		}
	}
	if after := tree(t, c.dir()); after != before {
		t.Errorf("the tree changed: %s", after)
	}
}

// TestRefusedIntents4_3 has what an ExtractIntent refuses (exacta §4.3, §8).
func TestRefusedIntents4_3(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, e14...)
		f := func(input, events, outcome string) {
			t.Helper()
			c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`).want(events, outcome)
		}
		for _, blank := range []string{"", " ", "\t\r\n", "\u00a0\u2003"} {
			f(blank, "", "VAL-001 ")
		}
		f(strings.Repeat("x", 32_769), "", "IPC-009 user_input:")
		f(strings.Repeat("é", 16_385), "", "IPC-009 user_input:")
		const rejected = "Idle→ExtractingIntent ExtractIntent; raised %; ExtractingIntent→Idle IntentRejected"
		f(strings.Repeat("x", 32_768), strings.Replace(rejected, "%", "VAL-001", 1), `{"intent":{…"type":"UnknownIntent",…}}`)
		for _, path := range []string{"../b", "a/../b.txt", `..\\b.txt`} {
			f(`append "x" to `+path, strings.Replace(rejected, "%", "SEC-001", 1), "SEC-001 ")
		}
		for _, path := range []string{"/abs/file.txt", "~/file.txt", `C:\file.txt`, "c:/file.txt", `\\host\file.txt`, `dir\file.txt`} {
			f(`append "x" to `+path, strings.Replace(rejected, "%", "FS-003", 1), "FS-003 ")
		}
		f("append \"x\" to a.txt. must touch b.txt, do not Touch  B.txt", strings.Replace(rejected, "%", "VAL-002", 1), "VAL-002 ")
		c.opens(`"state":"Idle"`)
	})
}

// TestIntentsAreKept4_3 uses the first of 256 intents, and not the first of 257.
func TestIntentsAreKept4_3(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	c := open(t, stdio)
	first := c.intent(`create n.txt`)
	for i := range 255 {
		c.intent("create n" + strconv.Itoa(i) + ".txt")
	}
	plan := c.planOf(first)
	c.ask("RejectPlan", `{"plan_id":"`+plan+`"}`)
	c.intent("create m.txt")
	c.ask("GeneratePlan", `{"intent_id":"`+first+`"}`).want("", "VAL-001 ")
}
