package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
)

// TestAHangupBeforeTheServerCanReloadWaits: the signal is sent when the program opens its settings,
// long before there is anything to reload, also where the program has replaced itself before to
// hide a token.
func TestAHangupBeforeTheServerCanReloadWaits(t *testing.T) {
	for name, environ := range map[string][]string{"plain": nil, "with a token": {"MACHINA_EARLY_TOKEN=t"}} {
		t.Run(name, func(t *testing.T) { hangUpEarly(t, environ) })
	}
}

func hangUpEarly(t *testing.T, environ []string) {
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(settings, []byte("log:\n  level: info\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	opened := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = opened.Close() }()
	if _, err := unix.InotifyAddWatch(fd, settings, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	var log kit.Text
	cmd := exec.Command(os.Args[0], "--json", "serve", "--config="+settings, "--dev", "--listen=127.0.0.1:0",
		"--http-listen=", "--threads-listen=", "--set=threads.lines_addr=", "--admin-listen=")
	cmd.Args[0], cmd.Stderr, cmd.Env = "trunkline", &log, append(os.Environ(), environ...) // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		_ = opened.SetReadDeadline(time.Unix(1, 0))
	}()
	defer func() { _ = cmd.Process.Kill() }()
	if _, err := opened.Read(make([]byte, unix.SizeofInotifyEvent)); err != nil {
		t.Fatalf("the settings were not read: %v, %s", err, &log)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	kit.Until(t, "the reload", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v, %s", err, &log)
		default:
		}
		return log.Has("reloaded")
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v, %s", err, &log)
	}
}
