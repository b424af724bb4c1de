package diff_test

import (
	"strconv"
	"strings"
	"testing"

	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

const head = "--- a/f\n+++ b/f\n"

// TestEveryToken has rows for each token of exacta §4.16 rules 1 to 5, and for pairs of them that
// one diff breaks: the earlier one is answered.
func TestEveryToken(t *testing.T) {
	f := func(text, code, token string) {
		t.Helper()
		p, bad := diff.Parse(text)
		if bad == nil {
			t.Errorf("%q is accepted: %+v", text, p)
			return
		}
		if bad.Code != code || bad.Token != token {
			t.Errorf("%.200q: %v; want %s %s", text, bad, code, token)
		}
		if errcode.Lookup(bad.Code) == nil {
			t.Errorf("%s is no code of the registry", bad.Code)
		}
	}
	val := func(text, token string) { t.Helper(); f(text, "VAL-003", token) }

	// 1
	val(strings.Repeat("x", diff.MaxBytes+1), "too_large")
	val(strings.Repeat("\x00", diff.MaxBytes+1), "too_large")
	val("", "empty")
	val(head+"@@ -1 +1 @@\n-a\n+\x00\n", "nul")
	val("\x00\x1b[```", "nul")
	val(head+"@@ -1 +1 @@\n-a\n+\x1b[0m\n", "ansi")
	val("```diff\n\x1b[", "ansi")
	val("```diff\n"+head+"@@ -1 +1 @@\n-a\n+b\n```\n", "fence")
	val(head+"@@ -1 +1 @@\n-a\n+b\n```\n", "fence")
	val(head+"@@ -1 +1 @@\n-a\n```", "fence")
	val(head+"@@ -1 +1 @@\n-a\n+b", "trailing_newline")
	val("diff --git a/f b/f", "trailing_newline")
	val(diff.NoChanges+"\n", "header")
	val(" "+diff.NoChanges, "trailing_newline")

	// 2
	for _, start := range []string{"diff --git a/f b/f", "diff --combined f", "diff --cc f", "Index: f", "index 1..2", "GIT binary patch", "Binary files a and b differ", "@@@ -1 -1 +1 @@@"} {
		val(start+"\n"+head, "git_header")
	}
	val("*** a/f\n--- b/f\n", "context_diff")
	val("\n"+head, "header")
	val("--- a/f\n", "header")
	val("--- a/f\n--- a/f\n+++ b/f\n", "header")
	val("+++ b/f\n--- a/f\n", "header")
	val("---a/f\n+++b/f\n", "header")
	val("Hello\n"+head, "header")

	// 3
	val("--- /dev/null\n+++ /dev/null\n", "header")
	val("--- f\n+++ b/f\n", "header")
	val("--- a/f\n+++ f\n", "header")
	val("--- b/f\n+++ a/f\n", "header")
	val("--- /dev/null\n+++ f\n", "header")
	f("--- ../x\n+++ b/x\n", "SEC-001", "traversal")
	f("--- a/x\n+++ ../x\n", "SEC-001", "traversal")
	f("--- /x\n+++ /x\n", "FS-003", "absolute")
	f("--- C:\\x\n+++ C:\\x\n", "FS-003", "absolute")
	val("--- \n+++ b/x\n", "path_form")
	val("--- a/f\n+++ b/g\n@@ bad\n", "rename")
	val("--- a/../f\n+++ b/f\n", "rename")

	// 4
	f("--- a/../x\n+++ b/../x\n@@ bad\n", "SEC-001", "traversal")
	f("--- a/d/..\\x\n+++ b/d/..\\x\n", "SEC-001", "traversal")
	f("--- /dev/null\n+++ b/../x\n", "SEC-001", "traversal")
	f("--- a//x\n+++ b//x\n", "FS-003", "absolute")
	f("--- a/d\\x\n+++ /dev/null\n", "FS-003", "absolute")
	f("--- a/c:/x\n+++ b/c:/x\n", "FS-003", "absolute")
	val("--- a/\n+++ b/\n", "path_form")
	val("--- a/./x\n+++ b/./x\n", "path_form")
	val("--- a/x\r\n+++ b/x\r\n", "path_form")
	val("--- a/"+strings.Repeat("d/", 20)+"x\n+++ b/"+strings.Repeat("d/", 20)+"x\n", "path_form")
	long := strings.Repeat("ü", relpath.MaxBytes/2) + "x"
	val("--- a/"+long+"\n+++ b/"+long+"\n", "path_form")
}

// TestEveryTokenOfHunks continues TestEveryToken with rule 5.
func TestEveryTokenOfHunks(t *testing.T) {
	f := func(text, token string) {
		t.Helper()
		p, bad := diff.Parse(text)
		if bad == nil {
			t.Errorf("%q is accepted: %+v", text, p)
		} else if bad.Code != "VAL-003" || bad.Token != token || !strings.HasPrefix(bad.Text, "line ") {
			t.Errorf("%q: %v; want %s", text, bad, token)
		}
	}
	for _, header := range []string{
		"@@", "@@ -1 +1", "@@ -1 +1@@", "@@ -1 +1 @@x", "@@ -1 1 @@", "@@ -a +1 @@", "@@ -1, +1 @@", "@@ -1,1, +1 @@",
		"@@ +1 -1 @@", "@@  -1 +1 @@", "@@ -1 +1 @@\r", "@@ --1 +1 @@", "@@ -1234567890123456 +1 @@", "", "hello", "+x", `\ No newline at end of file`,
	} {
		f(head+header+"\n-a\n+b\n", "hunk_header")
	}
	f(head+"@@ -1 +1 @@\n-a\n+b\nhello\n", "hunk_header")
	f(head+"@@ -1 +1 @@\n-a\n+b\n\n", "hunk_header")
	f(head+"@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "multi_file")
	f(head+head, "multi_file")
	f(head+"@@ -1,2 +1,2 @@\n-a\nb\n+b\n", "hunk_line")
	f(head+"@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "hunk_line")
	f(head+"@@ -1,2 +1,2 @@\n-a\n\\ no newline\n+b\n", "hunk_line")
	f(head+"@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\r\n+b\n", "hunk_line")
	f(head+"@@ -1,2 +1,2 @@\n-a\n+b\n", "hunk_count")
	f(head+"@@ -1 +1,2 @@\n-a\n--- b\n+++ b\n", "hunk_count")
	f(head+"@@ -1 +1 @@\n-a\n+b\n+c\n", "hunk_count")
	f(head+"@@ -1 +1 @@\n-a\n+b\n--- a\n", "hunk_count")
	f(head+"@@ -1,2 +1,2 @@\n-a\n+b\n@@ -9 +9 @@\n-x\n+y\n", "hunk_count")
	f(head+"@@ -1 +1 @@\n a\n", "hunk_empty")
	f(head+"@@ -1,0 +1,0 @@\n", "hunk_empty")
	f(head+"@@ -1 +1 @@\n a\n@@ bad\n", "hunk_header") // before the empty hunk
	f(head, "no_hunks")

	create, remove := "--- /dev/null\n+++ b/f\n", "--- a/f\n+++ /dev/null\n"
	f(create+"@@ -1,0 +1,1 @@\n+a\n", "create_shape")
	f(create+"@@ -0,1 +1,1 @@\n-a\n+b\n", "create_shape")
	f(create+"@@ -1 +1,2 @@\n a\n+b\n", "create_shape")
	f(create+"@@ -0,0 +1,1 @@\n+a\n@@ -0,0 +2,1 @@\n+b\n", "create_shape")
	f(remove+"@@ -1,1 +1,0 @@\n-a\n", "delete_shape")
	f(remove+"@@ -1,2 +1,1 @@\n-a\n b\n", "delete_shape")
	f(remove+"@@ -1,1 +0,0 @@\n-a\n@@ -2,1 +0,0 @@\n-b\n", "delete_shape")
	f(head+"@@ -5 +5 @@\n-a\n+b\n@@ -5 +5 @@\n-a\n+b\n", "hunk_order")
	f(head+"@@ -5 +5 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n", "hunk_order")
	f(head+"@@ -5,2 +6,2 @@\n-a\n b\n+b\n@@ -6 +6 @@\n-a\n+b\n", "hunk_order") // before the position
	f(head+"@@ -5 +6 @@\n-a\n+b\n", "hunk_position")
	f(head+"@@ -1 +1,2 @@\n-a\n+b\n+c\n@@ -9 +9 @@\n-a\n+b\n", "hunk_position")
	f(head+"@@ -0 +0 @@\n-a\n+b\n", "hunk_position")
	f(head+"@@ -5,0 +5,1 @@\n+b\n", "hunk_position")
	f(create+"@@ -0,0 +2,1 @@\n+a\n", "hunk_position")
	f(remove+"@@ -2,1 +0,0 @@\n-a\n", "hunk_position")

	mark := `\ No newline at end of file` + "\n"
	f(head+"@@ -1,2 +1,1 @@\n-a\n"+mark+"-b\n+c\n", "no_newline_marker")
	f(head+"@@ -1,1 +1,2 @@\n-a\n+b\n"+mark+"+c\n", "no_newline_marker")
	f(head+"@@ -1,2 +1,2 @@\n-a\n+b\n"+mark+" c\n", "no_newline_marker")
	f(head+"@@ -1,1 +1,2 @@\n a\n"+mark+"+c\n", "no_newline_marker")
	f(head+"@@ -1 +1 @@\n"+mark+"-a\n+c\n", "no_newline_marker")
	f(head+"@@ -1 +1 @@\n-a\n"+mark+mark+"+c\n", "no_newline_marker")
	f(head+"@@ -1 +1 @@\n-a\n+c\n"+mark+mark, "no_newline_marker")
	f(head+"@@ -1 +1 @@\n-a\n+b\n"+mark+"@@ -9 +9 @@\n-a\n+b\n", "no_newline_marker")
	f(head+"@@ -1 +1 @@\n-a\n"+mark+"+b\n@@ -9 +9 @@\n-a\n+b\n", "no_newline_marker")
}

func TestAccepted(t *testing.T) {
	f := func(text string, op diff.Op, path string, lines int) {
		t.Helper()
		p, bad := diff.Parse(text)
		if bad != nil {
			t.Errorf("%q: %v", text, bad)
		} else if p.Op != op || p.Path != path || p.Lines != lines {
			t.Errorf("%q: %v %q of %d lines", text, p.Op, p.Path, p.Lines)
		}
	}
	mark := `\ No newline at end of file` + "\n"
	f(diff.NoChanges, diff.None, "", 1)
	f("--- a/f\t2026-01-01\n+++ b/f\twhen\n@@ -1 +1 @@ func x()\n-a\n+b\n", diff.Modify, "f", 5)
	f("--- /dev/null\t1970\n+++ b/d/f\n", diff.Create, "d/f", 2)
	f("--- a/a/f\n+++ /dev/null\t1970\n", diff.Delete, "a/f", 2)
	f("--- a/dev/null\n+++ b/dev/null\n@@ -1 +1 @@\n-a\n+b\n", diff.Modify, "dev/null", 5)
	f("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", diff.Create, "f", 4)
	f("--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"+mark, diff.Delete, "f", 6)
	f(head+"@@ -1 +1 @@\n-a\n"+mark+"+b\n"+mark, diff.Modify, "f", 7)
	f(head+"@@ -1,2 +1,1 @@\n--- x\n-y\n+++ x\n", diff.Modify, "f", 6) // by count
	f(head+"@@ -1,1 +1,1 @@\n-```\n+x\n", diff.Modify, "f", 5)         // not at the start of a line
	f(head+"@@ -1 +1 @@\n-a\r\n+b\r\n", diff.Modify, "f", 5)
	f(head+"@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n", diff.Modify, "f", 8)
	f("--- a/sp ace/ü\n+++ b/sp ace/ü\n@@ -01,1 +1 @@\n-a\n+b\n", diff.Modify, "sp ace/ü", 5)

	room := diff.MaxBytes - len(head+"@@ -1 +1 @@\n-a\n+\n")
	f(head+"@@ -1 +1 @@\n-a\n+"+strings.Repeat("x", room)+"\n", diff.Modify, "f", 5)
}

// TestFault has the detail of example E8 (exacta §9) and the values of messages.
func TestFault(t *testing.T) {
	f := func(text, prefix, message, detail string) {
		t.Helper()
		_, bad := diff.Parse(text)
		if bad == nil {
			t.Fatalf("%q is accepted", text)
		}
		got := bad.Fault(prefix)
		if got.Message() != message || got.Detail != detail {
			t.Errorf("%q: %q, %q; want %q, %q", text, got.Message(), got.Detail, message, detail)
		}
	}
	f("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "diffs[0] ",
		"A path that climbs out of its directory was blocked.", "diffs[0] traversal: ../x")
	f("--- /etc/x\n+++ b/x\n", "", "The path is outside the project: /etc/x.", "absolute: /etc/x")
	f(head+"@@ -1 +1 @@\n-a\n", "diffs[7] ", "The change set is not an acceptable unified diff.", "diffs[7] hunk_count: line 3")

	_, bad := diff.Parse("--- a/../" + strings.Repeat("ü", 5000) + "\n+++ b/x\n")
	if bad == nil || bad.Token != "rename" || len(bad.Text) > relpath.MaxBytes+20 {
		t.Errorf("a long path is shown whole: %d bytes", len(bad.Text))
	}
}

// TestLargeDiff has as many lines and hunks as fit: checks take time in proportion to their sum.
func TestLargeDiff(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for n := 1; b.Len() < diff.MaxBytes-40; n++ {
		at := strconv.Itoa(n)
		b.WriteString("@@ -" + at + " +" + at + " @@\n-a\n+b\n")
	}
	p, bad := diff.Parse(b.String())
	if bad != nil {
		t.Fatal(bad)
	}
	if _, bad := p.Apply([]byte(strings.Repeat("a\n", 9000))); bad == nil || bad.Token != "context_lines" {
		t.Fatal(bad)
	}
}
