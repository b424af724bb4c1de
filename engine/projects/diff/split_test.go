package diff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/engine/projects/diff"
)

// runGit runs git in dir without the settings of the machine.
func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// tree is the content of files by their paths.
type tree map[string]string

func (tr tree) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range tr {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// apply applies pieces to the tree, renamed files as a delete and a create.
func (tr tree) apply(t *testing.T, pieces []diff.Piece) {
	t.Helper()
	old := tree{}
	for name, text := range tr {
		old[name] = text
	}
	content := func(name string) []byte {
		if text, ok := old[name]; ok {
			return append([]byte{}, text...)
		}
		return nil
	}
	for _, piece := range pieces {
		p, bad := diff.Parse(piece.Text)
		if bad != nil {
			t.Fatalf("%v of\n%s", bad, piece.Text)
		}
		from := p.Path
		if piece.From != "" {
			from = piece.From
		}
		out, bad := p.Apply(content(from))
		switch {
		case bad != nil:
			t.Fatalf("%v of\n%s", bad, piece.Text)
		case piece.From != "":
			if !piece.Copy {
				delete(tr, from)
			}
			tr[piece.To] = string(out)
		case p.Op == diff.Delete:
			delete(tr, from)
		default:
			tr[from] = string(out)
		}
	}
}

func (tr tree) same(t *testing.T, want tree, why string) {
	t.Helper()
	for name, text := range want {
		if got, ok := tr[name]; !ok || got != text {
			t.Errorf("%s: %q is %q, want %q", why, name, got, text)
		}
	}
	for name := range tr {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %q was left", why, name)
		}
	}
}

func numbered(from, to int, line string) string {
	var b strings.Builder
	for ; from <= to; from++ {
		b.WriteString(line + " " + strings.Repeat("i", from) + "\n")
	}
	return b.String()
}

// before and after are two versions of a project, whose diff has all kinds of changes.
func before() tree {
	return tree{
		"README.md": "# Demo\n\nHello.\n", "dir/with space/a b.txt": "1\n2\n3\n", "grüße.txt": "eins\n", "tab and ü/\"quoted\".txt": "x\n", "crlf.txt": "a\r\nb\r\nc\r\n",
		"no end.txt": "a\nb", "gets end.txt": "a\nb", "loses end.txt": "a\nb\n", "gone.txt": "1\n2\n", "empty gone.txt": "", "moved.txt": numbered(1, 9, "moved"), "moved ü.txt": numbered(1, 12, "other"),
		"copied.txt": numbered(1, 9, "copied"), "far.txt": numbered(1, 40, "far"), "odd.txt": "1\n-- \n-- 2.39\n--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n", "d/f b/d/f": "x\n",
	}
}

func after() tree {
	out := before()
	for _, name := range []string{"gone.txt", "empty gone.txt", "moved.txt", "moved ü.txt"} {
		delete(out, name)
	}
	for name, text := range (tree{
		"README.md": "# Demo\n\nHi.\n", "dir/with space/a b.txt": "1\n2\n3\n4\n", "grüße.txt": "zwei\n", "tab and ü/\"quoted\".txt": "y\n", "crlf.txt": "a\r\nB\r\nc\r\n",
		"no end.txt": "A\nb", "gets end.txt": "a\nb\n", "loses end.txt": "a\nb", "new.txt": "1\n2\n", "new ü.txt": "no end", "empty new.txt": "", "sub/moved.txt": numbered(1, 9, "moved"),
		"sub/moved ö.txt": numbered(1, 12, "other") + "more\n", "copy.txt": numbered(1, 9, "copied"), "far.txt": "first\n" + numbered(1, 20, "far") + "middle\n" + numbered(21, 40, "far"),
		"odd.txt": "1\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+++ b/x\n-- \n", "d/f b/d/f": "y\n",
	}) {
		out[name] = text
	}
	return out
}

// TestSplitOfGit applies the output of git with many options, as git would.
func TestSplitOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	before().write(t, dir)
	runGit(t, dir, "init", "-q")
	runGit(t, dir, "config", "core.autocrlf", "false")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-qm", "before")
	for name := range before() {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	after().write(t, dir)
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-qm", "after\n\n- a list\n+ of lines\n-- \nBinary files are no problem here.\nold mode\n")
	for _, args := range []string{
		"diff HEAD^ HEAD", "diff --no-renames HEAD^ HEAD", "diff -M -C --find-copies-harder HEAD^ HEAD", "-c core.quotepath=false diff HEAD^ HEAD", "diff --no-prefix HEAD^ HEAD",
		"-c diff.mnemonicPrefix=true diff HEAD^ HEAD", "diff --src-prefix=old/ --dst-prefix=new/ HEAD^ HEAD", "diff --full-index --binary HEAD^ HEAD",
		"diff --stat -p HEAD^ HEAD", "diff -B -M HEAD^ HEAD", "show HEAD", "show --pretty=fuller --stat -p HEAD", "format-patch --stdout -1", "log -1 -p", "diff --patience --function-context HEAD^ HEAD",
	} {
		text := runGit(t, dir, strings.Fields(args)...)
		if text == "" {
			continue
		}
		pieces, bad := diff.Split(text)
		if bad != nil {
			t.Errorf("git %s: %v", args, bad)
			continue
		}
		got := before()
		got.apply(t, pieces)
		got.same(t, after(), "git "+args)
		lines := strings.SplitAfter(text, "\n")
		for _, p := range pieces {
			if at := strings.Index(p.Text, "\n@@"); at >= 0 {
				if hunk, _, _ := strings.Cut(p.Text[at+1:], "\n"); lines[p.Line+1] != hunk+"\n" {
					t.Errorf("git %s: line %d of %s", args, p.Line, p.Text)
				}
			}
		}
	}
}

// TestSplitOfDiff applies the output of diff -ruN.
func TestSplitOfDiff(t *testing.T) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip("diff is not installed")
	}
	dir := t.TempDir()
	old, after := tree{"f.txt": "1\n2\n", "g h.txt": "a\n", "d/x": "--- a\n"}, tree{"f.txt": "1\n3\n", "g h.txt": "b\n", "d/x": "+++ b\n"}
	old.write(t, filepath.Join(dir, "a"))
	after.write(t, filepath.Join(dir, "b"))
	cmd := exec.Command("diff", "-ruN", "a", "b")
	cmd.Dir = dir
	text, _ := cmd.Output() // its exit code is 1
	pieces, bad := diff.Split(string(text))
	if bad != nil || len(pieces) != 3 {
		t.Fatalf("%v, %d pieces of\n%s", bad, len(pieces), text)
	}
	old.apply(t, pieces)
	old.same(t, after, "diff")
}

// TestSplitRefuses what would be applied in part only.
func TestSplitRefuses(t *testing.T) {
	file := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
	f := func(text, token, place string) {
		t.Helper()
		if pieces, bad := diff.Split(text); bad == nil || bad.Token != token || bad.Text != place {
			t.Errorf("%q: %v %v, want %s %s", text, pieces, bad, token, place)
		}
	}
	f("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "mode", "line 2")
	f(file+"diff --git a/g b/g\nold mode 100644\nnew mode 100755\nindex 1..2\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "mode", "line 8")
	f("diff --git a/f b/f\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", "mode", "line 2")
	f("diff --git a/f b/f\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", "mode", "line 2")
	f("diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", "binary_diff", "line 3")
	f("diff --git a/f b/f\nnew file mode 100644\nindex 0..2\nGIT binary patch\nliteral 3\nKcmZ\n\n", "binary_diff", "line 4")
	f(file+"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n", "combined", "line 7")
	f("diff --combined f\n", "combined", "line 1")
	f("* Unmerged path f\n", "combined", "line 1")
	f("Submodule x 1..2:\n", "submodule", "line 1")
	f("Only in a: x\n"+file, "one_side", "line 1")
	f("```diff\n"+file+"```\n", "fence", "line 1")
	f(file+"\n@@ -9 +9 @@\n-x\n+y\n", "header", "line 8")
	f("diff --git a/f b/f\nrename from \"a\\q\"\nrename to b\n", "quoted_path", "line 2")
	f("diff --git a/f b/g\nrename from f\n", "header", "line 1")
	f("diff --git a/../f b/g\nrename from ../f\nrename to g\n", "traversal", "../f")
	f("diff --git \"a/f\" \"b/g\"\nrename from f\nrename to \"g\\th\"\n", "path_form", "g\th")
	f("diff --git f g\n--- f\n+++ g\n@@ -1 +1 @@\n-a\n+b\n", "header", "line 2")

	// what Parse refuses is one piece
	for _, text := range []string{"", "hello\n", "*** a/f\n--- b/f\n", "\x1b[1mdiff --git a/f b/f\x1b[m\n", "Index: f\n"} {
		if pieces, bad := diff.Split(text); bad != nil || len(pieces) != 1 || pieces[0].Text != text || pieces[0].Line != 1 {
			t.Errorf("%q: %v %v", text, pieces, bad)
		}
	}
	// a path with a control character does not lose its end
	pieces, bad := diff.Split("diff --git \"a/f\\tg\" \"b/f\\tg\"\n--- \"a/f\\tg\"\n+++ \"b/f\\tg\"\n@@ -1 +1 @@\n-a\n+b\n")
	if bad != nil || len(pieces) != 1 {
		t.Fatalf("%v %v", pieces, bad)
	}
	if p, bad := diff.Parse(pieces[0].Text); bad == nil || bad.Token != "path_form" {
		t.Errorf("%v %v", p, bad)
	}
	// lines that are missing or too many stay in their file
	pieces, _ = diff.Split(file + "+c\n" + strings.Replace(file, "-1 +1", "-1,2 +1", 1) + file)
	if len(pieces) != 3 {
		t.Fatalf("%d pieces", len(pieces))
	}
	for i, token := range []string{"hunk_count", "hunk_count", ""} {
		if _, bad := diff.Parse(pieces[i].Text); (bad == nil) != (token == "") || bad != nil && bad.Token != token {
			t.Errorf("piece %d: %v", i, bad)
		}
	}
}

// TestQuotedPaths: paths are as git writes them (exacta §4.16 rule 3).
func TestQuotedPaths(t *testing.T) {
	f := func(path, want, token string) {
		t.Helper()
		p, bad := diff.Parse("--- \"a/" + path + "\"\n+++ \"b/" + path + "\"\n@@ -1 +1 @@\n-a\n+b\n")
		if token == "" && (bad != nil || p.Path != want) || token != "" && (bad == nil || bad.Token != token) {
			t.Errorf("%s: %+v %v", path, p, bad)
		}
	}
	f(`gr\303\274\303\237e.txt`, "grüße.txt", "")
	f("grüße.txt", "grüße.txt", "")
	f(`x \"y\".txt`, `x "y".txt`, "")
	f(`a\tb`, "", "path_form")
	f(`a\\b`, "", "absolute")
	f(`..\057x`, "", "traversal")
	f(`../x`, "", "traversal")
	for _, path := range []string{`\303`, `\400`, `\x41`, `\u0041`, `\q`, `\1`, `a"b`, `\`, `\'`} {
		f(path, "", "quoted_path")
	}
	if _, bad := diff.Parse("--- \"/dev/null\"\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"); bad == nil || bad.Token != "absolute" {
		t.Error(bad)
	}
	if _, bad := diff.Parse("--- \"a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"); bad == nil || bad.Token != "quoted_path" || bad.Text != "line 1" {
		t.Error(bad)
	}
}

// FuzzSplit: no text makes it crash, and a diff that Parse takes is one piece, which does the same.
func FuzzSplit(f *testing.F) {
	f.Add("diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("diff --git \"a/\\303\\274\" b/g\nsimilarity index 100%\nrename from \"\\303\\274\"\nrename to g\n")
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
	f.Fuzz(func(t *testing.T, text string) {
		pieces, _ := diff.Split(text)
		p, bad := diff.Parse(text)
		if bad != nil || p.Op == diff.None {
			return
		}
		if len(pieces) != 1 || pieces[0].Text != text {
			t.Fatalf("%q is %+v", text, pieces)
		}
	})
}
