package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
	"trunkline/engine/procgroup"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// supervisor plays systemd: it opens the sockets of a server, keeps them open while servers come
// and go, and hears the states that they report.
type supervisor struct {
	t       *testing.T
	program string
	names   []string
	files   []*os.File
	addrs   []string
	states  *net.UnixConn
	path    string // of states
	environ []string
}

// supervise opens a socket for each of these settings.
func supervise(t *testing.T, names ...string) *supervisor {
	t.Helper()
	dir := t.TempDir()
	s := &supervisor{t: t, program: filepath.Join(dir, "trunkline"), names: names, path: filepath.Join(dir, "notify")}
	if err := os.Symlink(os.Args[0], s.program); err != nil { // see TestMain
		t.Fatal(err)
	}
	for range names {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		s.files, s.addrs = append(s.files, f), append(s.addrs, ln.Addr().String())
		_ = ln.Close() // the file keeps the socket open
	}
	var err error
	if s.states, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: s.path}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.states.Close() })
	_ = s.states.SetReadDeadline(time.Now().Add(2 * waitFor))
	return s
}

// child is one server.
type child struct {
	t *testing.T
	*exec.Cmd
	log  kit.Text
	once sync.Once
	err  error
}

// start runs a server with the sockets. LISTEN_PID is the number of the process that uses them: a
// shell knows it before it becomes that process.
func (s *supervisor) start(args ...string) *child {
	s.t.Helper()
	shell := append([]string{"-c", `export LISTEN_PID=$$; exec "$0" "$@"`, s.program, "serve", "--http-listen=", "--threads-listen=", "--set=threads.lines_addr="}, args...)
	c := &child{t: s.t, Cmd: exec.Command("/bin/sh", shell...)}
	c.Dir, c.ExtraFiles, c.Stderr = s.t.TempDir(), s.files, &c.log
	c.Env = append(append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(s.files)), "LISTEN_FDNAMES="+strings.Join(s.names, ":"), "NOTIFY_SOCKET="+s.path), s.environ...)
	if err := kit.Start(c.Cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.wait()
	})
	return c
}

// wait returns how the server ended.
func (c *child) wait() error {
	c.once.Do(func() { c.err = c.Wait() })
	return c.err
}

// await reads states until one has this text, and returns all of them.
func (s *supervisor) await(c *child, text string) (all string) {
	s.t.Helper()
	for b := make([]byte, 4096); !strings.Contains(all, text); {
		n, err := s.states.Read(b)
		if err != nil {
			s.t.Fatalf("waiting for %s behind %q: %v\n%s", text, all, err, c.log.String())
		}
		all += string(b[:n]) + "\n"
	}
	return all
}

// ready asks /readyz.
func ready(t *testing.T, addr string) (status int, body string) {
	t.Helper()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(getRequest(t, "http://"+addr+"/readyz"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func getRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// load runs a plan beside what the test does; begun is closed once it measures.
func load(t *testing.T, p loadgen.Plan) (begun <-chan struct{}, result func() *loadgen.Result) {
	t.Helper()
	first, once := make(chan struct{}), sync.Once{}
	type outcome struct {
		r   *loadgen.Result
		err error
	}
	ended := make(chan outcome, 1)
	p.Timeout, p.Interval = 20*time.Second, 100*time.Millisecond
	go func() {
		r, err := loadgen.Run(t.Context(), p, func(loadgen.Sample) { once.Do(func() { close(first) }) })
		ended <- outcome{r, err}
	}()
	return first, func() *loadgen.Result {
		t.Helper()
		o := <-ended
		if o.err != nil {
			t.Fatal(o.err)
		}
		return o.r
	}
}

// TestARestartFailsNoRequest: a server with a lame-duck time is stopped and another one started on
// the sockets that outlive it, under a load whose connections reconnect.
func TestARestartFailsNoRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	s := supervise(t, "kernel.listen_addr", "admin.listen_addr")
	args := []string{"--set=store.dir=" + t.TempDir(), "--set=kernel.lame_duck_secs=1"}
	first := s.start(args...)
	s.await(first, "READY=1")
	begun, result := load(t, loadgen.Plan{
		Target:   loadgen.Target{Protocol: loadgen.ProtocolKernel, Addr: s.addrs[0]},
		Schedule: loadgen.Schedule{To: 1000}, Conns: 16, Depth: 16, Duration: 5 * time.Second, Resend: true,
	})
	<-begun
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(first, "STOPPING=1")
	for status, body := ready(t, s.addrs[1]); !strings.Contains(body, `"reasons":["lame_duck"]`); status, body = ready(t, s.addrs[1]) {
		if status != http.StatusOK {
			t.Fatalf("readyz = %d %s", status, body)
		}
	}
	c, err := ipcclient.Dial(t.Context(), s.addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.GetProcessCounts(t.Context()); err != nil {
		t.Errorf("a connection that came in the lame-duck time: %v", err)
	}
	if err := first.wait(); err != nil {
		t.Errorf("%v\n%s", err, first.log.String())
	}
	late, err := ipcclient.Dial(t.Context(), s.addrs[0]) // no server is there
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	second := s.start(args...)
	s.await(second, "READY=1")
	if _, err := late.GetProcessCounts(t.Context()); err != nil {
		t.Errorf("a connection that waited for the server: %v", err)
	}
	r := result()
	if r.Total.Failed > 0 || r.Total.Done != r.Total.Due || r.Total.Done == 0 {
		t.Errorf("%d due, %d done, %d failed: %v", r.Total.Due, r.Total.Done, r.Total.Failed, r.Total.Errors)
	}
	t.Logf("%d requests, %d sent again, %d connections ended unannounced", r.Total.Done, r.Total.Resent, r.Total.Lost)
}

// TestHTTPClientsOfADrainReachTheNextServer: while a request holds a drain up, one that connects
// waits, and is answered by the server that comes next.
func TestHTTPClientsOfADrainReachTheNextServer(t *testing.T) {
	s := supervise(t, "http.listen_addr")
	args := []string{"--set=store.mode=memory", "--listen=127.0.0.1:0", "--admin-listen=", "--set=kernel.shutdown_grace_secs=60"}
	first := s.start(args...)
	s.await(first, "READY=1")
	const head, body = "POST /api/v1/process HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n", `{"raw_input":"hi"}`
	dial := func(request string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.addrs[0])
		if err == nil {
			_, err = io.WriteString(c, request)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * waitFor))
		return c
	}
	answered := func(why string, c net.Conn) {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", why, err, first.log.String())
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%s: %s, %v", why, resp.Status, err)
		}
	}
	const begun = "HTTP/1.1 100 Continue\r\n\r\n" // the request is in flight
	idle, busy := dial(head+body), dial(strings.Replace(head, "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1))
	answered("idle", idle)
	got := make([]byte, len(begun))
	if _, err := io.ReadFull(busy, got); err != nil || string(got) != begun {
		t.Fatalf("%q, %v", got, err)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if n, err := idle.Read(make([]byte, 1)); n > 0 || err == nil { // listeners close before it does
		t.Errorf("an idle connection: %d bytes, %v", n, err)
	}
	late := dial(head + body)
	if _, err := io.WriteString(busy, body); err != nil {
		t.Fatal(err)
	}
	answered("in flight", busy)
	if err := first.wait(); err != nil {
		t.Errorf("%v\n%s", err, first.log.String())
	}
	s.await(s.start(args...), "READY=1")
	answered("late", late)
}

// writeIdentity writes a new self-signed certificate for 127.0.0.1 and its key, and returns its
// bytes.
func writeIdentity(t *testing.T, cert, key string) string {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err == nil {
		err = errors.Join(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
			os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(der)
}

// trunkline runs a command to its end.
func trunkline(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, talk strings.Builder
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args[0], cmd.Dir, cmd.Stdout, cmd.Stderr = "trunkline", t.TempDir(), &out, &talk // see TestMain
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), talk.String()
}

// TestAReloadOfCertificatesDropsNoConnection: connections under load stay, and new ones get the new
// certificate; one that cannot be used changes nothing.
func TestAReloadOfCertificatesDropsNoConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	old := writeIdentity(t, cert, key)
	s := supervise(t, "kernel.listen_addr", "admin.listen_addr")
	c := s.start("--set=store.mode=memory", "--set=kernel.tls_cert_file="+cert, "--set=kernel.tls_key_file="+key)
	s.await(c, "READY=1")
	dial := func(ctx context.Context) (net.Conn, error) {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test compares certificates
		return d.DialContext(ctx, "tcp", s.addrs[0])
	}
	shows := func(why, want string) {
		t.Helper()
		nc, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if got := nc.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw; string(got) != want {
			t.Errorf("%s: another certificate is shown", why)
		}
	}
	begun, result := load(t, loadgen.Plan{
		Target:   loadgen.Target{Protocol: loadgen.ProtocolKernel, Addr: "tls://" + s.addrs[0], Dial: dial},
		Schedule: loadgen.Schedule{To: 1000}, Conns: 16, Depth: 16, Duration: 3 * time.Second,
	})
	<-begun
	shows("at the start", old)
	for range 5 {
		renewed := writeIdentity(t, cert, key)
		code, out, talk := trunkline(t, "reload", "--admin", s.addrs[1])
		if code != cli.CodeOK || !strings.Contains(out, "kernel.tls_cert_file") {
			t.Fatalf("reload: %d %s %s", code, out, talk)
		}
		if states := s.await(c, "READY=1"); !strings.Contains(states, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("the supervisor heard %q", states)
		}
		shows("renewed", renewed)
		old = renewed
	}
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, talk := trunkline(t, "reload", "--admin", s.addrs[1])
	if code != cli.CodeFailed || !strings.Contains(talk, "the server keeps its settings: cannot load kernel.tls_cert_file") {
		t.Errorf("a bad certificate: %d %s", code, talk)
	}
	shows("after a bad one", old)
	r := result()
	if r.Total.Failed > 0 || r.Total.Lost > 0 || r.Total.Done != r.Total.Due || r.Total.Done == 0 {
		t.Errorf("%d due, %d done, %d failed, %d connections lost: %v", r.Total.Due, r.Total.Done, r.Total.Failed, r.Total.Lost, r.Total.Errors)
	}
}

// TestReloadFromAFile: SIGHUP as systemd sends it, and the verb, read the file that the server was
// started with.
func TestReloadFromAFile(t *testing.T) {
	s := supervise(t, "admin.listen_addr")
	file := filepath.Join(t.TempDir(), "settings.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log: {level: warn}\n")
	c := s.start("--config="+file, "--set=store.mode=memory", "--listen=127.0.0.1:0")
	s.await(c, "READY=1")
	f := func(text string, code int, stdout, stderr string) {
		t.Helper()
		write(text)
		got, out, talk := trunkline(t, "reload", "--admin", s.addrs[0])
		if got != code || !strings.Contains(out, stdout) || !strings.Contains(talk, stderr) {
			t.Errorf("%q: %d %s %s, want %d %s %s", text, got, out, talk, code, stdout, stderr)
		}
	}
	f("log: {level: warn}\n", 0, "changed  nothing", "")
	f("log: {level: info}\nkernel: {max_connections: 5, loops: 2}\n", 0, "kernel.loops: these take a restart", "")
	f("log: {levl: info}\n", 1, "", "unknown setting log.levl")
	f("log: [\n", 1, "", "cannot read settings file")
	write("log: {level: debug}\n")
	code, out, talk := trunkline(t, "reload", "--json", "--admin", s.addrs[0])
	if code != 0 || !strings.Contains(out, `"changed": [`) || !strings.Contains(out, `"log.level"`) || talk != "" {
		t.Errorf("%d %s %s", code, out, talk)
	}
	s.await(c, "READY=1")
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.await(c, "RELOADING=1")
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(); err != nil {
		t.Errorf("%v\n%s", err, c.log.String())
	}
	code, _, talk = trunkline(t, "reload", "--json", "--timeout=50ms", "--admin", s.addrs[0])
	if code != cli.CodeUnavailable || !strings.Contains(talk, `"code":5`) {
		t.Errorf("without a server: %d %s", code, talk)
	}
}

// TestASettingsFileAtWork: one that is gone, empty or a part of itself takes nothing back to its
// default.
func TestASettingsFileAtWork(t *testing.T) {
	s := supervise(t, "admin.listen_addr")
	c := s.start("--set=store.mode=memory", "--listen=127.0.0.1:0")
	s.await(c, "READY=1")
	file := filepath.Join(c.Dir, "trunkline.yaml")
	f := func(text string, code int, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text == "gone" {
			_ = os.Remove(file)
		}
		got, out, talk := trunkline(t, "reload", "--admin", s.addrs[0])
		if got != code || !strings.Contains(out+talk, want) {
			t.Errorf("%q: %d %s%s, want %d %s", text, got, out, talk, code, want)
		}
		s.await(c, "READY=1")
	}
	f("", 0, "changed  nothing")
	f("kernel: {max_connections: 5}\n", 0, "kernel.max_connections")
	f("gone", 1, "trunkline.yaml: it is gone; a file with only {} in it stands for no settings")
	f("", 1, "trunkline.yaml: it is empty")
	f("kernel: {max_conn", 1, "cannot read settings file")
	f("kernel: {max_connections: 5}\n", 0, "changed  nothing")
	f("# kernel: {max_connections: 5}\n", 0, "kernel.max_connections")
	f("gone", 1, "it is gone")
	f("{}", 0, "changed  nothing")
	f("", 1, "it is empty")
}

// TestAServerThatEndsIsNotWaitedFor: a process that the signal ends has no outcome.
func TestAServerThatEndsIsNotWaitedFor(t *testing.T) {
	p := exec.Command("sleep", "600")
	if err := kit.Start(p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	go func() { _ = p.Wait() }()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(ops.Reload{PID: p.Process.Pid, Started: procgroup.StartOf(p.Process.Pid)})
	}))
	t.Cleanup(srv.Close)
	code, _, talk := trunkline(t, "reload", "--timeout=1h", "--admin", srv.Listener.Addr().String())
	if code != cli.CodeUnavailable || !strings.Contains(talk, "has ended") {
		t.Errorf("%d %s", code, talk)
	}
}

// TestTheWatchdogIsFed while the server runs, and the start asks for time.
func TestTheWatchdogIsFed(t *testing.T) {
	s := supervise(t, "kernel.listen_addr")
	s.environ = []string{"WATCHDOG_USEC=300000"}
	c := s.start("--admin-listen=", "--set=toolhost.listen_addr=127.0.0.1:0", "--set=exacta.listen_addr=127.0.0.1:0")
	if states := s.await(c, "READY=1"); !strings.Contains(states, "EXTEND_TIMEOUT_USEC=30000000") {
		t.Errorf("the start asked for no time: %q", states)
	}
	for range 3 {
		s.await(c, "WATCHDOG=1")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if states := s.await(c, "STOPPING=1"); !strings.Contains(states, "EXTEND_TIMEOUT_USEC=") {
		t.Errorf("the stop asked for no time: %q", states)
	}
	if err := c.wait(); err != nil {
		t.Errorf("%v\n%s", err, c.log.String())
	}
}

// TestSocketsThatCannotBeUsed are refused with what to do about it.
func TestSocketsThatCannotBeUsed(t *testing.T) {
	f := func(code int, want string, names ...string) {
		t.Helper()
		c := supervise(t, names...).start("--set=store.mode=memory", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0")
		if _ = c.wait(); c.ProcessState.ExitCode() != code || !strings.Contains(c.log.String(), want) {
			t.Errorf("%v: %v %s, want %d with %s", names, c.ProcessState, c.log.String(), code, want)
		}
	}
	f(cli.CodeUsage, `cannot use the socket named "kernel.listen_add": its name (FileDescriptorName=) has to be a setting with addresses, such as kernel.listen_addr`, "kernel.listen_add")
	f(cli.CodeUsage, `cannot use the socket named "log.level"`, "admin.listen_addr", "log.level")
	f(cli.CodeUsage, "there is no key source", "threads.listen_addr")
}

// TestSocketsOfAnotherKind: addresses follow the rules of the settings, and a socket on which each
// accept would fail is refused.
func TestSocketsOfAnotherKind(t *testing.T) {
	f := func(want string, domain, kind int, at syscall.Sockaddr, listen bool) {
		t.Helper()
		fd, err := syscall.Socket(domain, kind|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Bind(fd, at)
		}
		if err == nil && listen {
			err = syscall.Listen(fd, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "")
		defer file.Close()
		s := supervise(t)
		s.names, s.files = []string{"kernel.listen_addr"}, []*os.File{file}
		c := s.start("--set=store.mode=memory", "--admin-listen=")
		if _ = c.wait(); c.ProcessState.ExitCode() != cli.CodeUsage || !strings.Contains(c.log.String(), want) {
			t.Errorf("%v %s, want %s", c.ProcessState, c.log.String(), want)
		}
	}
	const noStream = "kernel.listen_addr: it is no listening stream socket"
	dir := t.TempDir()
	f("an address beyond loopback needs TLS with client certificates", syscall.AF_INET, syscall.SOCK_STREAM, &syscall.SockaddrInet4{}, true)
	f(noStream+": tcp socket, listening false", syscall.AF_INET, syscall.SOCK_STREAM, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, false)
	f(noStream, syscall.AF_INET, syscall.SOCK_DGRAM, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, false)
	f(noStream+": unixgram", syscall.AF_UNIX, syscall.SOCK_DGRAM, &syscall.SockaddrUnix{Name: dir + "/d"}, false)
	f(noStream+": unixpacket", syscall.AF_UNIX, syscall.SOCK_SEQPACKET, &syscall.SockaddrUnix{Name: dir + "/p"}, true)
	f("want an absolute path", syscall.AF_UNIX, syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: "@" + dir}, true)
	f("an address may have no comma", syscall.AF_UNIX, syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: dir + "/a,b"}, true)
}

// TestTheNumberOfSockets is bounded: the names of a process are looked at one by one.
func TestTheNumberOfSockets(t *testing.T) {
	f := func(number, want string) {
		t.Helper()
		s := supervise(t, "kernel.listen_addr")
		s.environ = []string{"LISTEN_FDS=" + number}
		c := s.start("--set=store.mode=memory", "--admin-listen=")
		if _ = c.wait(); c.ProcessState.ExitCode() != cli.CodeUsage || !strings.Contains(c.log.String(), want) {
			t.Errorf("%v %s, want %s", c.ProcessState, c.log.String(), want)
		}
	}
	f("512", "cannot use the socket named LISTEN_FD_4: it is no listening stream socket")
	f("513", "cannot use LISTEN_FDS = 513: at most 512 sockets are taken")
	f("9223372036854775807", "at most 512")
}

// TestAServerEndsWithItsTerminal, where SIGHUP is otherwise an order to reload.
func TestAServerEndsWithItsTerminal(t *testing.T) {
	cmd := exec.Command(os.Args[0], "serve", "--dev", "--listen=127.0.0.1:0", "--http-listen=", "--threads-listen=", "--set=threads.lines_addr=", "--admin-listen=")
	cmd.Args[0], cmd.Dir = "trunkline", t.TempDir() // see TestMain
	keys, tty := kit.Terminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*waitFor, func() { _ = cmd.Process.Kill() }).Stop()
	tty.Close()
	shown := ""
	read := func(text string) {
		t.Helper()
		for b := make([]byte, 4096); !strings.Contains(shown, text); {
			n, err := keys.Read(b)
			if err != nil {
				_ = cmd.Process.Kill()
				t.Fatalf("%v, %v after %s", err, cmd.Wait(), shown)
			}
			shown += string(b[:n])
		}
	}
	read("serving")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	read("reloaded")
	_ = keys.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
