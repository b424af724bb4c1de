package relpath_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

// TestCheck has every rule of exacta §4.16 rule 4, and the order among them.
func TestCheck(t *testing.T) {
	f := func(path, code, token string) {
		t.Helper()
		gotCode, gotToken := relpath.Check(path)
		if gotCode != code || gotToken != token {
			t.Errorf("Check(%q) = %q, %q; want %q, %q", path, gotCode, gotToken, code, token)
		}
		if relpath.Valid(path) != (code == "") {
			t.Errorf("Valid(%q) = %v", path, relpath.Valid(path))
		}
		if code != "" && errcode.Lookup(code) == nil {
			t.Errorf("%s is no code of the registry", code)
		}
	}
	deep := strings.Repeat("d/", relpath.MaxComponents-1)
	long := strings.Repeat("n", relpath.MaxBytes)

	for _, path := range []string{
		"README.md", "src/user.go", "a", "...", "..a", "a..", ".env", "with space/ü.txt", "a:b", "1:/x",
		deep + "f", long, "$(x);'\"",
	} {
		if path == "a:b" {
			f(path, "FS-003", relpath.Absolute) // a drive, as far as Windows is concerned
			continue
		}
		f(path, "", "")
	}
	for _, path := range []string{"..", "../x", "a/../b", "a/..", `..\x`, `a\..`, "/../x", `C:\..\x`, "//..", "..//", "..\x00/.."} {
		f(path, "SEC-001", relpath.Traversal)
	}
	for _, path := range []string{"/", "/x", "//x", `\`, `a\b`, `\\host\share`, "C:/x", "z:", "c:x", "/\x01", "/./x"} {
		f(path, "FS-003", relpath.Absolute)
	}
	for _, path := range []string{
		"", ".", "./x", "a/.", "a/./b", "a//b", "a/", "a\tb", "a\x00", "\x7f", "a\u0085b", "bad\xff",
		deep + "f/g", long + "n",
	} {
		f(path, "VAL-003", relpath.Form)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a/b", "../x", `a\..\b`, "/x", "c:x", "", "a//b", "a/./b", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		code, token := relpath.Check(path)
		if (code == "") != (token == "") {
			t.Fatalf("Check(%q) = %q, %q", path, code, token)
		}
		if code != "" {
			return
		}
		if len(path) > relpath.MaxBytes || !utf8.ValidString(path) || strings.ContainsAny(path, "\\\x00\n") {
			t.Fatalf("%q is accepted", path)
		}
		parts := strings.Split(path, "/")
		for _, c := range parts {
			if c == "" || c == "." || c == ".." {
				t.Fatalf("%q is accepted with component %q", path, c)
			}
		}
		if len(parts) > relpath.MaxComponents {
			t.Fatalf("%q is accepted with %d components", path, len(parts))
		}
	})
}
