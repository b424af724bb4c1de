package exacta

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSeedOfAnEarlierSession: the ids of a seed come again in the next session of a project. Its
// rollback points are others.
func TestSeedOfAnEarlierSession(t *testing.T) {
	dir := newRoot(t)
	for _, step := range [][2]string{{"a", "b"}, {"b", "c"}} {
		s := newServer(t)
		p := newPeer(t, s, 1)
		p.say(ask(1, "OpenProject", `"path":"`+dir+`"`))
		p.want(2, "LogEntry1 101:ok")
		p.say(ask(2, "ApplyDiffSet", `"diffs":["--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-`+step[0]+`\n+`+step[1]+`\n"]`))
		p.want(3, "Progress2 LogEntry3 102:ok")
		s.Close()
	}
	points, err := os.ReadDir(filepath.Join(dir, ".exacta", "rollback"))
	if text, _ := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || len(points) != 2 || string(text) != "c\n" {
		t.Errorf("%d points, %v, %q", len(points), err, text)
	}
}
