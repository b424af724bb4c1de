package planner

import (
	"strings"
	"testing"

	"trunkline/engine/projects/plan"
)

// TestEdits is what edits make of a.txt (exacta §4.19).
func TestEdits(t *testing.T) {
	f := func(in, old, want string) {
		t.Helper()
		_, list := steps(t, in, demo().with("a.txt", old), debug())
		if len(list) != 1 || string(list[0].New) != want || string(list[0].Old) != old || list[0].Target != "a.txt" {
			t.Errorf("%s: %q, want %q", in, list[0].New, want)
		}
	}
	f(`append "x" to a.txt`, "a\n", "a\nx\n")
	f(`append "x\n" to a.txt`, "a\n", "a\nx\n")
	f(`append "x\n\n" to a.txt`, "a\n", "a\nx\n\n")
	f(`append "x" to a.txt`, "a", "a\nx\n")
	f(`append "x" to a.txt`, "", "x\n")
	f(`append "" to a.txt`, "a\n", "a\n\n")
	f(`append "x\ny" to a.txt`, "a\r\nb", "a\r\nb\r\nx\r\ny\r\n")
	f(`append "x" to a.txt`, "a\nb\r\n", "a\nb\r\nx\n")
	f(`append "x" to a.txt`, bom, bom+"x\n")
	f("append `x y` to a.txt", "a\n", "a\nx y\n")
	f(`prepend "x" to a.txt`, "a\n", "x\na\n")
	f(`prepend "x" to a.txt`, bom+"a\r\n", bom+"x\r\na\r\n")
	f(`insert "x" before "b" in a.txt`, "a\nab\nb\n", "a\nx\nab\nb\n")
	f(`insert "x" after "b" in a.txt`, "a\nab\nb\n", "a\nab\nx\nb\n")
	f(`insert "x" after "b" in a.txt`, "a\r\nb", "a\r\nb\r\nx\r\n")
	f(`insert "x" before "a" in a.txt`, bom+"a\n", bom+"x\na\n")
	f(`replace "a" with "bb" in a.txt`, "a\naa\nc", "bb\nbbbb\nc")
	f(`replace "a" with "" in a.txt`, "ab\n", "b\n")
	f(`replace "a\nb" with "x\ny" in a.txt`, "a\r\nb\r\n", "x\r\ny\r\n")
	f(`remove "a" from a.txt`, "a\nb\nca\nd", "b\nd")
	f(`remove "a" from a.txt`, bom+"a\r\nb\r\na", bom+"b\r\n")
	f(`remove "a" from a.txt`, "a", "")
	f("remove \"a\\n\" from a.txt", "a\nb\n", "b\n")
	f(`append "x" to a.txt; replace "x" with "y" in a.txt; append "z" to a.txt`, "a\n", "a\ny\nz\n")
}

// TestSteps is the order, the merging and the descriptions of steps (exacta §4.19).
func TestSteps(t *testing.T) {
	f := func(in string, want ...string) []Step {
		t.Helper()
		text, list := steps(t, in, demo(), debug())
		if got := strings.Join(text, "|"); got != strings.Join(want, "|") {
			t.Errorf("%s:\n got %s\nwant %s", in, got, strings.Join(want, "|"))
		}
		return list
	}
	f(`append "x" to a.txt; delete b.txt; replace "x" with "y" in a.txt`,
		"file_modify a.txt Modify a.txt: append text; replace text", "file_delete b.txt Delete b.txt")
	f(`insert "x" before "a" in a.txt; prepend "x" to a.txt; remove "a" from a.txt; append "b" to a.txt; append "c" to a.txt`,
		"file_modify a.txt Modify a.txt: insert text; prepend text; remove lines; append text")
	list := f(`create x.txt with "a"; append "b" to x.txt`, "file_create x.txt Create x.txt")
	if string(list[0].New) != "a\nb\n" || list[0].Old != nil {
		t.Errorf("a file that is created and edited: %+v", list)
	}
	f("delete a.txt; delete a.txt", "file_delete a.txt Delete a.txt")
	f("create file main.go", "file_create main.go Create main.go")
	f("build; rebuild", "build . Build (Debug)", "build . Build (Debug)")
	for w := range strings.FieldsSeq("release installer msi nsis production package") {
		if list = f("build the "+w, "build . Build (Release)"); list[0].Configuration != "Release" {
			t.Errorf("configuration of %s: %+v", w, list)
		}
	}
	for _, in := range []string{"package it", "bundle it", "publish it", "release it"} {
		f(in, "build . Build (Release)")
	}
	if text, _ := steps(t, "build", demo(), &Config{Toolchain: "go"}); text[0] != "build . Build (Debug)" {
		t.Error(text)
	}
	text, _ := steps(t, "build for debug", demo(), &Config{Configuration: "Release"})
	if text[0] != "build . Build (Release)" {
		t.Error(text)
	}
}

// TestRefusals is every case of VAL-004 (exacta §4.19).
func TestRefusals(t *testing.T) {
	tr := demo().with("nul.txt", "a\x00").with("latin.txt", "\xe9a\n")
	tr.hidden = map[string]string{"dir.txt": "here"}
	f := func(in, reason string) {
		t.Helper()
		intent, bad := Extract(in, tr, debug())
		if bad != nil {
			t.Fatal(bad)
		}
		_, bad = Plan(&intent, tr, debug())
		if bad == nil || bad.Code != "VAL-004" || bad.Message() != "The plan is not valid: "+reason+"." {
			t.Errorf("%s: %v, want %s", in, bad, reason)
		}
	}
	f(`append "x" to none.txt`, "a target is missing")
	f("delete none.txt", "a target is missing")
	f("delete src.go", "a target is missing")
	f(`append "x" to nul.txt`, "a target is not text")
	f("delete latin.txt", "a target is not text")
	f(`replace "none" with "x" in a.txt`, "the text to replace was not found")
	f(`replace "" with "x" in a.txt`, "there is no text to replace")
	f(`insert "x" after "none" in a.txt`, "the place of the insertion was not found")
	f(`insert "x" after "" in a.txt`, "the place of the insertion was not found")
	f(`remove "none" from a.txt`, "no line has the text to remove")
	f(`remove "a\nb" from a.txt`, "no line has the text to remove")
	f(`replace "a" with "a" in a.txt`, "nothing would change")
	f(`replace "a" with "q" in a.txt; replace "q" with "a" in a.txt`, "nothing would change")
	f(`delete a.txt; append "x" to a.txt`, "a file is deleted and edited")
	f(`append "x" to a.txt; delete a.txt`, "a file is deleted and edited")
	f("delete a.txt; create a.txt", "a file is deleted and edited")
	f("create x.txt; create x.txt", "a file is created and is there already")
	f("create an app", "no template is stated")
	f("create a go app; delete a.txt", "no concrete edit")
	f("fix the crash", "no concrete edit")
	f("compile some pages", "no concrete edit")
	f("add a button in main.go", "no concrete edit")
	f("add a button to UserService", "no concrete edit")
	f("nothing", "no concrete edit")
	f(`replace "a" with "`+strings.Repeat("b", 20000)+`" in a.txt; replace "b" with "`+
		strings.Repeat("c", 100)+`" in a.txt`, "the file would grow too much")
}

// TestContents is the content of new files (exacta §4.19).
func TestContents(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		_, list := steps(t, "create "+path, demo(), debug())
		if string(list[0].New) != want+"\n" {
			t.Errorf("%s: %q, want %q", path, list[0].New, want)
		}
	}
	f("x.go", "package main")
	f("My-Pkg2/x.go", "package mypkg2")
	f("a/_/x.go", "package main")
	f("docs/Some.Page.md", "# Some.Page")
	f("x.json", "{}")
	f("x.html", "<!doctype html>")
	for ext := range strings.FieldsSeq("py sh yml yaml toml rb") {
		f("d/x."+ext, "# d/x."+ext)
	}
	for ext := range strings.FieldsSeq("js mjs cjs ts tsx jsx c h cc cpp hpp cs rs java kt swift proto php") {
		f("d/x."+ext, "// d/x."+ext)
	}
	f("d/x.txt", "d/x.txt")
	f("sub/Makefile", "sub/Makefile")
	_, list := steps(t, `create x.go with "a\nb" and "c"`, demo(), debug())
	if string(list[0].New) != "" && string(list[0].New) != "a\nb\n" {
		t.Errorf("content in quotes: %q", list[0].New)
	}
}

// TestFeatures is a request that names a feature and no edit (exacta §4.19).
func TestFeatures(t *testing.T) {
	f := func(in, toolchain, path, begins string) {
		t.Helper()
		_, list := steps(t, in, demo(), &Config{Toolchain: toolchain})
		if len(list) != 1 || list[0].Type != plan.FileCreate || list[0].Target != path ||
			list[0].Description != "Create "+path || !strings.Contains(string(list[0].New), begins) {
			t.Errorf("%s: %+v", in, list)
		}
	}
	const in = "Please add a new login Button to the page, with my Log-In dialog of mine"
	f(in, "go", "internal/loginbuttonpagelogin/loginbuttonpagelogin.go", "\npackage loginbuttonpagelogin\n\n// Enabled")
	f(in, "go", "internal/loginbuttonpagelogin/loginbuttonpagelogin.go", "\nfunc Enabled() bool {")
	f(in, "npm", "src/login-button-page-login.js", "enabled")
	f(in, "cargo", "src/login_button_page_login.rs", "enabled")
	f(in, "dotnet", "LoginButtonPageLogin.cs", "class LoginButtonPageLogin")
	f(in, "make", "docs/login-button-page-login.md", "# login button page login\n")
	f(in, "", "docs/login-button-page-login.md", "# login button page login\n")
	f("never stop. add a dark mode", "", "docs/dark-mode.md", "# dark mode\n")
	f("Please, add a 3d view", "go", "internal/f3dview/f3dview.go", "package f3dview\n")
	f("Now; then add a 3d view and add a map", "", "docs/f3d-view.md", "# f3d view\n")
	f("add a 3d view", "go", "internal/f3dview/f3dview.go", "package f3dview\n")
	f("add a switch", "go", "internal/switch/switch.go", "package fswitch\n")
	f("add support for the new feature", "", "docs/feature.md", "# feature\n")
	f("add "+strings.Repeat("x", 3000), "", "docs/"+strings.Repeat("x", 40)+".md", "# x")
}

// TestTemplates is every template and what names it (exacta §4.19).
func TestTemplates(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		c := &Config{RootName: "My  Tool!"}
		_, list := steps(t, in, &tree{}, c)
		if len(list) != len(want) {
			t.Fatalf("%s: %d steps", in, len(list))
		}
		for i, w := range want {
			path, part, _ := strings.Cut(w, " ")
			if list[i].Target != path || !strings.Contains(string(list[i].New), part) {
				t.Errorf("%s: %s has\n%s", in, list[i].Target, list[i].New)
			}
		}
	}
	for w := range strings.FieldsSeq("go golang Go") {
		f("create a "+w+" app", "go.mod module my-tool\n\ngo 1.22\n", "main.go Hello from my-tool")
	}
	for w := range strings.FieldsSeq("node nodejs node.js Node.js npm javascript js") {
		f("init a "+w+" module", `package.json "name": "my-tool"`, "index.js Hello from my-tool")
	}
	for w := range strings.FieldsSeq("rust cargo") {
		f("scaffold a "+w+" program", `Cargo.toml edition = "2021"`, "src/main.rs Hello from my-tool")
	}
	for w := range strings.FieldsSeq("dotnet .net c# csharp wpf winui winforms") {
		f("new "+w+" solution", "my-tool.csproj net8.0", "Program.cs Hello from my-tool")
	}
	for w := range strings.FieldsSeq("c make makefile") {
		f("bootstrap a "+w+" project", "Makefile \nrun: main\n", "main.c Hello from my-tool")
	}
	f("create a c app in go", "go.mod module my-tool", "main.go package main")
	f("create a rust app named Other_App-2", `Cargo.toml name = "other_app-2"`, "src/main.rs other_app-2")
	f(`create a rust app called "A b"`, `Cargo.toml name = "a-b"`, "src/main.rs a-b")
	f("create a rust app called 7zip", `Cargo.toml name = "app"`, "src/main.rs app")
	f("create a rust app called go", `Cargo.toml name = "go"`, "src/main.rs go")
	f("create a rust app called", `Cargo.toml name = "my-tool"`, "src/main.rs my-tool")
}

// TestDefinitions is what defines a name (exacta §4.19).
func TestDefinitions(t *testing.T) {
	f := func(content string, want bool) {
		t.Helper()
		if defines([]byte(content), "Name") != want {
			t.Errorf("%q: not %v", content, want)
		}
	}
	for w := range strings.FieldsSeq("func class struct interface type def fn const var let function enum trait record") {
		f("x "+w+" Name{", true)
		f(w+"\n\tName", true)
		f("x"+w+" Name", false)
		f(w+" x Name", false)
	}
	f("func (a *T) Name(", true)
	f("func ((a) Name(", true)
	f("func (a)Name(", true)
	f("func(a) Name(", false)
	f("func (a\n) Name(", false)
	f("func (a) (b) Name(", false)
	f("funcName", false)
	f("type Names", false)
	f("type aName", false)
	f("Name type", false)
	f("NameName type Name", true)
	f("type é Name", false)
	if got := Defining(demo(), "UserService"); len(got) != 1 || got[0] != "src/user.go" {
		t.Error(got)
	}
	big := demo().with("src/big.go", "type UserService "+strings.Repeat(" ", MaxScan))
	if got := Defining(big, "UserService"); len(got) != 1 {
		t.Error(got)
	}
}

// TestSymbols is which names count, and at most twenty.
func TestSymbols(t *testing.T) {
	in, _ := Extract("fix `run` and UserService in stop(), UserService. never touch OtherName", demo(), debug())
	if strings.Join(in.Symbols, " ") != "run UserService stop" || strings.Join(in.Files, " ") != "src/user.go" {
		t.Errorf("%+v", in)
	}
	var b strings.Builder
	for i := range 30 {
		b.WriteString("aB" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + " ")
	}
	if in, _ = Extract(b.String(), demo(), debug()); len(in.Symbols) != maxSymbols {
		t.Error(in.Symbols)
	}
	if in, _ = Extract(" a \n\t b "+strings.Repeat("é", 300), demo(), debug()); in.Description != "a b "+strings.Repeat("é", 196) {
		t.Error(in.Description)
	}
}
