package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
)

// beyond is how many columns the emulator has right of the edge of a screen: what stands there is
// too long, and would wrap on a terminal that ends at the edge.
const beyond = 200

// screen is what a person sees of a terminal. Its methods may be called from any goroutine.
type screen struct {
	mu       sync.Mutex
	emulator *vt.Emulator
	columns  int
	sent     bytes.Buffer // what a program wrote
	frames   int
	overflow int
	changed  map[ansi.Mode]bool // modes that are not as a program finds them
}

// screenState is what a screen knows beside its text.
type screenState struct {
	Col        int  // of the cursor
	Sane       bool // all modes are as a program finds them
	Attributes int  // how often attributes of text were set
	Overflow   int  // the most characters beyond the right edge
	Frames     int  // writes
}

func newScreen(columns, rows int) *screen {
	s := &screen{emulator: vt.NewEmulator(columns+beyond, rows), columns: columns, changed: make(map[ansi.Mode]bool)}
	change := func(on bool) func(ansi.Mode) {
		return func(m ansi.Mode) {
			usual := m == ansi.ModeAutoWrap || m == ansi.ModeTextCursorEnable
			if delete(s.changed, m); on != usual {
				s.changed[m] = true
			}
		}
	}
	s.emulator.SetCallbacks(vt.Callbacks{EnableMode: change(true), DisableMode: change(false)})
	go func() { _, _ = io.Copy(io.Discard, s.emulator) }() // its answers to questions
	return s
}

// Write takes what a program sends to the terminal.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	s.sent.Write(b)
	n, err := s.emulator.Write(b)
	s.overflow = max(s.overflow, s.outside(func(int, int) {}))
	return n, err
}

// outside counts the characters beyond the edge, which with is called for.
func (s *screen) outside(with func(x, y int)) (n int) {
	for y := range s.emulator.Height() {
		for x := s.columns; x < s.emulator.Width(); x++ {
			if c := s.emulator.CellAt(x, y); c != nil && strings.TrimSpace(c.Content) != "" {
				n++
				with(x, y)
			}
		}
	}
	return n
}

// Resize changes the size. Rows that are too long are cut.
func (s *screen) Resize(columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.columns = columns
	s.emulator.Resize(columns+beyond, rows)
	s.outside(func(x, y int) { s.emulator.SetCell(x, y, nil) })
}

// Shown is what one sees, without blanks at the ends of lines and without the empty rows at the
// bottom.
func (s *screen) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for line := range strings.SplitSeq(ansi.Strip(s.emulator.Render()), "\n") {
		b.WriteString(strings.TrimRight(line, " \r") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// All is what one sees when one scrolls back as far as it goes.
func (s *screen) All() string {
	s.mu.Lock()
	var b strings.Builder
	for _, line := range s.emulator.Scrollback().Lines() {
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	s.mu.Unlock()
	return b.String() + s.Shown()
}

// attribute sets an attribute of text.
var attribute = regexp.MustCompile(`\x1b\[[0-9;:]*[1-9][0-9;:]*m`)

// State returns the state.
func (s *screen) State() screenState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return screenState{
		Col: s.emulator.CursorPosition().X, Sane: len(s.changed) == 0, Attributes: len(attribute.FindAll(s.sent.Bytes(), -1)),
		Overflow: s.overflow, Frames: s.frames,
	}
}

// ptyRun is a program that has a terminal, as a person would run it.
type ptyRun struct {
	*screen
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
	r := &ptyRun{screen: newScreen(columns, rows), t: t, cmd: cmd, keys: keys, ended: make(chan struct{})}
	r.resize(columns, rows)
	r.before = r.settings()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	// As on any terminal, something stands above.
	fmt.Fprint(tty, "$ trunkline bench\n")
	if err := kit.Start(cmd); err != nil {
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
		r.emulator.Close()
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
