package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc/ipcclient"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

// settings loads a configuration from --set arguments; listeners take free ports unless an argument
// names one.
func settings(t *testing.T, set ...string) *config.Config {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(fs)
	args := []string{"--set=kernel.listen_addr=127.0.0.1:0", "--set=http.listen_addr=127.0.0.1:0", "--set=admin.listen_addr=127.0.0.1:0", "--set=kernel.loops=1",
		"--set=store.mode=memory"}
	for _, s := range set {
		args = append(args, "--set="+s)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// banner is a writer that several goroutines may use.
type banner struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *banner) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *banner) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// instance is one running server.
type instance struct {
	t      *testing.T
	banner banner
	log    banner
	stop   context.CancelFunc
	ended  chan error
	token  string // for get; empty: none
}

func start(t *testing.T, set ...string) *instance {
	t.Helper()
	i := launch(t, Options{}, set...)
	i.await("msg=serving")
	return i
}

// launch starts a server and does not wait for it; build, banner and logger are the test's.
func launch(t *testing.T, o Options, set ...string) *instance {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	i := &instance{t: t, stop: stop, ended: make(chan error, 1)}
	cfg := settings(t, set...)
	o.Build, o.Banner, o.Logger = obs.ReadBuild("v7", "rev"), &i.banner, slog.New(slog.NewTextHandler(&i.log, nil))
	go func() { i.ended <- Run(ctx, cfg, o) }()
	t.Cleanup(func() { i.end() })
	return i
}

// await waits until the log has a line with this text.
func (i *instance) await(text string) {
	i.t.Helper()
	for !strings.Contains(i.log.String(), text) {
		select {
		case err := <-i.ended:
			i.ended <- err
			i.t.Fatalf("ended early: %v\n%s", err, i.log.String())
		case <-time.After(time.Millisecond):
		}
	}
}

// end stops the server and returns what Run returned; only the first call waits.
func (i *instance) end() error {
	i.stop()
	err, ok := <-i.ended
	if ok {
		close(i.ended)
	}
	return err
}

// addr finds an address in the banner.
func (i *instance) addr(line string) string {
	i.t.Helper()
	m := regexp.MustCompile(`(?m)^` + line + ` listening on (\S+)`).FindStringSubmatch(i.banner.String())
	if m == nil {
		i.t.Fatalf("no %q in the banner:\n%s", line, i.banner.String())
	}
	return m[1]
}

// get asks the admin endpoint; status 0 means that there was no answer.
func (i *instance) get(path string) (status int, body string) {
	tr := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequest(http.MethodGet, "http://"+i.addr("admin")+path, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	if i.token != "" {
		req.Header.Set("Authorization", "Bearer "+i.token)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (i *instance) dial(addr string, opts ...ipcclient.Option) *ipcclient.Conn {
	i.t.Helper()
	c, err := ipcclient.Dial(i.t.Context(), addr, opts...)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { c.Close() })
	return c
}

func TestRunServesAndDrains(t *testing.T) {
	i := start(t)
	c := i.dial(i.addr("kernel ipc"))
	if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p1", UserID: "u1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetProcess(t.Context(), "nope"); err == nil {
		t.Fatal("a process that does not exist was found")
	}
	_, metrics := i.get("/metrics")
	for _, want := range []string{
		`trunkline_ipc_calls_total{code="OK",method="CreateProcess",service="kernel"} 1`,
		`trunkline_ipc_calls_total{code="NOT_FOUND",method="GetProcess",service="kernel"} 1`,
		`trunkline_processes{state="READY"} 1`,
		`trunkline_connections_open 1`,
		`trunkline_orchestration_sessions 0`,
		`trunkline_envelopes 0`,
		`trunkline_build_info{`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/version"} {
		if status, body := i.get(path); status != 200 {
			t.Errorf("%s = %d %s", path, status, body)
		}
	}
	if first, _, _ := strings.Cut(i.banner.String(), "\n"); first != "store: memory, nothing survives a restart" {
		t.Errorf("the banner begins with %q", first)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
	<-c.Done()
	if status, _ := i.get("/healthz"); status != 0 {
		t.Errorf("the admin endpoint still answers %d", status)
	}
}

func TestTwoServersInOneProcess(t *testing.T) {
	a, b := start(t), start(t)
	ca := a.dial(a.addr("kernel ipc"))
	if _, err := ca.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p1"}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.dial(b.addr("kernel ipc")).GetProcessCounts(t.Context()); err != nil || n.Total != 0 {
		t.Errorf("the other server holds %d processes, %v", n.Total, err)
	}
	if _, m := b.get("/metrics"); strings.Contains(m, `method="CreateProcess"`) {
		t.Error("the other server counted the request")
	}
}

func TestReadinessFallsBeforeTheDrainEnds(t *testing.T) {
	sock := "unix://" + filepath.Join(t.TempDir(), "t.sock")
	i := start(t, "kernel.listen_addr="+sock, "kernel.shutdown_grace_secs=2")
	// A subscriber that takes nothing keeps its connection, and so the drain, open until the grace
	// has passed.
	slow := i.dial(sock, ipcclient.WithStreamBuffer(1, 1))
	if _, err := slow.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"big"}}); err != nil {
		t.Fatal(err)
	}
	pub := i.dial(sock)
	payload := `"` + strings.Repeat("x", 256<<10) + `"`
	for range 32 {
		if _, err := pub.Publish(t.Context(), ipcclient.Publish{EventType: "big", Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	i.stop()
	for {
		status, body := i.get("/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(body, `"reasons":["draining"]`) {
			break
		}
		if status != http.StatusOK {
			t.Fatalf("readyz = %d %s, want 503 while draining", status, body)
		}
	}
	if status, _ := i.get("/healthz"); status != http.StatusOK {
		t.Errorf("healthz = %d while draining", status)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeBoundLeavesNothingBehind(t *testing.T) {
	i := start(t)
	f := func(set ...string) {
		t.Helper()
		err := Run(t.Context(), settings(t, set...), Options{Banner: io.Discard, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("%v: an address was bound twice", set)
		}
	}
	f("kernel.listen_addr=127.0.0.1:0," + i.addr("kernel ipc"))
	f("admin.listen_addr=" + i.addr("admin"))
}
