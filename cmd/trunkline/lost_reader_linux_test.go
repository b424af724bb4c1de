package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"trunkline/fuzz/kit"
)

// TestAServerOutlivesTheReaderOfItsLog: lines that cannot be written are counted, and the server
// serves on, drains and exits with 0. A parent that ignores SIGPIPE, as systemd does, is no
// different from one that does not.
func TestAServerOutlivesTheReaderOfItsLog(t *testing.T) {
	for name, first := range map[string]string{"default": "", "ignored": `trap "" PIPE; `} {
		t.Run(name, func(t *testing.T) { lookAtLostLog(t, first) })
	}
}

func lookAtLostLog(t *testing.T, first string) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c",
		first+`exec -a trunkline "$0" serve --dev --listen=127.0.0.1:0 --http-listen= --threads-listen= --set=threads.lines_addr= --admin-listen=127.0.0.1:0`,
		os.Args[0])
	cmd.Path, err = exec.LookPath("bash") // exec -a
	if err != nil {
		t.Skip("bash is not installed: ", err)
	}
	cmd.Stderr = w
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_ = w.Close()
	var admin string
	for lines := bufio.NewScanner(r); lines.Scan() && !strings.Contains(lines.Text(), "serving"); {
		if _, addr, ok := strings.Cut(lines.Text(), "admin listening on "); ok {
			admin, _, _ = strings.Cut(addr, " ")
		}
	}
	_ = r.Close()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil { // its outcome is a line of the log
		t.Fatal(err)
	}
	dropped := regexp.MustCompile(`(?m)^trunkline_log_lines_dropped_total [1-9]`)
	kit.Until(t, "a count of dropped lines", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		default:
		}
		resp, err := http.Get("http://" + admin + "/metrics")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return dropped.Match(text)
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestAToolServerOutlivesTheReaderOfItsLog: --serve has lost it before its first line.
func TestAToolServerOutlivesTheReaderOfItsLog(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd := exec.Command(os.Args[0], "--serve", "builtin", "--listen", "unix://"+socket)
	cmd.Args[0], cmd.Stderr = "trunkline", w // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var c net.Conn
	kit.Until(t, "a connection", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		default:
		}
		c, err = net.Dial("unix", socket)
		return err == nil
	})
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "ok") {
		t.Errorf("the server answered %q, %v", line, err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestACommandEndsQuietlyWithItsReader: as in 'trunkline … | head -1'.
func TestACommandEndsQuietlyWithItsReader(t *testing.T) {
	for _, args := range []string{"--help", "help serve", "--version", "config show", "config show --json", "config schema", "completion bash", "call --list", "exacta schema"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		var talk bytes.Buffer
		cmd.Args[0], cmd.Dir, cmd.Stdout, cmd.Stderr = "trunkline", t.TempDir(), w, &talk // see TestMain
		_ = cmd.Run()
		_ = w.Close()
		if code := cmd.ProcessState.ExitCode(); code != 141 || talk.Len() > 0 {
			t.Errorf("%s: exit code %d, stderr %q, want 141 and nothing", args, code, talk.String())
		}
	}
}

// TestACommandOutlivesTheReaderOfItsTalk: what is written to stderr may be lost.
func TestACommandOutlivesTheReaderOfItsTalk(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd := exec.Command(os.Args[0], "context", "show")
	cmd.Args[0], cmd.Dir, cmd.Stderr = "trunkline", t.TempDir(), w // see TestMain
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	_ = w.Close()
}
