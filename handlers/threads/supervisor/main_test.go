package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
)

// roleName is set in the environment of a process that is this test binary in another role: the
// arguments are the role and its own.
const roleName = "TRUNKLINE_SUPERVISOR_TEST"

const waitFor = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(roleName) != "" {
		os.Exit(play(os.Args[1], os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// play is what the programs of tests do. Its result is the exit code.
func play(role string, args []string) int {
	switch role {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "args": // prints its arguments, and what else it was given
		dir, _ := os.Getwd()
		rest, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%q in %s, group %v, stdin %q, %s\n", args, dir, unix.Getpgrp() == os.Getpid(), rest, os.Getenv("GIVEN"))
	case "family": // starts a process, writes both numbers into a file, and stays
		child := exec.Command(os.Args[0], "stay")
		if err := child.Start(); err != nil {
			return 1
		}
		writeWhole(args[0], fmt.Sprintf("%d %d", os.Getpid(), child.Process.Pid))
		stay()
	case "away": // leaves its group, and stays
		parent, _ := unix.Getpgid(os.Getppid())
		if err := unix.Setpgid(0, parent); err != nil {
			return 1
		}
		writeWhole(args[0], strconv.Itoa(os.Getpid()))
		stay()
	case "daemon": // starts a process in another session that holds the output, and ends
		child := exec.Command(os.Args[0], "stay")
		child.Stdout, child.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println("started", child.Process.Pid)
	case "output": // prints a number of bytes
		n, _ := strconv.Atoi(args[0])
		_, _ = io.Copy(os.Stdout, io.LimitReader(zeros{}, int64(n)))
	case "receive": // writes the keys of its terminal into a file
		return receive(args[0])
	case "named": // continues as another program, with the given arguments from its name on
		_ = syscall.Exec(args[0], args[1:], nil)
		return 1
	case "stay":
		stay()
	}
	return 0
}

func stay() {
	select {
	case <-time.After(10 * time.Minute):
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return copy(b, strings.Repeat("0", len(b))), nil }

// receive is a program with a raw terminal that understands pastes.
func receive(file string) int {
	raw := exec.Command("stty", "raw", "-echo")
	raw.Stdin = os.Stdin
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil || raw.Run() != nil {
		return 1
	}
	fmt.Print("\x1b[?2004hready\r\n")
	_, _ = bufio.NewReader(os.Stdin).WriteTo(f)
	return 0
}

// writeWhole writes a file that is never seen in part.
func writeWhole(file, text string) {
	if os.WriteFile(file+".new", []byte(text), 0o600) == nil {
		_ = os.Rename(file+".new", file)
	}
}

// contents returns a file, empty while there is none.
func contents(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// kill ends a process that a test has left behind on purpose.
func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		t.Fatalf("no process %q", pid)
	}
	_ = unix.Kill(n, unix.SIGKILL)
	kit.Until(t, "process "+pid+" ends", func() bool { return gone(pid) })
}

// gone reports whether a process does not run any more; one that only waits for its parent counts.
func gone(pid string) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}
