package diff_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/relpath"
)

// FuzzParse parses any text and applies it to any content. What is accepted has a safe path, and
// the change that it makes can be made again by a diff of the server.
func FuzzParse(f *testing.F) {
	mark := `\ No newline at end of file` + "\n"
	for _, seed := range [][2]string{
		{head + "@@ -1 +1 @@\n-a\n+b\n", "a\n"},
		{head + "@@ -1,2 +1,2 @@\n-a\n+b\n c\n" + mark, "a\nc"},
		{head + "@@ -1,4 +1,5 @@\n+0\n 1\n 2\n 3\n 4\n@@ -5,4 +6,4 @@\n 5\n 6\n 7\n-8\n+x\n", "1\n2\n3\n4\n5\n6\n7\n8\n"},
		{"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", ""},
		{"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "a\n"},
		{"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", ""},
		{diff.NoChanges, "a"},
		{"--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n", ""},
		{"diff --git a/f b/f\n", ""},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		p, bad := diff.Parse(text)
		if bad != nil {
			if p != nil || bad.Code == "" || bad.Token == "" || len(bad.Text) > 2*relpath.MaxBytes+20 {
				t.Fatalf("%q: %+v, %+v", text, p, bad)
			}
			return
		}
		old := append([]byte{}, content...)
		if p.Op == diff.Create {
			old = nil
		}
		if p.Op != diff.None && !relpath.Valid(p.Path) {
			t.Fatalf("%q has path %q", text, p.Path)
		}
		before := bytes.Clone(old)
		got, bad := p.Apply(old)
		if !bytes.Equal(before, old) {
			t.Fatalf("%q changed its input", text)
		}
		if bad != nil {
			if got != nil || bad.Code == "" || bad.Token == "" {
				t.Fatalf("%q of %q: %q, %+v", text, old, got, bad)
			}
			return
		}
		if p.Op == diff.None || !utf8.Valid(got) || len(old)+len(got) > 10000 {
			return
		}
		if strings.Contains(string(old)+string(got), "\x1b[") || bytes.IndexByte(old, 0) >= 0 {
			return // a diff of it breaks rule 1
		}
		roundTrip(t, old, got)
	})
}

// FuzzMake makes a diff of any two contents and applies it.
func FuzzMake(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte("a\nc"), false, false)
	f.Add([]byte(""), []byte("\ufeffa\r\n"), false, false)
	f.Add([]byte("a\n"), []byte(""), false, true)
	f.Add([]byte(""), []byte("a"), true, false)
	f.Fuzz(func(t *testing.T, old, new []byte, create, remove bool) {
		old, new = append([]byte{}, old...), append([]byte{}, new...)
		if create {
			old = nil
		}
		if remove {
			new = nil
		}
		if len(old)+len(new) > 10000 || bytes.Contains(old, []byte("\x1b[")) || bytes.Contains(new, []byte("\x1b[")) ||
			bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 || !utf8.Valid(old) {
			return
		}
		roundTrip(t, old, new)
	})
}
