package supervisor

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
)

// attach has a person look at a session on a terminal. What is written to the result is typed.
func (r *rig) attach(session string) (keys *os.File) {
	r.t.Helper()
	keys, tty := kit.Terminal(r.t)
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30}); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("tmux", "attach-session", "-t", "="+session)
	cmd.Env = r.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	before := strings.Count(r.tmux("list-clients"), "\n")
	if err := kit.Start(cmd); err != nil {
		r.t.Fatal(err)
	}
	_ = tty.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, keys) // it ends with EIO when the client has ended
	}()
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-read
		_ = keys.Close()
	})
	kit.Until(r.t, "the client is attached", func() bool {
		list := r.tmux("list-clients")
		return list != "" && strings.Count(list, "\n") >= before
	})
	return keys
}

// TestPersonAtThePane: a person who used a client of the pane a moment ago is left alone, however
// the client comes to show the pane.
func TestPersonAtThePane(t *testing.T) {
	r := newRig(t)
	id, file := r.tee("agents_core", "reviewer")
	_, other := r.tee("agents_core", "other")
	r.tee("private", "main")
	keys := r.attach("agents_core")
	if _, err := io.WriteString(keys, "typed\r"); err != nil {
		t.Fatal(err)
	}
	r.wantFile(file, "typed\n")
	r.now = time.Now() // the seconds of this test do not matter
	f := func(runtime string, forced bool, want Code) {
		t.Helper()
		r.deliver(Attempt{Runtime: runtime, Forced: forced}, want)
	}
	f("agents_core:reviewer.0", false, OperatorBusy)
	f("agents_core:other.0", false, Success) // it is not shown
	r.wantFile(other, "hello\n")
	f("agents_core:reviewer.0", true, Success)
	r.wantFile(file, "typed\nhello\n")

	r.attach("private") // used, but elsewhere; two clients
	f("agents_core:reviewer.0", false, OperatorBusy)
	r.tmux("split-window", "-t", id, "tee", os.DevNull) // the person is in the other pane, and sees this one
	f("agents_core:reviewer.0", false, OperatorBusy)
	r.tmux("resize-pane", "-Z", "-t", "=agents_core:reviewer.1")
	f("agents_core:reviewer.0", false, Success)
	r.tmux("resize-pane", "-Z", "-t", "=agents_core:reviewer.1")
	r.tmux("select-window", "-t", "=agents_core:other")
	f("agents_core:reviewer.0", false, Success)
	f("agents_core:other.0", false, OperatorBusy)

	r.now = time.Now().Add(quiet + time.Minute)
	f("agents_core:other.0", false, Success)
	r.now = time.Now().Add(-time.Hour) // the clock was set back
	f("agents_core:other.0", false, Success)
	r.now = time.Now()
	r.tm.cfg.Quiet = 0
	f("agents_core:other.0", false, Success)
}

// TestClientOfALinkedWindow: a window is shown by a session of another name.
func TestClientOfALinkedWindow(t *testing.T) {
	r := newRig(t)
	id, _ := r.tee("agents_core", "reviewer")
	r.tmux("new-session", "-d", "-s", "a|b", "-x", "100", "-y", "30", "tee", os.DevNull)
	r.tmux("link-window", "-d", "-s", id, "-t", "=a|b:7")
	r.attach("a|b")
	r.now = time.Now()
	r.deliver(Attempt{Runtime: "agents_core:reviewer.0"}, Success)
	r.tmux("select-window", "-t", "=a|b:7")
	r.deliver(Attempt{Runtime: "agents_core:reviewer.0"}, OperatorBusy)
}

// TestSynchronizedPanes: the key that submits the prompt would reach the other pane too.
func TestSynchronizedPanes(t *testing.T) {
	r := newRig(t)
	id, file := r.tee("agents_core", "reviewer")
	beside := filepath.Join(r.dir, "beside")
	r.tmux("split-window", "-d", "-t", id, "tee", beside)
	r.tmux("set-option", "-w", "-t", id, "synchronize-panes", "on")
	r.deliver(Attempt{Runtime: "agents_core:reviewer.0", Forced: true}, OperatorBusy)
	r.tmux("set-option", "-w", "-t", id, "synchronize-panes", "off")
	r.tmux("select-pane", "-d", "-t", id)
	r.deliver(Attempt{Runtime: "agents_core:reviewer.0", Forced: true}, OperatorBusy)
	r.wantFile(file, "")
	r.tmux("select-pane", "-e", "-t", id)
	r.deliver(Attempt{Runtime: "agents_core:reviewer.0"}, Success)
	r.wantFile(file, "hello\n")
	if got := contents(beside); got != "" {
		t.Errorf("the other pane got %q", got)
	}
}
