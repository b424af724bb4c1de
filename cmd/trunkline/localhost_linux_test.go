package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"trunkline/fuzz/kit"
)

// TestLocalhostIsBothLoopbackAddresses: every section that listens on localhost takes one port of
// both families, and refuses a port that another program has in one of them.
func TestLocalhostIsBothLoopbackAddresses(t *testing.T) {
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6 loopback address: ", err)
	}
	defer func() { _ = six.Close() }()
	var log kit.Text
	cmd := exec.Command(os.Args[0], "serve", "--dev", "--listen=localhost:0", "--http-listen=LOCALHOST:0",
		"--threads-listen=localhost:0", "--set=threads.lines_addr=localhost:0",
		"--admin-listen=localhost:0", "--set=toolhost.listen_addr=localhost:0", "--set=exacta.listen_addr=localhost:0")
	cmd.Args[0], cmd.Stderr, cmd.Dir = "trunkline", &log, t.TempDir() // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	kit.Until(t, "serving", func() bool { return log.Has("INF serving") })
	for _, name := range []string{"kernel ipc", "http", "toolhost", "threads http", "threads lines", "exacta"} {
		m := regexp.MustCompile(`(?m)^` + name + ` listening on 127\.0\.0\.1:(\d+) \(tcp\)\n` + name +
			` listening on \[::1\]:(\d+) \(tcp\)$`).FindStringSubmatch(log.String())
		if m == nil || m[1] != m[2] {
			t.Errorf("%s: %q in %s", name, m, &log)
			continue
		}
		dialBoth(t, name, m[1])
	}
	m := regexp.MustCompile(`(?m)^admin listening on 127\.0\.0\.1:(\d+) `).FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("no admin address in %s", &log)
	}
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		res, err := http.Get("http://" + net.JoinHostPort(host, m[1]) + "/healthz")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("/healthz at %s: %v, %v", host, res, err)
		}
		_ = res.Body.Close()
	}
	_, port, _ := net.SplitHostPort(six.Addr().String())
	if code, _, talk := trunkline(t, "serve", "--dev", "--listen=localhost:"+port, "--http-listen=", "--threads-listen=",
		"--set=threads.lines_addr=", "--admin-listen="); code != 1 ||
		!regexp.MustCompile(`cannot listen on .*:`+port).MatchString(talk) {
		t.Errorf("a port that is taken in one family: %d, %s", code, talk)
	}
}

// TestToolsOnLocalhost: so does --serve of the tools.
func TestToolsOnLocalhost(t *testing.T) {
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6 loopback address: ", err)
	}
	_ = six.Close()
	var log kit.Text
	cmd := exec.Command(os.Args[0], "--serve", "builtin", "--listen", "tcp://localhost:0")
	cmd.Args[0], cmd.Stderr, cmd.Dir = "trunkline", &log, t.TempDir() // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	shown := regexp.MustCompile(`(?m)^toolhost listening on tcp://127\.0\.0\.1:(\d+)\n` +
		`toolhost listening on tcp://\[::1\]:(\d+)$`)
	var m []string
	kit.Until(t, "serving", func() bool { m = shown.FindStringSubmatch(log.String()); return m != nil })
	if m[1] != m[2] {
		t.Errorf("two ports: %q", m)
	}
	dialBoth(t, "tools", m[1])
}

// dialBoth connects to a port of both loopback addresses.
func dialBoth(t *testing.T, name, port string) {
	t.Helper()
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = c.Close()
	}
}
