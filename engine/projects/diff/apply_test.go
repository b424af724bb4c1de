package diff_test

import (
	"bytes"
	"strings"
	"testing"

	"trunkline/engine/projects/diff"
)

func parse(t *testing.T, text string) *diff.Patch {
	t.Helper()
	p, bad := diff.Parse(text)
	if bad != nil {
		t.Fatalf("%q: %v", text, bad)
	}
	return p
}

// TestExamples has the diffs of examples E3 and E7 (exacta §9).
func TestExamples(t *testing.T) {
	f := func(text, old, want string) {
		t.Helper()
		got, bad := parse(t, text).Apply([]byte(old))
		if bad != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", text, got, bad, want)
		}
	}
	e3 := "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,4 @@\n # Demo\n \n Hello.\n+Bye.\n"
	f(e3, "# Demo\n\nHello.\n", "# Demo\n\nHello.\nBye.\n")
	f("--- a/README.md\n+++ b/README.md\n@@ -1,4 +1,4 @@\n # Demo\n \n-Hello.\n+Hi.\n Bye.\n",
		"# Demo\n\nHello.\nBye.\n", "# Demo\n\nHi.\nBye.\n")
	if got := diff.Make("README.md", []byte("# Demo\n\nHello.\n"), []byte("# Demo\n\nHello.\nBye.\n")); got != e3 {
		t.Errorf("Make: %q; want %q", got, e3)
	}
	if len(e3) != 72 { // estimated_tokens of E3
		t.Errorf("E3 has %d bytes", len(e3))
	}
}

// TestApply has what keeps bytes and what rule 7 of exacta §4.16 refuses.
func TestApply(t *testing.T) {
	create, remove := "--- /dev/null\n+++ b/f\n", "--- a/f\n+++ /dev/null\n"
	mark := `\ No newline at end of file` + "\n"
	f := func(text, old, want string) {
		t.Helper()
		before := []byte(old)
		got, bad := parse(t, text).Apply(before)
		if bad != nil || string(got) != want || got == nil {
			t.Errorf("%q of %q: %q, %v; want %q", text, old, got, bad, want)
		}
		if string(before) != old {
			t.Errorf("%q changed its input to %q", text, before)
		}
	}
	f(head+"@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "a\nb\n", "x\nb\n")
	f(head+"@@ -1 +1 @@\n-a\n"+mark+"+a\n", "a", "a\n")
	f(head+"@@ -1 +1 @@\n-a\n+a\n"+mark, "a\n", "a")
	f(head+"@@ -1,2 +1,2 @@\n-a\n+x\n b\n"+mark, "a\nb", "x\nb")
	f(head+"@@ -1,2 +1,2 @@\n-a\r\n+x\n b\r\n", "a\r\nb\r\n", "x\nb\r\n") // each line keeps its end
	f(head+"@@ -1,2 +1,3 @@\n \ufeffa\n b\n+c\n", "\ufeffa\nb\n", "\ufeffa\nb\nc\n")
	f(head+"@@ -4,4 +4,5 @@\n 4\n 5\n 6\n+x\n 7\n", "\ufeff1\n2\n3\n4\n5\n6\n7\n", "\ufeff1\n2\n3\n4\n5\n6\nx\n7\n")
	f(head+"@@ -0,0 +1,2 @@\n+a\n+b\n", "", "a\nb\n") // the file exists and is empty
	f(head+"@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\n", "")
	f(head+"@@ -1 +1 @@\n+b\n-a\n", "a\n", "b\n") // insertions first
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	f(head+"@@ -1,4 +1,5 @@\n+0\n 1\n 2\n 3\n 4\n@@ -5,6 +6,6 @@\n 5\n 6\n 7\n-8\n+eight\n 9\n 10\n", ten, "0\n1\n2\n3\n4\n5\n6\n7\neight\n9\n10\n")
	f(diff.NoChanges, "abc", "abc")

	for text, want := range map[string]string{create: "", create + "@@ -0,0 +1,2 @@\n+a\n+b\n" + mark: "a\nb"} {
		if got, bad := parse(t, text).Apply(nil); bad != nil || string(got) != want || got == nil {
			t.Errorf("%q: %q, %v", text, got, bad)
		}
	}
	for text, old := range map[string]string{remove: "", remove + "@@ -1,2 +0,0 @@\n-a\n-b\n" + mark: "a\nb"} {
		if got, bad := parse(t, text).Apply([]byte(old)); bad != nil || got != nil {
			t.Errorf("%q: %q, %v", text, got, bad)
		}
	}
}

// TestApplyRefuses has every token of rule 7 of exacta §4.16, and the order among them.
func TestApplyRefuses(t *testing.T) {
	f := func(text string, old []byte, code, token, where string) {
		t.Helper()
		got, bad := parse(t, text).Apply(old)
		if bad == nil {
			t.Errorf("%q fits %q: %q", text, old, got)
		} else if bad.Code != code || bad.Token != token || bad.Text != where || got != nil {
			t.Errorf("%q of %q: %q, %v; want %s %s %s", text, old, got, bad, code, token, where)
		}
	}
	b := func(s string) []byte { return []byte(s) }
	create, remove := "--- /dev/null\n+++ b/f\n", "--- a/f\n+++ /dev/null\n"
	mark := `\ No newline at end of file` + "\n"
	one := head + "@@ -1 +1 @@\n-a\n+b\n"

	f(create, b(""), "VAL-005", "target_exists", "f")
	f(create+"@@ -0,0 +1 @@\n+a\n", b("a\n"), "VAL-005", "target_exists", "f")
	f(one, nil, "FS-001", "missing", "f")
	f(remove, nil, "FS-001", "missing", "f")
	f(one, b("\x00\xff"), "VAL-003", "binary", "f")
	f(one, append(bytes.Repeat(b("x"), 8191), 0), "VAL-003", "binary", "f")
	f(one, append(bytes.Repeat(b("x"), 8192), 0), "VAL-005", "context", "f:1")
	f(one, b("\xff"), "VAL-003", "encoding", "f")
	f(remove, b("\xff"), "VAL-003", "encoding", "f")
	f(one, b("x\ny\n"), "VAL-003", "context_lines", "line 3") // before the context
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	f(head+"@@ -4,5 +4,5 @@\n 4\n 5\n-6\n+x\n 7\n 8\n", b(ten), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -2,6 +2,6 @@\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n", b(ten), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -3,6 +3,6 @@\n 3\n 4\n 5\n-6\n+x\n 7\n 8\n", b(ten), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -0,0 +1 @@\n+a\n", b("a\n"), "VAL-003", "context_lines", "line 3")

	f(one, b("x\n"), "VAL-005", "context", "f:1")
	f(one, b("a\r\n"), "VAL-005", "context", "f:1")
	f(one, b("a \n"), "VAL-005", "context", "f:1")
	f(one, b("a"), "VAL-005", "context", "f:1")
	f(one, b("\ufeffa\n"), "VAL-005", "context", "f:1")
	f(head+"@@ -1 +1 @@\n-a\n"+mark+"+b\n", b("a\n"), "VAL-005", "context", "f:1")
	f(head+"@@ -3 +3 @@\n-a\n+b\n", b("a\n"), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -1,3 +1,3 @@\n-a\n+b\n b\n c\n", b("a\nb\n"), "VAL-005", "context", "f:3") // the file is shorter
	f(head+"@@ -4,5 +4,5 @@\n 4\n 5\n 6\n-X\n+x\n 8\n", b(ten), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -4,7 +4,7 @@\n 4\n 5\n 6\n-X\n+x\n 8\n 9\n 10\n", b(ten), "VAL-005", "context", "f:7")
	f(head+"@@ -3,7 +3,7 @@\n 4\n 5\n 6\n-7\n+x\n 8\n 9\n 10\n", b(ten), "VAL-005", "context", "f:3") // one line off
	f(head+"@@ -999999999999999 +999999999999999 @@\n-a\n+b\n", b(ten), "VAL-003", "context_lines", "line 3")
	f(head+"@@ -0,0 +1 @@\n+b\n", nil, "FS-001", "missing", "f")

	f(remove, b("a\n"), "VAL-005", "context", "f:1")
	f(remove+"@@ -1 +0,0 @@\n-a\n", b("a\nb\n"), "VAL-005", "context", "f:2")
	f(remove+"@@ -1,2 +0,0 @@\n-a\n-b\n", b("a\n"), "VAL-005", "context", "f:3")
	f(remove+"@@ -1 +0,0 @@\n-a\n", b("b\n"), "VAL-005", "context", "f:1")
	f(remove+"@@ -1 +0,0 @@\n-a\n", b("a"), "VAL-005", "context", "f:1")
}

func TestText(t *testing.T) {
	f := func(content, token string) {
		t.Helper()
		bad := diff.Text([]byte(content))
		if (bad == nil) != (token == "") || bad != nil && bad.Token != token {
			t.Errorf("Text(%.20q) = %v; want %q", content, bad, token)
		}
	}
	f("", "")
	f("ü\r\n\ufeff", "")
	f("a\x00", "binary")
	f(strings.Repeat("a", 8192)+"\x00", "")
	f("\xff", "encoding")
	f("\xed\xa0\x80", "encoding") // a lone surrogate
}
