package exacta

import (
	"os"
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
)

// planned sends an ExtractIntent and a GeneratePlan with the numbers n and n+1, and returns what
// came from the second one on, behind the lines of the first.
func (p *peer) planned(n int, input string, ids *codec.Scope) string {
	p.t.Helper()
	p.send(ask(n, "ExtractIntent", `"user_input":"`+input+`"`))
	p.until(n)
	p.send(ask(n+1, "GeneratePlan", `"intent_id":"`+ids.Next(codec.Intent).String()+`"`))
	return p.until(n + 1)
}

// TestNoTargetIsADirectoryOfAnother: what cannot be done is refused when it is planned, not when it
// is executed.
func TestNoTargetIsADirectoryOfAnother(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	if err := os.Mkdir(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	ids := codec.NewScope("t1", "p1")
	n := 0
	f := func(input string, refused bool) {
		t.Helper()
		n += 2
		got := p.planned(n, input, ids)
		if !refused && !strings.Contains(got, `"to":"AwaitingApproval"`) {
			t.Errorf("%s: %s", input, got)
		} else if refused && !strings.Contains(got, `{\"code\":\"PV-4\"`) {
			t.Errorf("%s: %s", input, got)
		}
	}
	f("create q.txt and q.txt/x.go", true)
	f("create q.txt/x.go and q.txt", true)
	f("create a.txt/x.go", true)
	f("create sub/x.go and sub/y/z.go", false)
}

// TestLooseConstraints: a constraint that no rule enforces is reported with the plan, one that is
// enforced is not (exacta §4.5).
func TestLooseConstraints(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	got := p.planned(2, `append \"x\" to a.txt and don't touch src/db/. Always write short words. Ideally no noise.`, codec.NewScope("t1", "p1"))
	var warned []string
	for line := range strings.Lines(got) {
		if strings.Contains(line, `"level":"WARN"`) {
			_, text, _ := strings.Cut(line, `"message":"`)
			text, _, _ = strings.Cut(text, `"`)
			warned = append(warned, text)
		}
	}
	want := "a constraint cannot be enforced: write short words|a constraint cannot be enforced: no noise"
	if strings.Join(warned, "|") != want {
		t.Errorf("%q, want %s\n%s", warned, want, got)
	}
}
