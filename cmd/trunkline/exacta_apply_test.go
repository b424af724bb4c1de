package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestApplyOfGitDiff pipes the output of git diff into the verb: all files are as git has them.
func TestApplyOfGitDiff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	s := startProjects(t, demo())
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	moved := strings.Repeat("line\n", 20)
	s.write("a dir/grüße x.txt", "1\r\n2\r\n")
	s.write("moved ü.txt", moved+"end")
	s.write("same.txt", strings.Repeat("same\n", 20))
	s.write("gone.txt", "1\n")
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "before")
	s.write("README.md", "# Demo\n\nHi.\n")
	s.write("a dir/grüße x.txt", "1\r\n3\r\n")
	s.write("sub/moved.txt", moved+"end\n")
	s.write("sub/same.txt", strings.Repeat("same\n", 20))
	s.write("new \"q\".txt", "no end")
	s.write("empty", "")
	for _, name := range []string{"moved ü.txt", "same.txt", "gone.txt"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A", ".", ":!.exacta")
	git("commit", "-qm", "after")
	text := git("diff", "-M", "HEAD^", "HEAD")
	if !strings.Contains(text, "rename from") || !strings.Contains(text, `\303\274`) {
		t.Fatalf("not the diff of this test:\n%s", text)
	}
	git("checkout", "-q", "HEAD^")
	apply := func(text string) ran {
		t.Helper()
		return runProjects(t, text, "apply", "-", "--addr", s.addr, "--project", s.dir, "--timeout", waitFor.String())
	}
	got := apply(text)
	wantRun(t, got, 0, "applied, rollback point ", "")
	git("add", "-A", ".", ":!.exacta")
	if left := git("diff", "--cached", "HEAD@{1}"); left != "" {
		t.Errorf("not as git has it:\n%s", left)
	}
	_, point, _ := strings.Cut(strings.TrimSpace(got.stdout), "rollback point ")
	wantRun(t, s.run("close"), 0, "", "")
	wantRun(t, s.rollback(point[:8]), 0, "removed  sub/moved.txt\n", "")
	git("add", "-A", ".", ":!.exacta")
	if left := git("diff", "--cached", "HEAD"); left != "" {
		t.Errorf("not taken back:\n%s", left)
	}
}

// TestApplyExplains: what the protocol refuses is a sentence, with the line of the file that was
// read.
func TestApplyExplains(t *testing.T) {
	s := startProjects(t, demo())
	s.write("run.sh", "x\n")
	if err := os.Chmod(filepath.Join(s.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("ten.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
	head := "diff --git a/README.md b/README.md\nindex 1..2 100644\n--- a/README.md\n+++ b/README.md\n"
	good := head + "@@ -1,3 +1,3 @@\n # Demo\n \n-Hello.\n+Hi.\n"
	f := func(text string, code int, stderr string) {
		t.Helper()
		s.write("x.diff", text)
		wantRun(t, s.run("apply", s.dir+"/x.diff"), code, "", "trunkline: "+strings.ReplaceAll(stderr, "x.diff", s.dir+"/x.diff"))
		if s.read("README.md") != demo()["README.md"] {
			t.Fatal("README.md was changed")
		}
	}
	other := func(path string) string { return strings.ReplaceAll(good, "README.md", path) }
	f("", 50, "VAL-003: x.diff:1: there is no diff (empty: 0 bytes)")
	s.write("three.txt", "a\nb\nc\n")
	f(good+other("three.txt"), 40, "VAL-005: x.diff:12: the file changed since the diff was made: it does not have these lines here (context: three.txt:1)")
	f(good+"diff --git a/ten.txt b/ten.txt\n--- a/ten.txt\n+++ b/ten.txt\n@@ -5 +5 @@\n-5\n+V\n", 50, "VAL-003: x.diff:13: a change needs three unchanged lines around it: make the diff with -U3 (context_lines)")
	f(head+"@@ -1,3 +1,3 @@\n # Demo\n\n-Hello.\n+Hi.\n", 50, "VAL-003: x.diff:7: a line of a hunk begins with a space, + or -; an empty line has lost its space (hunk_line)")
	f(head+"@@ -1,3 +1,3 @@\n # Demo\n \n-Hello.\n+Hi.\n@@ -9,1 +9,1\n", 50, "VAL-003: x.diff:10: the diff is damaged here (hunk_header)")
	f(good+good, 50, "VAL-003: x.diff:12: two diffs are of the same file (duplicate_target: README.md)")
	f(other("../up"), 20, "SEC-001: x.diff:3: the path climbs out of the project (traversal: ../up)")
	f(good+"diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n", 50, "VAL-003: x.diff:11: the mode of a file cannot be set: cut these lines")
	f("diff --git a/run.sh b/r.sh\nsimilarity index 100%\nrename from run.sh\nrename to r.sh\n", 50, "x.diff:1: cannot read the renamed file: run.sh is executable")
	s.write(".env", "KEY=1\n")
	f("diff --git a/.env b/public.txt\nsimilarity index 100%\ncopy from .env\ncopy to public.txt\n", 20,
		"SEC-002: x.diff:1: the file is denied: ")
	f("diff --git a/none b/r\nsimilarity index 100%\nrename from none\nrename to r\n", 50, "x.diff:1: cannot read the renamed file: ")
	f("diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n", 50, "VAL-003: x.diff:3: only text can be changed: leave binary files out (binary_diff)")
	f("diff --cc README.md\nindex 1,2..3\n", 50, "VAL-003: x.diff:1: a combined diff of a merge or a conflict cannot be applied")
	f("--- \"a/x\\q\"\n+++ \"b/x\\q\"\n@@ -1 +1 @@\n-a\n+b\n", 50, "VAL-003: x.diff:1: the quoted path is not as git writes it (quoted_path)")
	f("--- /dev/null\n+++ b/big.txt\n@@ -0,0 +1 @@\n+"+strings.Repeat("x", 300_000)+"\n", 50, "VAL-003: x.diff:1: the diff of a file may have 102400 bytes (too_large: 300044 bytes)")
	f("--- /dev/null\n+++ b/key\n@@ -0,0 +1 @@\n+ghp_abcdefghij0123456789\n", 20, "SEC-003: x.diff:1: the diff has a credential")
	var many strings.Builder
	for i := range 51 {
		many.WriteString(strings.ReplaceAll("diff --git a/F b/F\nnew file mode 100644\nindex 0..1\n", "F", "f"+strings.Repeat("i", i)))
	}
	f(many.String(), 60, "IPC-009: The request payload is invalid: diffs.")
	wantRun(t, runProjects(t, strings.Repeat("x", maxPayload+1), "apply", "-", "--addr", s.addr, "--project", s.dir), 2, "", "it is longer than 8388608 bytes")
}
