package diff_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/projects/diff"
	"trunkline/fuzz/rounds"
)

func TestMake(t *testing.T) {
	f := func(old, new []byte, want string) {
		t.Helper()
		if got := diff.Make("d/f", old, new); got != want {
			t.Errorf("Make(%q, %q):\n%s\nwant:\n%s", old, new, got, want)
		}
	}
	b := func(s string) []byte { return []byte(s) }
	mark := `\ No newline at end of file` + "\n"
	both := "--- a/d/f\n+++ b/d/f\n"
	f(nil, b(""), "--- /dev/null\n+++ b/d/f\n")
	f(b(""), nil, "--- a/d/f\n+++ /dev/null\n")
	f(nil, b("a\nb"), "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"+mark)
	f(b("a\n"), nil, "--- a/d/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n")
	f(b("a\n"), b("a\n"), diff.NoChanges)
	f(nil, nil, diff.NoChanges)
	f(b(""), b("a\n"), both+"@@ -0,0 +1,1 @@\n+a\n")
	f(b("a\n"), b(""), both+"@@ -1,1 +0,0 @@\n-a\n")
	f(b("a"), b("a\n"), both+"@@ -1,1 +1,1 @@\n-a\n"+mark+"+a\n")
	f(b("1\n2\n"), b("3\n4\n"), both+"@@ -1,2 +1,2 @@\n-1\n-2\n+3\n+4\n")
	f(b("1\n2\n3\n4\n5"), b("0\n1\n2\n3\n4\n5"), both+"@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n")
	// Six lines between two changes join their hunks, seven do not.
	f(b("a\n1\n2\n3\n4\n5\n6\nb\n"), b("A\n1\n2\n3\n4\n5\n6\nB\n"),
		both+"@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n")
	f(b("a\n1\n2\n3\n4\n5\n6\n7\nb\n"), b("A\nA\n1\n2\n3\n4\n5\n6\n7\nB\n"),
		both+"@@ -1,4 +1,5 @@\n-a\n+A\n+A\n 1\n 2\n 3\n@@ -6,4 +7,4 @@\n 5\n 6\n 7\n-b\n+B\n")
}

// content draws lines of few kinds, so that two texts share many of them.
func content(t *rapid.T, name string) []byte {
	if rapid.IntRange(0, 9).Draw(t, name+" exists") == 0 {
		return nil
	}
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "a\r\n", "\r\n", " a\n", "a \n", "-- x\n", "++ x\n", "\\ No newline at end of file\n", "@@ -1 +1 @@\n", "ü\n", "```\n", "\r\r\n"})
	lines := rapid.SliceOfN(line, 0, 40).Draw(t, name)
	text := strings.Join(lines, "")
	switch rapid.IntRange(0, 5).Draw(t, name+" form") {
	case 0:
		text = "\ufeff" + text
	case 1:
		text = strings.TrimSuffix(text, "\n")
	case 2:
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return append([]byte{}, text...)
}

// edited draws a text that differs from old in few places.
func edited(t *rapid.T, old []byte) []byte {
	if old == nil || rapid.IntRange(0, 4).Draw(t, "unrelated") == 0 {
		return content(t, "new")
	}
	lines := strings.SplitAfter(string(old), "\n")
	for range rapid.IntRange(0, 4).Draw(t, "edits") {
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		lines[i] = rapid.SampledFrom([]string{"", "x\n", "x\ny\n", lines[i] + lines[i], "x"}).Draw(t, "edit")
	}
	return append([]byte{}, strings.Join(lines, "")...)
}

// TestMakeParseApply has the property of exacta §4.16: a diff that the server makes passes its own
// checks, and applied to the old content it gives the new one.
func TestMakeParseApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := content(t, "old")
		roundTrip(t, old, edited(t, old))
	})
}

// failer is a test, a property or a fuzz target.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func roundTrip(t failer, old, new []byte) {
	t.Helper()
	text := diff.Make("d/f", old, new)
	if again := diff.Make("d/f", old, new); again != text {
		t.Fatalf("two diffs of the same contents:\n%s\n%s", text, again)
	}
	p, bad := diff.Parse(text)
	if bad != nil {
		t.Fatalf("%q → %q: %v of\n%s", old, new, bad, text)
	}
	got, bad := p.Apply(old)
	if bad != nil {
		t.Fatalf("%q → %q: %v of\n%s", old, new, bad, text)
	}
	if !bytes.Equal(got, new) || (got == nil) != (new == nil) {
		t.Fatalf("%q → %q: got %q by\n%s", old, new, got, text)
	}
}

// TestMakeOfLargeTexts has texts without a common line, and more edits than a minimal script is
// searched for.
func TestMakeOfLargeTexts(t *testing.T) {
	lines := func(n int, of func(i int) string) []byte {
		var b strings.Builder
		for i := range n {
			b.WriteString(of(i))
		}
		return []byte(b.String())
	}
	same := func(s string) func(int) string { return func(int) string { return s } }
	third := func(a, b string) func(int) string {
		return func(i int) string {
			if i%3 == 0 {
				return a
			}
			return b
		}
	}
	roundTrip(t, lines(9000, same("a\n")), lines(9000, same("b\n")))
	roundTrip(t, lines(5000, third("a\n", "b\n")), lines(5000, third("b\n", "a\n")))
	roundTrip(t, lines(5000, third("a\n", "b\n")), lines(4000, third("c\n", "b\n")))
}

// TestAgainstGit applies diffs of ours by git, and diffs of git by ours.
func TestAgainstGit(t *testing.T) {
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	g := git{path: path, dir: t.TempDir()}
	left := rounds.Of(5, 30)
	rapid.Check(t, func(rt *rapid.T) {
		if left--; left < 0 {
			return
		}
		old := content(rt, "old")
		new := edited(rt, old)
		g.applies(rt, old, new)
		g.makes(rt, old, new)
	})
}

// git runs git in a directory that is no repository.
type git struct{ path, dir string }

func (g git) run(stdin string, args ...string) (string, error) {
	cmd := exec.Command(g.path, append([]string{"-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(g.dir, "none"), "GIT_CEILING_DIRECTORIES="+g.dir,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// write writes a file, or removes it for nil, and returns the name that git diff wants for it.
func (g git) write(t failer, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(g.dir, name)
	if content == nil {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatalf("%v", err)
		}
		return os.DevNull
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	return name
}

// makes applies what git diff makes of two contents, under the header of ours.
func (g git) makes(t failer, old, new []byte) {
	t.Helper()
	ours := diff.Make("f", old, new)
	if ours == diff.NoChanges {
		return
	}
	from, to := g.write(t, "old", old), g.write(t, "new", new)
	out, err := g.run("", "diff", "--no-index", "--no-ext-diff", "--no-color", "--text", "-U3", "--inter-hunk-context=0", from, to)
	if code := (*exec.ExitError)(nil); !errors.As(err, &code) || code.ExitCode() != 1 {
		t.Fatalf("git diff: %v\n%s", err, out)
	}
	lines := strings.SplitAfter(ours, "\n")
	text := lines[0] + lines[1]
	if i := strings.Index(out, "\n@@ "); i >= 0 {
		text += out[i+1:]
	}
	p, bad := diff.Parse(text)
	if bad != nil {
		t.Fatalf("%v of\n%s", bad, text)
	}
	got, bad := p.Apply(old)
	if bad != nil || !bytes.Equal(got, new) {
		t.Fatalf("%q, %v, not %q, by\n%s", got, bad, new, text)
	}
}

// applies applies a diff of ours by git.
func (g git) applies(t failer, old, new []byte) {
	t.Helper()
	text := diff.Make("f", old, new)
	if text == diff.NoChanges || strings.Count(text, "\n") == 2 {
		return // git knows neither: an empty file has no hunk, and needs a header of git
	}
	g.write(t, "f", old)
	if out, err := g.run(text, "apply", "--whitespace=nowarn", "-"); err != nil {
		t.Fatalf("git refuses %q → %q by\n%s: %v\n%s", old, new, text, err, out)
	}
	got, err := os.ReadFile(filepath.Join(g.dir, "f"))
	if os.IsNotExist(err) && new == nil {
		return
	}
	if err != nil || !bytes.Equal(got, new) {
		t.Fatalf("git makes %q, not %q: %v, by\n%s", got, new, err, text)
	}
}
