package load

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestARigGoesWithASignal interrupts a process of its own that has a rig with a server, which keeps
// a store.
func TestARigGoesWithASignal(t *testing.T) {
	const key = "RIG_PARENT"
	if parent := os.Getenv(key); parent != "" {
		r, err := NewRig(parent, "x-")
		if err != nil {
			t.Fatal(err)
		}
		c := script("server", "echo listening x; exec sleep 60")
		c.TempStore = true
		if _, err := r.Start(c); err != nil {
			t.Fatal(err)
		}
		r.GoesWithSignal()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		t.Fatal("the signal did nothing")
	}
	parent, temp := t.TempDir(), t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), key+"="+parent, "TMPDIR="+temp)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("%v, %s", err, out)
	}
	for _, dir := range []string{parent, temp} {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			t.Errorf("%s is left", e.Name())
		}
	}
}
