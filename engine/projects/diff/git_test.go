package diff_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"trunkline/engine/projects/diff"
	"trunkline/fuzz/rounds"
)

// applyByGit applies a diff of the file f to a content, nil for none, and returns the content
// after, nil for none.
func applyByGit(t *testing.T, text string, old []byte) (out []byte, failed string) {
	t.Helper()
	dir := t.TempDir()
	if old != nil {
		if err := os.WriteFile(filepath.Join(dir, "f"), old, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, string(text) + err.Error()
	}
	out, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil {
		return nil, ""
	}
	return append([]byte{}, out...), ""
}

// TestMadeDiffsByGit makes diffs between random texts of few different lines, which is where edits
// meet, and applies them by git.
func TestMadeDiffsByGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := rand.New(rand.NewPCG(1, 2))
	lines := []string{"a\n", "b\n", "c\n", "\n", "a\r\n", "-a\n", "+b\n", "\\ x\n", " \n", "@@ -1 +1 @@\n", "--- a/f\n"}
	text := func() []byte {
		out := []byte{}
		for range r.IntN(25) {
			out = append(out, lines[r.IntN(len(lines))]...)
		}
		if r.IntN(3) == 0 {
			out = append(out, "end"...)
		}
		return out
	}
	for range rounds.Of(30, 100) {
		old, new := text(), text()
		if r.IntN(2) == 0 { // a small change
			at := r.IntN(len(old) + 1)
			new = append(append(append([]byte{}, old[:at]...), lines[r.IntN(len(lines))]...), old[at:]...)
		}
		if bytes.Equal(old, new) {
			continue
		}
		made := diff.Make("f", old, new)
		p, bad := diff.Parse(made)
		if bad != nil {
			t.Fatalf("%q: %+v", made, bad)
		}
		mine, bad := p.Apply(old)
		got, failed := applyByGit(t, made, old)
		if bad != nil || failed != "" || !bytes.Equal(got, new) || !bytes.Equal(mine, new) {
			t.Fatalf("%q from %q to %q: %q %+v, git %q %s", made, old, new, mine, bad, got, failed)
		}
	}
}

// FuzzGit applies what the server accepts and what it makes by git too: the contents are the same.
func FuzzGit(f *testing.F) {
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip("git is not installed")
	}
	mark := `\ No newline at end of file` + "\n"
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", []byte("a\n"), []byte("b\n"))
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"+mark, []byte("a\nc"), []byte("a\r\nc\r\n"))
	f.Add("--- a/f\n+++ b/f\n@@ -1,4 +1,5 @@\n+0\n 1\n 2\n 3\n 4\n@@ -5,4 +6,4 @@ x\n 5\n 6\n 7\n-8\n+x\n", []byte("1\n2\n3\n4\n5\n6\n7\n8\n"), []byte("1\n\n\n4\n5\n6 \n7\n8"))
	f.Add("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", []byte(nil), []byte("a"))
	f.Add("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", []byte("a\n"), []byte(nil))
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n"+mark, []byte("a\n"), []byte(" \n+\n-\n@@ -1 +1 @@\n\\\n"))
	f.Fuzz(func(t *testing.T, text string, old, new []byte) {
		if len(old)+len(new)+len(text) > 4000 {
			return
		}
		if p, bad := diff.Parse(text); bad == nil && p.Op != diff.None && p.Path == "f" && strings.Contains(text, "\n@@ ") && !strings.Contains(text[:strings.Index(text, "\n@@ ")], "\t") {
			content := append([]byte{}, old...)
			if p.Op == diff.Create {
				content = nil
			}
			if want, bad := p.Apply(content); bad == nil {
				got, failed := applyByGit(t, text, content)
				if failed != "" || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
					t.Fatalf("%q of %q: %q, git %q %s", text, content, want, got, failed)
				}
			}
		}
		if bytes.Equal(old, new) || !utf8.Valid(old) || !utf8.Valid(new) || bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
			return
		}
		old, new = append([]byte{}, old...), append([]byte{}, new...)
		if made := diff.Make("f", old, new); len(made) > 0 {
			if got, failed := applyByGit(t, made, old); failed != "" || !bytes.Equal(got, new) || got == nil {
				t.Fatalf("%q from %q to %q: git %q %s", made, old, new, got, failed)
			}
		}
	})
}
