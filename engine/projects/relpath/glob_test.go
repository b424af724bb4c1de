package relpath

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGlob(t *testing.T) {
	f := func(pattern, path string, want bool) {
		t.Helper()
		if got := anyMatches(compile([]string{pattern}), path, false); got != want {
			t.Errorf("%q fits %q: %v", pattern, path, got)
		}
	}
	f("a", "a", true)
	f("a", "b", false)
	f("a", "x/a", false) // relative to the root
	f("/a", "a", true)
	f("a", "a/b", false)
	f("a/", "a/b", true)
	f("a/", "a", false)
	f("a/", "ab/c", false)
	f("a/", "x/a/b", false)
	f("**/a/", "x/a/b", true)
	f("**/a/", "a/b", true)
	f("*", "a", true)
	f("*", "a/b", false)
	f("*/b", "a/b", true)
	f("*/b", "a/x/b", false)
	f("a*c", "ac", true)
	f("a*c", "abbc", true)
	f("a*c", "ab/c", false)
	f("a*b*c", "aXbYbZc", true)
	f("**", "a/b/c", true)
	f("a/**", "a/b/c", true)
	f("a/**", "a", false)
	f("a/**/b", "a/b", true)
	f("a/**/b", "a/x/y/b", true)
	f("a/**/b", "a/xb", false)
	f("**/b", "b", true)
	f("**/b", "x/y/b", true)
	f("**/b", "xb", false)
	f("a**b", "a/x/b", true)
	f("x**/b", "xy/z/b", true)
	f("x**/b", "xb", false)
	f("**/*.go", "a/b.go", true)
	f("**/**/b", "b", true)
	f("[a]?", "[a]?", true) // literal
	f("[a]?", "ax", false)
	f("A", "a", false)
	f("", "a", false)
	f("/", "a", false)
	f("ü*", "üx", true)
	f(strings.Repeat("*a", 300), strings.Repeat("ba", 300), true)
	f(strings.Repeat("**a", 300), strings.Repeat("a", 299), false)
}

// model is a second reading of the glob rules: by the regular expressions of Go.
func model(pattern, path string, dir bool) bool {
	pattern = strings.TrimPrefix(pattern, "/")
	trimmed := strings.TrimSuffix(pattern, "/")
	if trimmed == "" {
		return false
	}
	quoted := regexp.QuoteMeta(trimmed)
	re := "/" + strings.ReplaceAll(quoted, `\*`, "*")
	re = strings.ReplaceAll(re, "/**/", "/\x01") // once for each pair of slashes, so twice
	re = strings.ReplaceAll(re, "\x01**/", "\x01\x01")
	re = strings.ReplaceAll(re, "**", "\x02")
	re = strings.ReplaceAll(re, "*", "[^/]*")
	re = strings.ReplaceAll(re, "\x01", "(?:.*/)?")
	re = strings.ReplaceAll(re, "\x02", ".*")
	if trimmed != pattern {
		if dir {
			re += "(?:/.*)?"
		} else {
			re += "/.*"
		}
	}
	return regexp.MustCompile(`(?s)\A` + re + `\z`).MatchString("/" + path)
}

func TestGlobAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`/?(\*\*/|\*\*|\*|[ab]|/a|/b|/\*){0,8}/?`).Draw(t, "pattern")
		path := rapid.StringMatching(`[ab]{1,2}(/[ab]{1,2}){0,4}`).Draw(t, "path")
		dir := rapid.Bool().Draw(t, "dir")
		if strings.Contains(pattern, "***") {
			t.Skip("stars in a row have no one reading")
		}
		if got := anyMatches(compile([]string{pattern}), path, dir); got != model(pattern, path, dir) {
			t.Fatalf("%q fits %q (%v): %v", pattern, path, dir, got)
		}
	})
}

func FuzzRules(f *testing.F) {
	f.Add("a/**/b", "*.go", "a/x/b", true)
	f.Add("**/", "bin/", "bin/x", false)
	f.Add("*a*b**c/", "**", ".git/x", false)
	f.Fuzz(func(t *testing.T, deny, allow, path string, dotnet bool) {
		r := NewRules([]string{deny}, []string{allow}, dotnet)
		denied := r.Denied(path, false)
		if code, _ := Check(path); code != "" && !denied {
			t.Fatalf("unsafe %q is allowed", path)
		}
		for dir := path; strings.Contains(dir, "/"); {
			dir = dir[:strings.LastIndexByte(dir, '/')]
			if r.Prune(dir) && !denied {
				t.Fatalf("%q is allowed and left out of a walk at %q", path, dir)
			}
		}
	})
}
