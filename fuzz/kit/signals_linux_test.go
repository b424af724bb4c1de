package kit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// ignoring is set where this test binary was started with SIGHUP and SIGINT ignored.
const ignoring = "TRUNKLINE_TEST_IGNORING"

// TestSignals runs itself as nohup(1) and a shell without job control would.
func TestSignals(t *testing.T) {
	if os.Getenv(ignoring) == "" {
		again := exec.Command("sh", "-c", `trap '' HUP INT; exec "$0" -test.run='^TestSignals$'`, os.Args[0])
		again.Env = append(os.Environ(), ignoring+"=yes")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	Signals()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		cmd := exec.Command("sleep", "600")
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if state := cmd.ProcessState.Sys().(syscall.WaitStatus); state.Signal() != s {
			t.Errorf("%v: a program that gets it ends with %v", s, cmd.ProcessState)
		}
	}
}

// TestStart kills the tests, as a time limit ends them: the program that they started ends too.
func TestStart(t *testing.T) {
	const starting = "TRUNKLINE_TEST_STARTING"
	if os.Getenv(starting) != "" {
		cmd := exec.Command("cat") // it ends with the test anyway, at the end of its input
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	again := exec.Command(os.Args[0], "-test.run=^TestStart$")
	again.Env = append(os.Environ(), starting+"=yes")
	in, err := again.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := again.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	// The end of the output comes when the last that could write there is gone. cat has a pipe for
	// its input that stays open, so it does not end by itself.
	for b := make([]byte, 64); err == nil; {
		_, err = out.Read(b)
	}
	if err := again.Wait(); err == nil {
		t.Error("the tests ended well")
	}
}
