package external

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/handlers/exacta/workspace"
)

// cached returns the files of the cache.
func (p *project) cached() []string {
	names, err := filepath.Glob(filepath.Join(p.root, ".exacta/cache/planner/*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return names
}

// TestCacheHits: the same question is asked once, and the answer is the same in every mode that
// reads it. Another file in the project, or another operation, is another question.
func TestCacheHits(t *testing.T) {
	pr := newProject(t, "")
	p := newPlayed(t, Config{}, "answer "+anIntent)
	ask := func(p *Planner) string {
		in, f := p.Extract(context.Background(), pr.Project, "x")
		if f != nil {
			return code(f)
		}
		b, f := planInput(pr.Project, &in, nil)
		return string(b) + code(f)
	}
	first := ask(p.Planner)
	for range 2 {
		if got := ask(p.Planner); got != first {
			t.Errorf("%s, want %s", got, first)
		}
	}
	if n := len(p.lines()); n != 2 {
		t.Errorf("%d lines of the planner", n)
	}
	only := New(Config{Kind: Subprocess, Command: []string{"no-such-planner"}, Cache: ReadOnly})
	if got := ask(only); got != first {
		t.Errorf("read_only: %s", got)
	}
	if got := pr.cached(); len(got) != 1 || filepath.Base(got[0]) != cacheName(t, "subprocess", "", "extract_intent", `{"files":[],"markers":[],"toolchain":null,"user_input":"x"}`) {
		t.Errorf("%v", got)
	}
	for _, c := range []Config{{Model: "m"}, {Cache: Off}} { // other questions
		c.Kind, c.Command = Subprocess, []string{"no-such-planner"}
		if got := ask(New(c)); !strings.HasPrefix(got, "AI-003") {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if err := os.WriteFile(filepath.Join(pr.root, "new.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ask(only); got != "AI-003 planner_cache: no such answer" {
		t.Errorf("a miss: %s", got)
	}
	if ask(p.Planner); len(p.lines()) != 3 {
		t.Errorf("%q", p.lines())
	}
}

// cacheName is the name of a file of the cache, made of the canonical text of exacta §4.20.
func cacheName(t *testing.T, kind, model, op, input string) string {
	t.Helper()
	return workspace.Sum([]byte(`{"input":`+input+`,"model":"`+model+`","op":"`+op+`","planner":"`+kind+`","v":1}`)) + ".json"
}

// TestCacheIsNotTrusted: a file that is no answer, or one that no planner may give, is a miss.
func TestCacheIsNotTrusted(t *testing.T) {
	for _, bad := range []string{"", "{", "[]", "{}", anIntent + "x", strings.Repeat(" ", maxAnswer) + anIntent,
		strings.Replace(anIntent, "a.txt", "../a.txt", 1), strings.Replace(anIntent, `"d"`, `"sk-aaaaaaaaaaaaaaaaaaaaaaaa"`, 1)} {
		pr := newProject(t, "")
		p := newPlayed(t, Config{}, "answer "+anIntent)
		p.extract(pr, "x")
		file := pr.cached()[0]
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.extract(pr, "x"); got != "ok" || len(p.lines()) != 3 {
			t.Errorf("%.20q: %s, %d lines", bad, got, len(p.lines()))
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != anIntent {
			t.Errorf("%.20q: it is not replaced: %v", bad, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(pr.root, ".exacta/config.json"), file); err != nil {
			t.Fatal(err)
		}
		if got := p.extract(pr, "x"); got != "ok" {
			t.Errorf("a link: %s", got)
		}
		p.Close()
	}
}

// TestWhatIsKept: no answer that was refused, and none in a mode that does not write.
func TestWhatIsKept(t *testing.T) {
	contradiction := with(anIntent, "constraints", `[{"type":"MUST","description":"Use Go","scope":"global"},{"type":"MUST_NOT","description":"use  go","scope":"global"}]`)
	for act, want := range map[string]string{"answer {}": "AI-005 answer: type: missing", "refuse AI-001": "AI-001 planner: because",
		"answer " + contradiction: "VAL-002 both MUST and MUST_NOT: use  go"} {
		pr := newProject(t, "")
		p := newPlayed(t, Config{}, act)
		if got := p.extract(pr, "x"); got != want || len(pr.cached()) != 0 {
			t.Errorf("%s: %s, %v", act, got, pr.cached())
		}
	}
	pr := newProject(t, "")
	p := newPlayed(t, Config{Cache: Off}, "answer "+anIntent)
	if got := p.extract(pr, "x"); got != "ok" || len(pr.cached()) != 0 {
		t.Errorf("off: %s, %v", got, pr.cached())
	}
	// A plan is kept when the caller wants it, once.
	p = newPlayed(t, Config{}, `answer {"steps":[]}`)
	_, a, f := p.Plan(context.Background(), pr.Project, &planner.Intent{}, nil)
	if f != nil || len(pr.cached()) != 0 {
		t.Fatal(f, pr.cached())
	}
	p.Keep(pr.Project, a, a)
	if len(pr.cached()) != 1 {
		t.Error(pr.cached())
	}
	if _, b, f := p.Plan(context.Background(), pr.Project, &planner.Intent{}, nil); f != nil || b.result != nil || b.key != a.key {
		t.Errorf("%+v %v", b, f)
	}
}

// TestInputs has the text of a generate_plan, byte for byte, and what is left out of it.
func TestInputs(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"limits":{"max_steps_per_plan":3}}`, "a.txt=é\n", "b.bin=\x00", "c.env=X=1", "d/e.txt=other", "latin=\xe9")
	if err := os.Symlink("a.txt", filepath.Join(pr.root, "link")); err != nil {
		t.Fatal(err)
	}
	in := &planner.Intent{Type: "FixBug", Confidence: 0.9, RawInput: "x \"y\"\n", Files: []string{"a.txt", "a.txt", "missing", "b.bin", "latin", "c.env", "link", "d"},
		Symbols: []string{"S"}, Description: "d", Constraints: []plan.Constraint{{Type: "MUST", Description: "t", Scope: "global"}}}
	got, f := planInput(pr.Project, in, []plan.Violation{{Code: "PV-1", Message: "m"}, {Code: "PV-8", Message: "n", StepID: "2"}})
	sum := workspace.Sum([]byte("é\n"))
	want := `{"intent":{"type":"FixBug","confidence":0.9,"raw_input":"x \"y\"\n","target":{"files":["a.txt","a.txt","missing","b.bin","latin","link","d"],"symbols":["S"],"description":"d"},` +
		`"constraints":[{"type":"MUST","description":"t","scope":"global"}]},` +
		`"files":[{"path":"a.txt","size":3},{"path":"b.bin","size":1},{"path":"d/e.txt","size":5},{"path":"latin","size":1}],` +
		`"contexts":[{"path":"a.txt","sha256":"` + sum + `","content":"é\n"}],` +
		`"limits":{"max_steps_per_plan":3,"max_total_files_per_plan":15,"max_diff_lines_per_step":500},` +
		`"feedback":[{"code":"PV-1","message":"m","step_id":null},{"code":"PV-8","message":"n","step_id":"2"}]}`
	if f != nil || string(got) != want {
		t.Errorf("%s %v\nwant %s", got, f, want)
	}
	if bytes.Contains(got, []byte(pr.root)) {
		t.Error("the root is sent")
	}
	pr.Planner.Toolchain = "go"
	if got := string(extractInput(pr.Project, "x")); !strings.HasSuffix(got, `,"markers":[],"toolchain":"go"}`) {
		t.Error(got)
	}
}

// TestInputIsBounded: the first 2000 files are named, and the content of files takes up to four
// bytes for each token.
func TestInputIsBounded(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"ai":{"max_input_tokens":2}}`, "a=1234", "b=5678", "c=9", "bin=\x00"+strings.Repeat("x", 100))
	f := func(want string, files ...string) {
		t.Helper()
		_, f := planInput(pr.Project, &planner.Intent{Files: files}, nil)
		if got := code(f); got != want {
			t.Errorf("%v: %s, want %s", files, got, want)
		}
	}
	f("ok", "a", "b", "a", "bin")
	f("RES-001 contexts: more than 8 bytes with c", "a", "b", "c")
	large := newProject(t, "", "a=x")
	if err := os.Truncate(filepath.Join(large.root, "a"), 64<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, f := planInput(large.Project, &planner.Intent{Files: []string{"a"}}, nil); code(f) != "RES-001 contexts: more than 400000 bytes with a" {
		t.Error(f)
	}
	many := &listed{project: pr}
	for range maxFiles + 1 {
		many.files = append(many.files, "f")
	}
	limited := *pr.Project
	limited.Tree = many
	if n := strings.Count(string(extractInput(&limited, "x")), `"path"`); n != maxFiles {
		t.Errorf("%d files", n)
	}
	many.files = many.files[:maxFiles]
	if n := strings.Count(string(extractInput(&limited, "x")), `"path"`); n != maxFiles {
		t.Errorf("%d files", n)
	}
}

// TestLineIsBounded: an input that makes the line too long is not sent.
func TestLineIsBounded(t *testing.T) {
	pr := newProject(t, "")
	p := newPlayed(t, Config{Cache: Off}, `answer {"steps":[]}`)
	least, f := planInput(pr.Project, &planner.Intent{}, nil)
	if f != nil {
		t.Fatal(f)
	}
	for more, want := range []string{"ok", "RES-001 planner: its input would have more than 4 MiB"} {
		in := &planner.Intent{RawInput: strings.Repeat("x", maxInput-len(least)+more)}
		if _, _, f := p.Plan(context.Background(), pr.Project, in, nil); code(f) != want {
			t.Errorf("%v, want %s", f, want)
		}
	}
	for _, line := range p.lines()[1:] {
		if len(line) > maxAnswer {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// listed is a project with an index of its own.
type listed struct {
	*project
	files []string
}

func (l *listed) Files() []string { return l.files }

// TestSecretsStay: no file with a credential is sent, whatever has it.
func TestSecretsStay(t *testing.T) {
	const key = "sk-aaaaaaaaaaaaaaaaaaaaaaaa"
	pr := newProject(t, "", "a.txt=key "+key, "b.txt=x")
	p := newPlayed(t, Config{}, `answer {"steps":[]}`)
	f := func(want string, in planner.Intent) {
		t.Helper()
		_, _, f := p.Plan(context.Background(), pr.Project, &in, nil)
		if got := code(f); got != want {
			t.Errorf("%+v: %s, want %s", in, got, want)
		}
	}
	f("SEC-003 contexts: in a.txt", planner.Intent{Files: []string{"b.txt", "a.txt"}})
	f("SEC-003 planner: in what would be sent", planner.Intent{Description: key})
	f("SEC-003 planner: in what would be sent", planner.Intent{RawInput: "authorization:\nbearer abcdefgh"})
	f("ok", planner.Intent{Files: []string{"b.txt"}})
	if n := len(p.lines()); n != 2 {
		t.Errorf("%q", p.lines())
	}
	named := newProject(t, "", key+".txt=x")
	if got := p.extract(named, "x"); got != "SEC-003 planner: in what would be sent" {
		t.Error(got)
	}
}

// TestKeepGoesOnWithoutDisk: a cache that cannot be written costs no answer.
func TestKeepGoesOnWithoutDisk(t *testing.T) {
	pr := newProject(t, "", ".exacta/cache=a file")
	p := newPlayed(t, Config{}, "answer "+anIntent)
	if got := p.extract(pr, "x"); got != "ok" {
		t.Error(got)
	}
}
