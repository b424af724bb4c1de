package relpath_test

import (
	"testing"

	"trunkline/engine/projects/relpath"
)

// TestOrderOfRules has one row for each rule of exacta §4.17, and rows where two rules fit.
func TestOrderOfRules(t *testing.T) {
	var deny, allow []string
	dotnet := false
	f := func(path string, dir, want bool) {
		t.Helper()
		if got := relpath.NewRules(deny, allow, dotnet).Denied(path, dir); got != want {
			t.Errorf("Denied(%q, %v) = %v with deny %q, allow %q, dotnet %v", path, dir, got, deny, allow, dotnet)
		}
	}
	denied := func(path string) { t.Helper(); f(path, false, true) }
	allowed := func(path string) { t.Helper(); f(path, false, false) }

	denied("../x") // outside of the root
	denied("/etc/passwd")
	denied("")
	for _, store := range []string{".exacta", ".git", ".hg", ".svn"} {
		denied(store)
		denied(store + "/config")
		denied("a/b/" + store + "/config")
		f(store, true, true)
		allowed(store + "x/config")
	}
	denied(".GIT/config")
	allowed(".gitignore")

	for _, d := range []string{".vs", "node_modules", "bin", "obj"} {
		denied(d + "/x")
		denied("a/" + d + "/b/x")
		f(d, true, true)
		allowed(d) // a file of that name
		allowed("a/" + d)
		allowed(d + "x/x")
	}
	allowed("Bin/x")
	for _, file := range []string{".env", ".ENV", ".env.local", ".Env.", "a/.env", "a.pfx", "b/a.P12", "id.key", ".key", "x.PEM", "x.ppk"} {
		denied(file)
		f(file, true, false) // a directory of that name
	}
	for _, file := range []string{".environment", "env", "a.env", "a.keys", "key", "pem", "a.pem/x"} {
		allowed(file)
	}
	allowed("packages/x")
	dotnet = true
	denied("packages/x")
	f("packages", true, true)
	allowed("packages")
	allowed("a/packages/x")

	deny, allow = []string{"src/gen/", "*.sql", "**/secret.txt"}, []string{"bin/keep/", "**/*.pem", "src/gen/ok.go", ".git/config"}
	denied("src/gen/a/b.go")
	denied("src/gen/ok.go") // deny comes before allow
	f("src/gen", true, true)
	allowed("src/gen") // a file of that name
	denied("x.sql")
	allowed("a/x.sql")
	denied("secret.txt")
	denied("a/b/secret.txt")
	allowed("bin/keep/x") // allow comes before the defaults
	denied("bin/x")
	allowed("certs/test.pem")
	denied(".git/config") // allow comes after the stores
	denied("../x.pem")
}

func TestPrune(t *testing.T) {
	f := func(deny, allow []string, dir string, want bool) {
		t.Helper()
		r := relpath.NewRules(deny, allow, true)
		if got := r.Prune(dir); got != want {
			t.Errorf("Prune(%q) = %v with deny %q, allow %q", dir, got, deny, allow)
		}
		if path := dir + "/f"; want && !r.Denied(path, false) {
			t.Errorf("%q is left out of a walk and allowed", path)
		}
	}
	some := []string{"node_modules/x/y.js"}
	f(nil, nil, "src", false)
	f(nil, nil, "a/node_modules", true)
	f(nil, some, "node_modules", false)
	f(nil, some, ".git", true)
	f(nil, nil, "packages", true)
	f(nil, nil, "a/packages", false)
	f([]string{"gen/"}, some, "gen", true)
	f([]string{"gen/"}, some, "gen/deep", true)
	f([]string{"gen/*"}, some, "gen", false)
	f(nil, nil, "..", true)
}
