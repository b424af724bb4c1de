package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/benchview/screen"
	"trunkline/fuzz/kit"
)

// ptyRun is a program that has a terminal, as a person would run it.
type ptyRun struct {
	*screen.Screen
	t      *testing.T
	cmd    *exec.Cmd
	keys   *os.File // what is written here is typed
	ended  chan struct{}
	before *unix.Termios
}

// onTerminal starts a command on a new terminal.
func onTerminal(t *testing.T, columns, rows int, cmd *exec.Cmd) *ptyRun {
	t.Helper()
	keys, tty := kit.Terminal(t)
	r := &ptyRun{Screen: screen.New(t, columns, rows, utf8.RuneCountInString), t: t, cmd: cmd, keys: keys, ended: make(chan struct{})}
	r.resize(columns, rows)
	r.before = r.settings()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	// As on any terminal, something stands above.
	fmt.Fprint(tty, "$ trunkline bench\n")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go func() {
		defer close(r.ended)
		_, _ = io.Copy(r, keys) // it ends with EIO when the last process has closed the terminal
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-r.ended
		keys.Close()
	})
	return r
}

// resize changes the window. The screen changes first, so that it is never narrower than the window
// of the program.
func (r *ptyRun) resize(columns, rows int) {
	r.t.Helper()
	r.Resize(columns, rows)
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(r.keys.Fd()), unix.TIOCSWINSZ, size); err != nil {
		r.t.Fatal(err)
	}
}

func (r *ptyRun) settings() *unix.Termios {
	r.t.Helper()
	s, err := unix.IoctlGetTermios(int(r.keys.Fd()), unix.TCGETS)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// wantShown waits until all words stand on the screen.
func (r *ptyRun) wantShown(words ...string) {
	r.t.Helper()
	for _, w := range words {
		r.wait("never stood on the screen: "+w, func(shown string) bool { return strings.Contains(shown, w) })
	}
}

// wantGone waits until a word does not stand there any more.
func (r *ptyRun) wantGone(word string) {
	r.t.Helper()
	r.wait("is still on the screen: "+word, func(shown string) bool { return !strings.Contains(shown, word) })
}

func (r *ptyRun) wait(failure string, until func(shown string) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(waitFor); !until(r.Shown()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s\n%s", failure, r.Shown())
		}
	}
}

// press types keys.
func (r *ptyRun) press(keys string) {
	r.t.Helper()
	if _, err := io.WriteString(r.keys, keys); err != nil {
		r.t.Fatal(err)
	}
}

// wantEnd waits for the end of the program; the terminal must be as it was.
func (r *ptyRun) wantEnd(code int) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(waitFor):
		r.t.Fatalf("it does not end:\n%s", r.Shown())
	}
	_ = r.cmd.Wait() // the exit code shows it
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d:\n%s", got, code, r.Shown())
	}
	if at := r.State(); !at.Sane || at.Col != 0 {
		r.t.Errorf("the terminal is left behind with %+v", at)
	}
	if now := r.settings(); *now != *r.before {
		r.t.Errorf("the settings of the terminal have changed: %+v", now)
	}
}
