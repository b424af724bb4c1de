package supervisor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// rig is a tmux server of a test.
type rig struct {
	t   *testing.T
	dir string
	env []string
	tm  *Tmux
	now time.Time // of tm; zero: the present
}

// newRig makes a Tmux for a server of its own. The server begins with the first window.
func newRig(t *testing.T) *rig {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: install the package tmux")
	}
	dir, err := os.MkdirTemp("", "sup") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, env: []string{"TMUX_TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "TERM=xterm", "SHELL=/bin/sh"}}
	r.tm = r.tmuxAt("")
	t.Cleanup(func() {
		kill := exec.Command("tmux", "kill-server")
		kill.Env = r.env
		_ = kill.Run() // there may be none
		kit.Until(t, "the server ends", func() bool {
			list := exec.Command("tmux", "list-sessions")
			list.Env = r.env
			return list.Run() != nil
		})
		_ = os.RemoveAll(dir)
	})
	return r
}

// tmuxAt returns a Tmux for another program.
func (r *rig) tmuxAt(path string) *Tmux {
	r.t.Helper()
	tm, err := NewTmux(TmuxConfig{Path: path, Environ: append([]string{"TMUX=none,1,0", "SECRET=x"}, r.env...), Sessions: []string{"agents_*"}, Deny: []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh", "csh", "pwsh", "nu", "sudo", "su", "ssh", "login"},
		Quiet: quiet, Parse: parseRuntime, Now: func() time.Time {
			if r.now.IsZero() {
				return time.Now()
			}
			return r.now
		}})
	if err != nil {
		r.t.Fatal(err)
	}
	tm.timeout = waitFor // a busy machine is no failure
	tm.limit = 2 * waitFor
	return tm
}

// parseRuntime reads session:window[.pane].
func parseRuntime(runtime string) (session, window string, pane int, ok bool) {
	session, rest, ok := strings.Cut(runtime, ":")
	window, index, has := strings.Cut(rest, ".")
	if pane = -1; has {
		var err error
		pane, err = strconv.Atoi(index)
		ok = ok && err == nil
	}
	return session, window, pane, ok
}

// tmux runs tmux as a person would.
func (r *rig) tmux(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-f", os.DevNull}, args...)...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// window opens a window that runs a program, with its session where that is new, and returns its
// pane.
func (r *rig) window(session, name string, argv ...string) (id string) {
	r.t.Helper()
	cmd := exec.Command("tmux", "has-session", "-t", "="+session)
	cmd.Env = r.env
	open := []string{"new-window", "-d", "-t", "=" + session + ":"}
	if cmd.Run() != nil {
		open = []string{"new-session", "-d", "-x", "100", "-y", "30", "-s", session}
	}
	return r.tmux(append(append(open, "-P", "-F", "#{pane_id}", "-e", roleName+"=1", "-n", name), argv...)...)
}

// tee opens a window whose input goes to a file.
func (r *rig) tee(session, name string) (id, file string) {
	r.t.Helper()
	file = filepath.Join(r.dir, strconv.Itoa(len(r.tmuxFiles()))+".tee")
	id = r.window(session, name, "tee", file)
	kit.Until(r.t, "tee runs in "+name, func() bool { return r.command(id) == "tee" && contains(r.tmuxFiles(), file) })
	return id, file
}

func contains(list []string, one string) bool {
	return strings.Contains("\n"+strings.Join(list, "\n")+"\n", "\n"+one+"\n")
}

// tmuxFiles returns the files of all windows that tee opened.
func (r *rig) tmuxFiles() []string {
	files, _ := filepath.Glob(filepath.Join(r.dir, "*.tee"))
	return files
}

// receiver opens a window with a program that understands pastes.
func (r *rig) receiver(session, name string) (id, file string) {
	r.t.Helper()
	file = filepath.Join(r.dir, name+".raw")
	id = r.window(session, name, os.Args[0], "receive", file)
	kit.Until(
		r.t,
		"the receiver is ready",
		func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-t", id), "ready") },
	)
	return id, file
}

func (r *rig) command(id string) string {
	r.t.Helper()
	return r.tmux("display-message", "-p", "-t", id, "#{pane_current_command}")
}

// deliver makes a delivery and checks its outcome. No buffer may be left.
func (r *rig) deliver(a Attempt, want Code) {
	r.t.Helper()
	r.deliverBy(r.tm, a, want)
}

func (r *rig) deliverBy(tm *Tmux, a Attempt, want Code) {
	r.t.Helper()
	if a.TriggerID == "" {
		a.TriggerID = "trg_1"
	}
	if a.Envelope == nil {
		a.Envelope = []byte("hello")
	}
	if o := tm.Deliver(context.Background(), a); o.Code != want {
		r.t.Errorf("delivery to %s: %+v, want %q", a.Runtime, o, want)
	}
	if left := r.tmux("list-buffers"); left != "" {
		r.t.Errorf("buffers are left: %s", left)
	}
}

// wantFile waits until a file has contents.
func (r *rig) wantFile(file, want string) {
	r.t.Helper()
	kit.Until(r.t, file+" ends", func() bool { return len(contents(file)) >= len(want) })
	if got := contents(file); got != want {
		r.t.Errorf("%s: got %q, want %q", file, got, want)
	}
}

// quiet is the default of threads §6.
const quiet = 20 * time.Second
