package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// hostile are prompts that could act on something other than their pane. Control characters are
// dropped before (threads §4.9).
func hostile(file string) []string {
	run := "$(touch " + file + ")`touch " + file + "`;touch " + file
	return []string{
		"Read & reply",
		"-t other:0.0\n" + run + ";",
		"-R", "-X cancel", "-l -t other:0.0 x", "--", "-",
		"a;", ";", "\\;", "kill-server ;", "; kill-server",
		"#{pane_id} #(touch " + file + ") %%1 %1 =other: {last}",
		"'\"\\ \\n \\x1b ~ ! !! ^a^b ${HOME} *",
		"Enter", "C-c", "M-x\nEscape\nC-m",
		"\n\n leading and trailing \n\n",
		"tab\there", "[200~ no escape [201~",
		"é ü 日本語 🙂 \u202e\u2066 ﷽", "\u00a0\u2028\ufeff",
		strings.Repeat(strings.Repeat("0123456789abcdef", 63)+"\n", 8) + run,
	}
}

func envelope(prompt string) []byte {
	return []byte("[BRIDGE_TRIGGER id=trg_1 thread=th_1 reason=r]\n" + prompt + "\n[/BRIDGE_TRIGGER]")
}

func TestPromptsArriveLiterally(t *testing.T) {
	r := newRig(t)
	made := filepath.Join(r.dir, "made")
	_, before := r.tee("other", "0")
	_, file := r.tee("agents_core", "reviewer")
	_, similar := r.tee("agents_core", "reviewer2")
	_, longer := r.tee("agents_core2", "reviewer")
	want := ""
	for i, prompt := range hostile(made) {
		text := envelope(prompt)
		r.deliver(Attempt{TriggerID: fmt.Sprintf("trg_%d", i), Runtime: []string{"agents_core:reviewer.0", "agents_core:reviewer", "agents_core:0.0"}[i%3], Envelope: text}, Success)
		want += string(text) + "\n"
		r.wantFile(file, want)
	}
	for _, other := range []string{before, similar, longer} {
		r.wantFile(other, "")
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a prompt was executed")
	}
}

// TestPromptIsOnePaste: a program that understands pastes gets one, and then the key.
func TestPromptIsOnePaste(t *testing.T) {
	r := newRig(t)
	_, file := r.receiver("agents_core", "reviewer")
	want := ""
	for _, prompt := range append(hostile(filepath.Join(r.dir, "made")), "a\nb;", strings.Repeat("é-;", 8192/4)) {
		text := string(envelope(prompt))
		r.deliver(Attempt{Runtime: "agents_core:reviewer.0", Envelope: []byte(text)}, Success)
		want += "\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~\r"
		r.wantFile(file, want)
	}
}

func TestTargets(t *testing.T) {
	r := newRig(t)
	r.window("agents_core", "reviewer", "tee", os.DevNull)
	r.window("agents_core", "twin", "tee", os.DevNull)
	r.window("agents_core", "twin", "tee", os.DevNull)
	r.tmux("set-option", "-g", "remain-on-exit", "on")
	dead := r.window("agents_core", "dead", "true", "x")
	kit.Until(
		t,
		"the program ends",
		func() bool { return r.tmux("display-message", "-p", "-t", dead, "#{pane_dead}") == "1" },
	)
	r.window("agents_core", "two", "tee", os.DevNull)
	r.tmux("split-window", "-d", "-t", "=agents_core:two", "tee", filepath.Join(r.dir, "2.tee"))
	shell := r.window("agents_core", "shell", "/bin/sh")
	login := r.window("agents_core", "login", os.Args[0], "named", "/bin/sh", "-sh")
	copying := r.window("agents_core", "copying", "tee", filepath.Join(r.dir, "3.tee"))
	r.tmux("copy-mode", "-t", copying)
	r.window("agents_core", "other:0.0", "tee", filepath.Join(r.dir, "4.tee"))
	r.window("agents_core", "1", "tee", os.DevNull) // another window has that index
	r.window("private", "0", "tee", filepath.Join(r.dir, "5.tee"))
	r.tmux("new-session", "-d", "-t", "agents_core", "-s", "agents_group") // shows the same windows
	kit.Until(t, "all programs run", func() bool {
		return strings.HasSuffix(r.command(shell), "sh") && strings.HasSuffix(r.command(login), "sh") &&
			!strings.Contains(r.tmux("list-panes", "-a", "-F", "<#{pane_current_command}>"), "supervisor.test")
	})
	f := func(runtime string, forced bool, want Code) {
		t.Helper()
		r.deliver(Attempt{Runtime: runtime, Forced: forced}, want)
	}
	f("agents_core", false, UnsupportedRuntime)
	f("private:0.0", false, TargetNotAllowed)
	f("private:0.0", true, TargetNotAllowed)
	f("Agents_core:reviewer.0", false, TargetNotAllowed)
	f("agents_cor:reviewer.0", false, TargetNotFound) // tmux itself would find a prefix
	f("agents_:reviewer.0", false, TargetNotFound)
	f("agents_core:review.0", false, TargetNotFound)
	f("agents_core:Reviewer.0", false, TargetNotFound)
	f("agents_core:reviewer.1", false, TargetNotFound)
	f("agents_core:reviewer.0", false, Success)
	f("agents_group:reviewer.0", false, Success)
	f("agents_core:99.0", false, TargetNotFound)
	f("agents_core:twin.0", false, TargetNotFound) // which of them?
	f("agents_core:1.0", false, TargetNotFound)
	f("agents_core:2.0", false, Success)
	f("agents_core:dead.0", false, PaneDead)
	f("agents_core:dead.0", true, PaneDead)
	f("agents_core:two", false, TargetNotFound)
	f("agents_core:two.1", false, Success)
	r.wantFile(filepath.Join(r.dir, "2.tee"), "hello\n")
	f("agents_core:shell.0", false, PaneIsShell)
	f("agents_core:shell.0", true, PaneIsShell)
	f("agents_core:login.0", false, PaneIsShell)
	f("agents_core:copying.0", false, OperatorBusy)
	f("agents_core:copying.0", true, Success)
	r.wantFile(filepath.Join(r.dir, "3.tee"), "hello\n")
	r.wantFile(filepath.Join(r.dir, "4.tee"), "")
	r.wantFile(filepath.Join(r.dir, "5.tee"), "")
	r.deliver(Attempt{TriggerID: "trg_1;", Runtime: "agents_core:reviewer.0"}, SendKeysError)
}

// TestShellsByAnotherName: what the processes of a pane are counts, not what tmux calls the pane.
func TestShellsByAnotherName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes of a pane are inspected on Linux")
	}
	r := newRig(t)
	made := filepath.Join(r.dir, "made")
	renamed := filepath.Join(r.dir, "codex")
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(renamed, text, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(r.dir, "agent")
	if err := os.Symlink(shell, link); err != nil {
		t.Fatal(err)
	}
	n := 0
	f := func(want Code, argv ...string) {
		t.Helper()
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Logf("%s is not installed", argv[0])
			return
		}
		n++
		name := fmt.Sprint("w", n)
		id := r.window("agents_core", name, argv...)
		kit.Until(t, "the program runs", func() bool {
			pid, _ := strconv.Atoi(r.tmux("display-message", "-p", "-t", id, "#{pane_pid}"))
			list, ok := readers(pid)
			started := false // a script's child begins as a script, too
			for i := range list {
				ok = ok && !strings.HasSuffix(list[i].names[1], "supervisor.test")
				started = started || list[i].names[1] != "script"
			}
			shown := filepath.Base(argv[0]) // by tmux: nothing that is denied
			if shown == "supervisor.test" {
				shown = argv[3]
			}
			return ok && r.command(id) == shown && (shown != "script" || started)
		})
		r.deliver(Attempt{Runtime: "agents_core:" + name + ".0",
			Envelope: []byte("echo >" + made + "\nopen('" + made + "','w')"), Forced: true}, want)
	}
	f(PaneIsShell, renamed, "-i")
	f(PaneIsShell, link, "-i")
	f(PaneIsShell, os.Args[0], "named", shell, "claude")
	f(PaneIsShell, os.Args[0], "named", shell, "claude", "-i", "-e")
	f(PaneIsShell, "script", "-qc", shell, os.DevNull)
	if found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil { // not a script that finds it
		python := strings.TrimSpace(string(found))
		f(PaneIsShell, python, "-q")
		f(PaneIsShell, python, "-u", "-i")
		f(Success, python, "-c", "import time; time.sleep(1000)")
	}
	f(Success, os.Args[0], "named", shell, "agent", "-ec", "read x; read y; exec sleep 1000")
	r.tm.cfg.Allow = []string{"tee"}
	f(Success, "tee", os.DevNull)
	f(TargetNotAllowed, "cat", "-u")
	if _, err := os.Stat(made); err == nil {
		t.Error("a prompt was executed")
	}
}

// TestAtPrompt has arguments of shells and interpreters.
func TestAtPrompt(t *testing.T) {
	for line, want := range map[string]bool{
		"sh": true, "-bash": true, "bash -l": true, "bash --login -o vi": true, "bash --rcfile x": true, "sh -c x": false,
		"bash -lc x": false, "bash -ic x": true, "bash -e": true,
		"sh x": false, "sh -x x -i": false, "sh -s": true, "sh -": true,
	} {
		if got := atPrompt(strings.Fields(line), "c"); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	for line, want := range map[string]bool{"python3": true, "python3 -m x": false, "python3 -X dev": true,
		"python3 x": false, "python3 -i x": true, "node -e x": false, "node --eval x": false} {
		if got := atPrompt(strings.Fields(line), "cemp"); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestNoServer(t *testing.T) {
	r := newRig(t)
	if err := r.tm.Available(context.Background()); err != nil {
		t.Error(err)
	}
	if o := r.tm.Deliver(context.Background(), Attempt{TriggerID: "trg_1", Runtime: "agents_core:0.0"}); o.Code != TargetNotFound {
		t.Error(o)
	}
}

// TestForgedLines: a window or a program whose name contains lines of list-panes gains no pane, and
// hides none.
func TestForgedLines(t *testing.T) {
	r := newRig(t)
	private, file := r.tee("private", "reviewer")
	r.tee("agents_core", "main")
	line := "agents_core|ghost|7|0|" + private + "|0|0|tee|00"
	for _, name := range []string{"\n" + line + "\n", "x|" + line, "x\n" + line, line} {
		r.window("agents_core", name, "tee", os.DevNull)
		r.window("agents_core", "forger", os.Args[0], "named", "/bin/sleep", name, "1000")
	}
	two := r.window("agents_core", "two", "tee", os.DevNull)
	r.tmux("split-window", "-d", "-t", two, "-e", roleName+"=1", os.Args[0], "named", "/bin/sleep", "a|b", "1000")
	kit.Until(t, "the programs run", func() bool {
		list := r.tmux("list-panes", "-a", "-F", "<#{pane_current_command}>")
		return strings.Count(list, line) == 4 && strings.Contains(list, "<a|b>")
	})
	for _, runtime := range []string{"agents_core:ghost.0", "agents_core:ghost", "agents_core:7.1", "agents_core:two", "private:reviewer.0"} {
		want := TargetNotFound
		if strings.HasPrefix(runtime, "private") {
			want = TargetNotAllowed
		}
		r.deliver(Attempt{Runtime: runtime, Forced: true}, want)
	}
	r.deliver(Attempt{Runtime: "agents_core:main.0"}, Success)
	r.deliver(Attempt{Runtime: "agents_core:1.0"}, Success) // a window of such a name, by its index
	r.wantFile(file, "")
}

// TestOddSessions: names that mean something else to tmux.
func TestOddSessions(t *testing.T) {
	r := newRig(t)
	r.tm.cfg.Sessions = []string{"*"}
	r.tee("first", "w")
	for _, session := range []string{"%0", "@0", "+", "=x", "=", "0", "a,b"} {
		_, file := r.tee(session, "w")
		r.deliver(Attempt{Runtime: session + ":w.0", Envelope: []byte("for " + session)}, Success)
		r.wantFile(file, "for "+session+"\n")
	}
}

// TestPastedIsSubmitted: an interruption after the paste does not stop the key.
func TestPastedIsSubmitted(t *testing.T) {
	r := newRig(t)
	_, file := r.receiver("agents_core", "reviewer")
	tm := r.tmuxAt(r.script("#!/bin/sh\nif [ \"$1\" = paste-buffer ]; then\ntmux \"$@\" && echo >" + r.dir + "/pasted\nuntil [ -e " + r.dir + "/on ]; do :; done; exit 0\nfi\nexec tmux \"$@\"\n"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan Outcome, 1)
	go func() {
		ended <- tm.Deliver(ctx, Attempt{TriggerID: "trg_1", Runtime: "agents_core:reviewer.0", Envelope: []byte("hello")})
	}()
	kit.Until(t, "it is pasted", func() bool { return contents(r.dir+"/pasted") != "" })
	cancel()
	writeWhole(r.dir+"/on", "x")
	if o := <-ended; o.Code != Success {
		t.Error(o)
	}
	r.wantFile(file, "\x1b[200~hello\x1b[201~\r")
}

// TestChangesBeforeThePaste: what was right at the first look must be right immediately before the
// paste.
func TestChangesBeforeThePaste(t *testing.T) {
	f := func(hook string, want Code) {
		t.Helper()
		r := newRig(t)
		id, file := r.tee("agents_core", "reviewer")
		r.tee("agents_core", "main")
		script := "#!/bin/sh\nif [ \"$1\" = load-buffer ]; then\n(" + strings.ReplaceAll(hook, "ID", id) + ") </dev/null || exit 9\nfi\nexec tmux \"$@\"\n"
		r.deliverBy(r.tmuxAt(r.script(script)), Attempt{Runtime: "agents_core:reviewer.0"}, want)
		if want != Success {
			r.wantFile(file, "")
		}
	}
	f("true", Success)
	f("tmux respawn-pane -k -t ID /bin/sh; until tmux list-panes -t ID -F '#{pane_current_command}' | grep -q sh$; do :; done", PaneIsShell)
	f("tmux kill-pane -t ID", TargetNotFound)
	f("tmux rename-window -t ID gone", TargetNotFound)
	f("tmux rename-window -t ID gone; tmux rename-window -t agents_core:main reviewer", TargetNotFound)
	f("tmux copy-mode -t ID", OperatorBusy)
	f("tmux split-window -d -t ID tee; tmux set-option -w -t ID synchronize-panes on", OperatorBusy)
	f("tmux select-pane -d -t ID", OperatorBusy)
	f("false", SendKeysError)
}

// script writes a program that stands in for tmux.
func (r *rig) script(text string) string {
	r.t.Helper()
	file := filepath.Join(r.dir, "fake")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// TestFailingCommands: every step may fail, hang or write without end.
func TestFailingCommands(t *testing.T) {
	r := newRig(t)
	_, file := r.tee("agents_core", "reviewer")
	f := func(step, action string, want Code) {
		t.Helper()
		script := r.script("#!/bin/sh\nif [ \"$1 $2\" = '" + step + "' ]; then\n" + action + "\nfi\nexec tmux \"$@\"\n")
		tm := r.tmuxAt(script)
		if strings.Contains(action, "sleep") {
			tm.timeout = time.Second
		}
		r.deliverBy(tm, Attempt{Runtime: "agents_core:reviewer.0"}, want)
	}
	for _, action := range []string{"exit 1", "kill -9 $$", "sleep 1000 & echo $! >" + r.dir + "/pid; wait", "exec yes"} {
		listed := SendKeysError
		if action == "exit 1" || strings.HasPrefix(action, "kill") {
			listed = TargetNotFound
		}
		f("list-panes -a", action, listed)
		f("list-clients -F", action, SendKeysError)
		f("load-buffer -b", action, SendKeysError)
		f("paste-buffer -p", action, SendKeysError)
		r.wantFile(file, "")
	}
	kit.Until(
		t,
		"what a command left behind ends",
		func() bool { return gone(strings.TrimSpace(contents(r.dir + "/pid"))) },
	)
	f("send-keys -t", "exit 1", SendKeysError)
	r.deliverBy(r.tmuxAt(r.script("#!/no/such/program\n")), Attempt{Runtime: "agents_core:reviewer.0"}, SendKeysError)
}

func TestInterruptedDelivery(t *testing.T) {
	r := newRig(t)
	r.tee("agents_core", "reviewer")
	tm := r.tmuxAt(r.script("#!/bin/sh\n[ \"$1\" = load-buffer ] && echo >" + r.dir + "/loading && exec sleep 1000\nexec tmux \"$@\"\n"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan Outcome, 1)
	go func() { ended <- tm.Deliver(ctx, Attempt{TriggerID: "trg_1", Runtime: "agents_core:reviewer.0"}) }()
	kit.Until(t, "it loads", func() bool { return contents(r.dir+"/loading") != "" })
	cancel()
	if o := <-ended; o.Code != Interrupted {
		t.Error(o)
	}
}

// TestOneDeliveryPerPane: prompts for one pane do not mix, those for others do not wait.
func TestOneDeliveryPerPane(t *testing.T) {
	r := newRig(t)
	_, file := r.receiver("agents_core", "reviewer")
	const n = 8
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), 3000)
			if o := r.tm.Deliver(context.Background(), Attempt{TriggerID: fmt.Sprint("trg_", i), Runtime: "agents_core:reviewer.0", Envelope: []byte(text)}); o.Code != Success {
				t.Error(o)
			}
		})
	}
	all.Wait()
	kit.Until(t, "all arrive", func() bool { return strings.Count(contents(file), "\x1b[201~\r") == n })
	for i := range n {
		if text := "\x1b[200~" + strings.Repeat(string(rune('a'+i)), 3000) + "\x1b[201~\r"; strings.Count(contents(file), text) != 1 {
			t.Errorf("prompt %d did not arrive as one", i)
		}
	}
	if len(r.tm.panes) != 0 {
		t.Error("locks are left", r.tm.panes)
	}
}

func TestLockWaits(t *testing.T) {
	tm := &Tmux{panes: map[string]*paneLock{}}
	unlock, err := tm.lock(context.Background(), "%1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := tm.lock(context.Background(), "%2")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tm.lock(over, "%1"); err == nil {
		t.Error("two have it")
	}
	unlock()
	other()
	if len(tm.panes) != 0 {
		t.Error("locks are left")
	}
}

func TestEnvironmentOfTmux(t *testing.T) {
	r := newRig(t)
	tm := r.tmuxAt(r.script("#!/bin/sh\nexec env\n"))
	text, err := tm.run(context.Background(), nil)
	if err != nil || strings.Contains(text, "TMUX=") || strings.Contains(text, "SECRET") || !strings.Contains(text, "TMUX_TMPDIR="+r.dir) || !strings.Contains(text, "LC_ALL=C.UTF-8") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestNewTmuxRefuses(t *testing.T) {
	if _, err := NewTmux(TmuxConfig{Path: "no-such-tmux", Environ: os.Environ()}); err == nil {
		t.Error("a program that is not there")
	}
	if _, err := NewTmux(TmuxConfig{Sessions: []string{"["}}); err == nil {
		t.Error("a pattern that is none")
	}
}

func TestDenied(t *testing.T) {
	tm := &Tmux{cfg: TmuxConfig{Deny: []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh", "csh", "pwsh", "nu", "sudo", "su", "ssh", "login"}}}
	f := func(command string, want bool) {
		t.Helper()
		if tm.denied(command) != want {
			t.Errorf("%q: %v", command, !want)
		}
	}
	f("bash", true)
	f("-bash", true)
	f("/usr/bin/zsh", true)
	f("", true)
	f("bashful", false)
	f("cat", false)
}

func TestVersions(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if newEnough(text) != want {
			t.Error(text)
		}
	}
	f("tmux 3.2", true)
	f("tmux 3.3a\n", true)
	f("tmux 3.10\n", true)
	f("tmux 4.0\n", true)
	f("tmux next-3.6\n", true)
	f("tmux master\n", true)
	f("tmux 3.1c\n", false)
	f("tmux 2.9a\n", false)
	f("tmux 1.8\n", false)
	f("tmux\n", false)
	f("", false)
	f("screen 4.9", false)
	f("tmux 99999999999.0", false)
}
