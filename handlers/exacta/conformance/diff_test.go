package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// debugOn lets a carrier of the network have ApplyDiffSet.
func debugOn(via *carrier) []string {
	if via.name == "stdio" || via.name == "unix" {
		return nil
	}
	return []string{"--set", "exacta.debug_commands=on"}
}

// diffFiles are the files that diffs are applied to.
var diffFiles = []string{"go.mod", "module x\n", "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "one.txt", "one\n", "crlf.txt", "a\r\nb\r\n", "bom.txt", "\uFEFFa\nb\n",
	"open.txt", "a\nb", "bin.dat", "a\x00b\n", "latin.txt", "a\xff\n", "sub/s.txt", "s\n", "empty.txt", "", "good.txt", "1\n"}

// diffs returns the payload of an ApplyDiffSet.
func diffs(texts ...string) string {
	for i := range texts {
		texts[i] = quote(texts[i])
	}
	return `{"diffs":[` + strings.Join(texts, ",") + `]}`
}

// modify returns a diff of one file from its hunks.
func modify(path string, hunks ...string) string {
	return "--- a/" + path + "\n+++ b/" + path + "\n" + strings.Join(hunks, "")
}

// create returns a diff that creates a file with one line.
func create(path string) string { return "--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1,1 @@\n+x\n" }

// one is a good hunk of one.txt.
const one = "@@ -1,1 +1,1 @@\n-one\n+two\n"

// badDiffs are the rules of exacta §4.16 in their order: the code and the token of what is
// refused.
var badDiffs = []struct{ outcome, text string }{
	{"VAL-003 too_large", modify("one.txt", "@@ -1,1 +1,2 @@\n one\n+"+strings.Repeat("x", 102_400)+"\n")},
	{"VAL-003 empty", ""},
	{"VAL-003 nul", modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+t\x00o\n")},
	{"VAL-003 ansi", modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+\x1b[31mred\n")},
	{"VAL-003 fence", "```diff\n" + modify("one.txt", one) + "```\n"},
	{"VAL-003 trailing_newline", strings.TrimSuffix(modify("one.txt", one), "\n")},
	{"VAL-003 git_header", "diff --git a/one.txt b/one.txt\n" + modify("one.txt", one)},
	{"VAL-003 git_header", "diff --combined one.txt\n"},
	{"VAL-003 git_header", "diff --cc one.txt\n"},
	{"VAL-003 git_header", "Index: one.txt\n" + modify("one.txt", one)},
	{"VAL-003 git_header", "index 000..111\n"},
	{"VAL-003 git_header", "GIT binary patch\n"},
	{"VAL-003 git_header", "Binary files a/x and b/x differ\n"},
	{"VAL-003 git_header", "@@@ -1 -1 +1 @@@\n"},
	{"VAL-003 context_diff", "*** a/one.txt\n"},
	{"VAL-003 header", "one\n"},
	{"VAL-003 header", "+++ b/one.txt\n--- a/one.txt\n" + one},
	{"VAL-003 header", "--- a/one.txt\n" + one},
	{"VAL-003 header", "--- /dev/null\n+++ /dev/null\n"},
	{"VAL-003 header", "--- one.txt\n+++ b/one.txt\n" + one},
	{"VAL-003 header", "--- a/one.txt\n+++ one.txt\n" + one},
	{"SEC-001 traversal", "--- ../x\n+++ ../x\n" + one},
	{"FS-003 absolute", "--- /x\n+++ /x\n" + one},
	{"VAL-003 rename", "--- a/one.txt\n+++ b/two.txt\n" + one},
	{"SEC-001 traversal", modify("sub/../../one.txt", one)},
	{"SEC-001 traversal", modify(`sub\..\one.txt`, one)},
	{"SEC-001 traversal", modify("..", one)},
	{"FS-003 absolute", modify("/one.txt", one)},
	{"FS-003 absolute", modify(`sub\one.txt`, one)},
	{"FS-003 absolute", modify("C:/one.txt", one)},
	{"VAL-003 path_form", modify("sub//s.txt", one)},
	{"VAL-003 path_form", modify("./one.txt", one)},
	{"VAL-003 path_form", modify("sub/", one)},
	{"VAL-003 path_form", modify("on\x01e.txt", one)},
	{"VAL-003 path_form", modify(strings.Repeat("abcdefg/", 128)+"x", one)},
	{"VAL-003 path_form", modify(strings.Repeat("d/", 20)+"x", one)},
	{"VAL-003 hunk_header", modify("one.txt", "@@ -1,1 +1,1\n-one\n+two\n")},
	{"VAL-003 hunk_header", modify("one.txt", "@@ -a,1 +1,1 @@\n-one\n+two\n")},
	{"VAL-003 hunk_header", modify("one.txt", "one\n")},
	{"VAL-003 multi_file", modify("one.txt", one) + modify("a.txt", one)},
	{"VAL-003 hunk_line", modify("one.txt", "@@ -1,1 +1,1 @@\n-one\ntwo\n")},
	{"VAL-003 hunk_line", modify("one.txt", "@@ -1,1 +1,2 @@\n one\n\n+two\n")},
	{"VAL-003 hunk_count", modify("one.txt", "@@ -1,2 +1,1 @@\n-one\n+two\n")},
	{"VAL-003 hunk_empty", modify("one.txt", "@@ -1,1 +1,1 @@\n one\n")},
	{"VAL-003 no_hunks", modify("one.txt")},
	{"VAL-003 create_shape", "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,1 @@\n+x\n@@ -0,0 +2,1 @@\n+y\n"},
	{"VAL-003 create_shape", "--- /dev/null\n+++ b/n.txt\n@@ -1,1 +1,1 @@\n-x\n+y\n"},
	{"VAL-003 delete_shape", "--- a/one.txt\n+++ /dev/null\n@@ -1,1 +1,1 @@\n-one\n+y\n"},
	{"VAL-003 hunk_order", modify("a.txt", "@@ -9,1 +9,1 @@\n-9\n+x\n", "@@ -1,1 +1,1 @@\n-1\n+x\n")},
	{"VAL-003 hunk_order", modify("a.txt", "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n", "@@ -4,1 +4,1 @@\n-4\n+x\n")},
	{"VAL-003 hunk_position", modify("one.txt", "@@ -1,1 +2,1 @@\n-one\n+two\n")},
	{"VAL-003 hunk_position", modify("a.txt", "@@ -1,4 +1,5 @@\n 1\n+x\n 2\n 3\n 4\n", "@@ -6,4 +6,5 @@\n 6\n 7\n 8\n+y\n 9\n")},
	{"VAL-003 no_newline_marker", modify("open.txt", "@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n+x\n b\n")},
	{"SEC-002 denied", create(".git/x")},
	{"SEC-002 denied", create("sub/.exacta/x")},
	{"SEC-002 denied", create(".hg/x")},
	{"SEC-002 denied", create("sub/.svn/x")},
	{"SEC-002 denied", create("node_modules/x")},
	{"SEC-002 denied", create("sub/bin/x")},
	{"SEC-002 denied", create("obj/x")},
	{"SEC-002 denied", create(".vs/x")},
	{"SEC-002 denied", create(".env")},
	{"SEC-002 denied", create("sub/.ENV.local")},
	{"SEC-002 denied", create("x.pfx")},
	{"SEC-002 denied", create("x.p12")},
	{"SEC-002 denied", create("x.KEY")},
	{"SEC-002 denied", create("x.pem")},
	{"SEC-002 denied", create("x.ppk")},
	{"SEC-002 symlink", modify("link.txt", one)},
	{"SEC-002 symlink", modify("linked/s.txt", one)},
	{"SEC-002 symlink", create("dangling.txt")},
	{"SEC-002 not_regular", modify("sub", one)},
	{"SEC-003 secret", modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+AKIA0123456789ABCDEF\n")},
	{"VAL-005 target_exists", create("one.txt")},
	{"FS-001 missing", modify("missing.txt", one)},
	{"FS-001 missing", "--- a/missing.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n"},
	{"VAL-003 binary", modify("bin.dat", one)},
	{"VAL-003 encoding", modify("latin.txt", one)},
	{"VAL-003 context_lines", modify("a.txt", "@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+x\n 6\n 7\n")},
	{"VAL-003 context_lines", modify("a.txt", "@@ -2,6 +2,6 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n")},
	{"VAL-005 context", modify("one.txt", "@@ -1,1 +1,1 @@\n-One\n+two\n")},
	{"VAL-005 context", modify("one.txt", "@@ -1,1 +1,1 @@\n-one \n+two\n")},
	{"VAL-005 context", modify("crlf.txt", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n")},
	{"VAL-005 context", "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n"},
	{"VAL-005 context", modify("open.txt", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n")},
}

// TestBadDiffs4_16 has each rule token: the set is refused at its place, and nothing changes
// (exacta §4.12, §4.16, §8).
func TestBadDiffs4_16(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, debugOn(via), diffFiles...)
		for name, to := range map[string]string{"link.txt": "one.txt", "linked": "sub", "dangling.txt": "nowhere"} {
			if err := os.Symlink(to, filepath.Join(c.dir(), name)); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, c.dir())
		good := modify("good.txt", "@@ -1,1 +1,1 @@\n-1\n+x\n")
		for _, bad := range badDiffs {
			code, token, _ := strings.Cut(bad.outcome, " ")
			r := c.ask("ApplyDiffSet", diffs(bad.text)).want("raised "+code, code+" diffs[0] "+token)
			if at := r.end; at.OK || strings.HasPrefix(at.Error.Detail, "diffs[0] "+token) && len(at.Error.Detail) > 9+len(token) && at.Error.Detail[9+len(token)] != ':' {
				t.Errorf("%q: got %s", bad.text, at.line)
			}
			c.ask("ApplyDiffSet", diffs(good, "NO_CHANGES_REQUIRED", bad.text, "")).want("raised "+code, code+" diffs[2] "+token)
			if t.Failed() {
				t.Fatalf("of %.80q", bad.text)
			}
		}
		c.ask("ApplyDiffSet", diffs(good, good)).want("raised VAL-003", "VAL-003 diffs[1] duplicate_target: ")
		if after := tree(t, c.dir()); after != before {
			t.Errorf("the tree changed: %s\nbefore %s", after, before)
		}
		c.opens(`"state":"Idle"`)
	})
}

// tree lists the files of a directory but those of .exacta, with their modes and contents.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == ".exacta" {
			return filepath.SkipDir
		}
		out.WriteString(rel + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out.WriteString(" " + strconv.Quote(string(text)))
		}
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// goodDiffs are diffs that are applied: the name, what becomes of it, and the diff.
var goodDiffs = []struct{ name, content, text string }{
	{"one.txt", "two\n", modify("one.txt", one)},
	{"one.txt", "one\ntwo\n", "--- a/one.txt\t2026-01-15 00:00:00\n+++ b/one.txt\tx\n@@ -1,1 +1,2 @@ func x\n one\n+two\n"},
	{"one.txt", "two\n", modify("one.txt", "@@ -1 +1 @@\n-one\n+two\n")},
	{"a.txt", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", modify("a.txt", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n")},
	{"a.txt", "x\n2\n3\n4\n5\n6\n7\n8\ny\n", modify("a.txt", "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n", "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n")},
	{"a.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n", modify("a.txt", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n", "@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n")},
	{"crlf.txt", "a\r\nx\r\n", modify("crlf.txt", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\r\n")},
	{"bom.txt", "\uFEFFa\nx\n", modify("bom.txt", "@@ -1,2 +1,2 @@\n \uFEFFa\n-b\n+x\n")},
	{"open.txt", "a\nx", modify("open.txt", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n")},
	{"open.txt", "a\nb\n", modify("open.txt", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n")},
	{"one.txt", "-- x\n", modify("one.txt", "@@ -1,1 +1,1 @@\n-one\n+-- x\n")},
	{"one.txt", "-", "--- a/one.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n"},
	{"empty.txt", "-", "--- a/empty.txt\n+++ /dev/null\n"},
	{"new.txt", "", "--- /dev/null\n+++ b/new.txt\n"},
	{"new/deep/x.txt", "x\n", create("new/deep/x.txt")},
	{"new.txt", "x", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n"},
	{"packages/x", "x\n", create("packages/x")}, // denied in a project of .NET only
	{"binary/x", "x\n", create("binary/x")},
	{"env", "x\n", create("env")},
	{strings.Repeat("d/", 19) + "x", "x\n", create(strings.Repeat("d/", 19) + "x")},
}

// TestGoodDiffs4_16 applies diffs, and takes them back by hand.
func TestGoodDiffs4_16(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, debugOn(via), diffFiles...)
		if err := os.Chmod(filepath.Join(c.dir(), "one.txt"), 0o754); err != nil {
			t.Fatal(err)
		}
		for _, good := range goodDiffs {
			old := c.read(good.name)
			c.ask("ApplyDiffSet", diffs("NO_CHANGES_REQUIRED", good.text)).want("apply 1/1", `{"applied":true,"rollback_point_id":"…"}`)
			if got := c.read(good.name); got != good.content {
				t.Errorf("%s has %q, want %q", good.name, got, good.content)
			}
			info, err := os.Stat(filepath.Join(c.dir(), "one.txt"))
			if good.name == "one.txt" && good.content != "-" && (err != nil || info.Mode() != 0o754) {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
			if old == "-" {
				c.remove(good.name)
			} else {
				c.server.write(good.name, old)
			}
			if good.content == "-" && good.name == "one.txt" {
				if err := os.Chmod(filepath.Join(c.dir(), "one.txt"), 0o754); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.ask("ApplyDiffSet", diffs("NO_CHANGES_REQUIRED", "NO_CHANGES_REQUIRED")).want("", `{"applied":false,"rollback_point_id":"…"}`)
		// 50 are allowed, 51 are not
		many := make([]string, 50)
		for i := range many {
			many[i] = create("many/" + strconv.Itoa(i))
		}
		r := c.ask("ApplyDiffSet", diffs(many...)).is(`{"applied":true,…}`)
		if n := strings.Count(r.shorts(), "apply "); n != 50 || !strings.HasPrefix(r.shorts(), "apply 1/50; ") {
			t.Errorf("events %s", r.shorts())
		}
		for i := range many {
			many[i] = create("more/" + strconv.Itoa(i))
		}
		c.ask("ApplyDiffSet", diffs(append(many, create("more/50"))...)).want("", "IPC-009 diffs:")
		// 102,400 bytes are allowed
		head := "--- /dev/null\n+++ b/large.txt\n@@ -0,0 +1,1 @@\n+"
		c.ask("ApplyDiffSet", diffs(head+strings.Repeat("x", 102_400-len(head)-1)+"\n")).is(`{"applied":true,…}`)
		c.ask("ApplyDiffSet", diffs(head+strings.Repeat("x", 102_401-len(head)-1)+"\n")).is("VAL-003 diffs[0] too_large")
	})
}

// TestRuleOrder4_16 has diffs that break two rules: the earlier one is named.
func TestRuleOrder4_16(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, diffFiles...)
	for _, f := range []struct{ outcome, text string }{
		{"VAL-003 diffs[0] nul", "\x00\x1b[1m"},
		{"VAL-003 diffs[0] ansi", "\x1b[1m\n```\n"},
		{"VAL-003 diffs[0] fence", "diff --git a b\n```"},
		{"VAL-003 diffs[0] trailing_newline", "diff --git a b"},
		{"VAL-003 diffs[0] git_header", "index x\n"},
		{"VAL-003 diffs[0] rename", "--- a/../x\n+++ b/y\nx\n"},
		{"SEC-001 diffs[0] traversal", modify("../x", "nonsense\n")},
		{"VAL-003 diffs[0] hunk_header", modify(".git/x", "nonsense\n")},
		{"SEC-002 diffs[0] denied", modify(".git/AKIA0123456789ABCDEF", one)},
		{"SEC-003 diffs[0] secret", modify("missing.txt", "@@ -1,1 +1,1 @@\n-one\n+AKIA0123456789ABCDEF\n")},
		{"FS-001 diffs[0] missing", modify("missing.txt", "@@ -2,1 +2,1 @@\n-one\n+two\n")},
		{"VAL-003 diffs[0] context_lines", modify("a.txt", "@@ -5,1 +5,1 @@\n-wrong\n+two\n")},
	} {
		c.ask("ApplyDiffSet", diffs(f.text)).is(f.outcome)
	}
}
