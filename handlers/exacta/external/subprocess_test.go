package external

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestPlannerLine is E15: the line that a planner gets, byte for byte, and its answer.
func TestPlannerLine(t *testing.T) {
	pr := newProject(t, "")
	p := newPlayed(t, Config{}, "answer "+unknownIntent)
	in, f := p.Extract(context.Background(), pr.Project, "x")
	if f != nil || in.Type != "UnknownIntent" || in.Confidence != 0 || in.Description != "x" || in.Files != nil || in.Constraints != nil {
		t.Fatalf("%+v %v", in, f)
	}
	want := regexp.MustCompile(`^\{"protocol":"exacta-planner/1","id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}","op":"extract_intent",` +
		`"input":\{"user_input":"x","files":\[\],"markers":\[\],"toolchain":null\}\}$`)
	if got := p.lines(); len(got) != 2 || !want.MatchString(got[1]) {
		t.Errorf("%q", got)
	}
}

// TestSubprocessIsKept: one process answers one question after the other, in an empty directory
// with three variables, and is ended with the directory.
func TestSubprocessIsKept(t *testing.T) {
	t.Setenv("LANG", "C")
	t.Setenv("TRUNKLINE_SECRET", "x")
	pr := newProject(t, "")
	p := newPlayed(t, Config{Cache: Off}, "answer "+unknownIntent, "blank "+unknownIntent, "chatty "+unknownIntent, "refuse AI-002", "answer "+unknownIntent)
	for i, want := range []string{"ok", "ok", "ok", "AI-002 planner: because", "ok"} {
		if got := p.extract(pr, "x"); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	got := p.lines()
	if len(got) != 6 || p.starts() != 1 {
		t.Fatalf("%q", got)
	}
	words := strings.Fields(got[0])
	for _, v := range words[3:] {
		if name, _, _ := strings.Cut(v, "="); name != "PATH" && name != "HOME" && name != "LANG" {
			t.Errorf("variable %s", name)
		}
	}
	if words[2] != "0" {
		t.Errorf("the directory has %s files", words[2])
	}
	p.Close()
	if _, err := os.Stat(words[1]); !os.IsNotExist(err) {
		t.Errorf("the directory stays: %v", err)
	}
	if got := p.extract(pr, "x"); got != "AI-003 planner: the server stops" {
		t.Error(got)
	}
}

// TestHostileSubprocess has what a process may do wrong. Each is over at once, and another process
// answers the next question.
func TestHostileSubprocess(t *testing.T) {
	ok := "answer " + unknownIntent
	f := func(want string, starts int, acts ...string) {
		t.Helper()
		pr := newProject(t, "")
		p := newPlayed(t, Config{Cache: Off}, acts...)
		if got := p.extract(pr, "x"); got != want {
			t.Errorf("%.60q: %s, want %s", acts, got, want)
		}
		if n := p.starts(); n != starts {
			t.Errorf("%.60q: %d starts, want %d", acts, n, starts)
		}
		p.Close()
	}
	// What cannot be understood is asked once more, of another process if the line was not sound.
	f("AI-005 answer: unexpected character 'h' at offset 0", 2, "say hello")
	f("AI-005 answer: id: another one", 2, `say {"id":"00000000-0000-4000-8000-000000000001","ok":true,"result":{}}`)
	f("AI-005 answer: id: missing", 2, `say {"ok":true,"result":{}}`)
	f("AI-005 answer: ok: neither true nor false", 2, `say {"id":"{ID}","ok":1,"result":{}}`)
	f("AI-005 answer: error: no object", 2, `say {"id":"{ID}","ok":false}`)
	f("AI-005 answer: error.code: not one of planners", 2, "refuse ST-002")
	f("AI-005 answer: line: no object", 2, "say []")
	f("AI-005 answer: duplicate key at offset 45", 2, `say {"id":"{ID}","id":"{ID}","ok":true,"result":{}}`)
	f("AI-005 answer: result: no object", 1, "answer 1")
	f("AI-005 answer: type: missing", 1, "answer {}")
	f("ok", 1, "answer {}", ok)
	f("AI-005 answer: unexpected character 0xFF at offset 0", 2, "say \xff")
	// The limit of a line is 4 MiB.
	f("ok", 1, "size 4194304")
	f("AI-004 answer: more than 4 MiB", 1, "size 4194305")
	f("AI-004 answer: more than 4 MiB", 1, "huge")
	// A process that ends is started again by the next question; its last answer counts.
	f("AI-003 planner: it has ended", 1, "exit")
	f("AI-003 planner: it has ended", 1, "part")
	f("ok", 1, "last "+unknownIntent)
	// What nothing may send or receive.
	f("SEC-003 planner: in its answer", 1, `answer {"type":"FixBug","note":"sk-aaaaaaaaaaaaaaaaaaaaaaaa"}`)
	f("SEC-003 planner: in its answer", 1, `answer {"type":"FixBug","note":"\u0073k-aaaaaaaaaaaaaaaaaaaaaaaa"}`)
}

// TestSilentSubprocess: a planner that does not answer, or does not read, is killed when the time
// limit of the project is over.
func TestSilentSubprocess(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"limits":{"ai_timeout_seconds":1}}`)
	for _, act := range []string{"silent", "deaf"} {
		p := newPlayed(t, Config{}, act)
		input := "x"
		if act == "deaf" {
			input = strings.Repeat("x", 1<<20) // more than a pipe holds
		}
		if got := p.extract(pr, input); got != "AI-003 planner: no answer in time" {
			t.Errorf("%s: %s", act, got)
		}
		p.Close() // waits until the process is gone
	}
}

// TestCancelEndsSubprocess: an abort ends the call at once, and the process with it.
func TestCancelEndsSubprocess(t *testing.T) {
	pr := newProject(t, "")
	p := newPlayed(t, Config{Cache: Off}, "silent", "answer "+unknownIntent)
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan string, 1)
	go func() {
		_, f := p.Extract(ctx, pr.Project, "x")
		asked <- code(f)
	}()
	awaitFor(t, "the question", func() bool { return len(p.lines()) == 2 })
	cancel()
	if got := <-asked; got != "IPC-010 " {
		t.Error(got)
	}
	if _, f := p.Extract(ctx, pr.Project, "x"); code(f) != "IPC-010 " {
		t.Error(f)
	}
}

// TestSubprocessIsRestarted: a process that died between two questions costs none of them.
func TestSubprocessIsRestarted(t *testing.T) {
	pr := newProject(t, "")
	p := newPlayed(t, Config{Cache: Off}, "answer "+unknownIntent)
	pool := p.asker.(*pool)
	for n := 1; n <= 3; n++ {
		if got := p.extract(pr, "x"); got != "ok" || p.starts() != n {
			t.Fatalf("%s, %d starts", got, p.starts())
		}
		proc := pool.idle[0]
		if err := syscall.Kill(proc.proc.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-proc.gone
	}
}

// TestSubprocessesAreBounded: more questions than processes wait for one.
func TestSubprocessesAreBounded(t *testing.T) {
	p := newPlayed(t, Config{Cache: Off}, "answer "+unknownIntent)
	var all sync.WaitGroup
	for range 3 * maxProcesses {
		pr := newProject(t, "")
		all.Go(func() {
			if got := p.extract(pr, "x"); got != "ok" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if n := p.starts(); n < 1 || n > maxProcesses {
		t.Errorf("%d processes", n)
	}
	full := p.asker.(*pool)
	for range maxProcesses {
		full.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, f := full.ask(ctx, &query{}); code(f) != "IPC-010 " {
		t.Error(f)
	}
	for range maxProcesses {
		<-full.places
	}
}

// TestSubprocessThatCannotStart: no such program, and one that is no program.
func TestSubprocessThatCannotStart(t *testing.T) {
	pr := newProject(t, "", "notes.txt=x")
	for _, name := range []string{"no-such-planner", "./no/such", pr.root + "/notes.txt"} {
		p := New(Config{Kind: Subprocess, Command: []string{name}})
		if _, f := p.Extract(context.Background(), pr.Project, "x"); code(f) != "AI-003 planner: cannot be started" {
			t.Errorf("%s: %v", name, f)
		}
		p.Close()
	}
}

// TestStderrIsRedacted: what a planner that ended wrote last is in the log, without secrets.
func TestStderrIsRedacted(t *testing.T) {
	var log bytes.Buffer
	pr := newProject(t, "")
	p := newPlayed(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, "exit")
	p.extract(pr, "x")
	p.Close()
	if got := log.String(); !strings.Contains(got, "key [REDACTED] is bad") || !strings.Contains(got, "code=3") || strings.Contains(got, "sk-") {
		t.Error(got)
	}
}
