package exacta

import (
	"strings"
	"testing"
)

// TestSecretsInNames: a credential in what a request names is in no message (exacta §6.6).
func TestSecretsInNames(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	key := "sk-" + strings.Repeat("a", 20)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, key, ""), ask(3, "OpenProject", `"path":"`+dir+"/"+key+`"`),
		ask(4, "ApplyDiffSet", `"diffs":["--- /`+key+`\n+++ /`+key+`\n@@ -1,1 +1,1 @@\n-a\n+b\n"]`))
	for strings.Count(string(p.rest), "\n") < 4 {
		p.pump()
	}
	if text := string(p.rest); strings.Contains(text, key) || strings.Count(text, "Unknown command: [REDACTED].") != 1 ||
		strings.Count(text, "Not found: [REDACTED].") != 1 || strings.Count(text, "outside the project: /[REDACTED].") != 2 {
		t.Error(text)
	}
}
