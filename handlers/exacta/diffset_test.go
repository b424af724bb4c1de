package exacta

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"trunkline/handlers/exacta/workspace"
)

// TestSetsRefused: a set that cannot be done names its first bad diff, and leaves no rollback point
// (exacta §4.12, §4.16).
func TestSetsRefused(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	n := 1
	f := func(want string, diffs ...string) {
		t.Helper()
		n++
		p.send(ask(n, "ApplyDiffSet", `"diffs":["`+strings.Join(diffs, `","`)+`"]`))
		p.hear(1) // ErrorRaised
		for !strings.Contains(string(p.rest), "\n") {
			p.pump()
		}
		if !strings.Contains(string(p.rest), `"technical_detail":"`+want+`"`) {
			t.Errorf("%q: %s, want %s", diffs, p.rest, want)
		}
		p.hear(1)
	}
	create := func(path, line string) string {
		return `--- /dev/null\n+++ b/` + path + `\n@@ -0,0 +1,1 @@\n+` + line + `\n`
	}
	f("diffs[0] not_a_directory: a.txt", create("a.txt/b/x", "x"))
	f("diffs[1] not_a_directory: q", create("q", "x"), create("q/x", "x"))
	f("diffs[1] not_regular: q", create("q/x", "x"), create("q", "x"))
	f("diffs[1] not_a_directory: a.txt", `--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n`, create("a.txt/x", "x"))
	f("diffs[0] secret: in q.txt", create("q.txt", "sk-"+strings.Repeat("a", 20)))
	long := strings.Repeat("n", 256)
	f("diffs[1] file name too long: "+long, "NO_CHANGES_REQUIRED", create(long, "x"))
	if points, _ := os.ReadDir(filepath.Join(dir, ".exacta", "rollback")); len(points) > 0 {
		t.Errorf("%d points", len(points))
	}
}

// TestRulesOfTheConfiguration: its rules for paths hold as they are when a set is applied.
func TestRulesOfTheConfiguration(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	set := func(config string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, ".exacta"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".exacta", "config.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	create := func(path string) string { return `"diffs":["--- /dev/null\n+++ b/` + path + `\n"]` }
	set(`{"schema_version":1,"file_rules":{"deny":["a/"],"allow":["bin/"]}}`)
	p.send(ask(2, "ApplyDiffSet", create("a/x")))
	p.want(2, "ErrorRaised2 102:SEC-002")
	p.send(ask(3, "ApplyDiffSet", create("bin/x")))
	p.want(3, "Progress3 LogEntry4 103:ok")
	set(`{`)
	p.send(ask(4, "ApplyDiffSet", create("y")))
	p.want(2, "ErrorRaised5 104:CFG-001")
}

// TestPointOfASetStays: the project came with points that claim to be newer.
func TestPointOfASetStays(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	for n := range 10 {
		id := "point-" + strconv.Itoa(n)
		pt, f := ws.NewPoint(id, workspace.DiffSetPoint, "2027")
		if f != nil {
			t.Fatal(f)
		}
		if f := pt.Seal(); f != nil {
			t.Fatal(f)
		}
		path := filepath.Join(dir, ".exacta", "rollback", id, "manifest.json")
		text, err := os.ReadFile(path)
		if err == nil {
			text = bytes.Replace(text, []byte(`"seq":`+strconv.Itoa(n+1)), []byte(`"seq":4503599627370496`), 1)
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ws.Close()
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(3, "LogEntry1 LogEntry2 101:ok") // that names them
	p.send(ask(2, "ApplyDiffSet", `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"]`))
	_, text, _ := strings.Cut(p.until(2), `"rollback_point_id":"`)
	id, _, _ := strings.Cut(text, `"`)
	if _, err := os.Stat(filepath.Join(dir, ".exacta", "rollback", id, "manifest.json")); err != nil || id == "" {
		t.Errorf("%q: %v", id, err)
	}
}
