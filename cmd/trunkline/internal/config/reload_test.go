package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestReloaded(t *testing.T) {
	was := mustLoad(t, []string{"--set=kernel.max_connections=5", "--log-level=warn"}, nil, "kernel: {loops: 1}")
	f := func(args []string, yaml, changed, restart, wrong string) {
		t.Helper()
		got, c, r, err := was.Reloaded(mustLoad(t, args, nil, yaml))
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%v %q: %v, want %q", args, yaml, err, wrong)
			}
			return
		}
		if err != nil || strings.Join(c, ",") != changed || strings.Join(r, ",") != restart {
			t.Errorf("%v %q: %v, %v, %v, want %s and %s", args, yaml, c, r, err, changed, restart)
			return
		}
		if got.Kernel.Loops != was.Kernel.Loops || was.Kernel.MaxConnections != 5 {
			t.Errorf("%v %q: %+v", args, yaml, got.Kernel)
		}
	}
	same := []string{"--set=kernel.max_connections=5", "--log-level=warn"}
	f(same, "kernel: {loops: 1}", "", "", "")
	f(same, "{}", "", "kernel.loops", "")
	f(same, "", "", "", "it is gone")
	f(same[:1], "kernel: {loops: 1}", "log.level", "", "")
	f([]string{"--set=kernel.max_connections=6", "--log-level=warn"}, "kernel: {loops: 2}", "kernel.max_connections", "kernel.loops", "")
	// The address of another listener takes a restart, so its switch to TLS does not count either.
	f(append(same, "--set=kernel.tls_cert_file=c", "--set=kernel.tls_key_file=k"), "kernel: {loops: 1}", "", "kernel.tls_cert_file,kernel.tls_key_file", "")
	f(append(same, "--set=threads.jwks_file=c", "--set=threads.issuer=i"), "kernel: {loops: 1}", "", "threads.jwks_file,threads.issuer", "")
}

// TestReloadedOrigins: a value that stays is shown with where it comes from now.
func TestReloadedOrigins(t *testing.T) {
	was := mustLoad(t, []string{"--log-level=warn", "--set=kernel.loops=1"}, nil, "kernel: {max_connections: 5}")
	got, _, _, err := was.Reloaded(mustLoad(t, []string{"--set=kernel.max_connections=5", "--set=kernel.loops=2"}, nil, "log: {level: warn}"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"kernel.max_connections": "flag", "log.level": "file", "kernel.loops": "flag"} {
		if o := got.origins[key]; o.Layer != want {
			t.Errorf("%s is from %v, want %s", key, o, want)
		}
	}
}

// TestReloadedChecksTheWhole: what a reload may change has to fit what it may not.
func TestReloadedChecksTheWhole(t *testing.T) {
	secure := []string{"--set=kernel.listen_addr=0.0.0.0:1", "--set=kernel.tls_cert_file=c", "--set=kernel.tls_key_file=k"}
	was := mustLoad(t, append(secure, "--set=kernel.tls_client_ca_file=a"), nil, "")
	next := mustLoad(t, append(secure, "--set=kernel.insecure_bind=true"), nil, "")
	if _, _, _, err := was.Reloaded(next); err == nil || !strings.Contains(err.Error(), "kernel.tls_client_ca_file is not set") || !strings.Contains(err.Error(), "kernel.insecure_bind)") {
		t.Errorf("an address beyond loopback without client certificates: %v", err)
	}
}

func TestSocketsAreTheStrongestLayer(t *testing.T) {
	t.Chdir(t.TempDir())
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	if err := fs.Parse([]string{"--listen=127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	c, err := LoadWithSockets(fs, nil, map[string][]string{"kernel.listen_addr": {"127.0.0.1:2", "unix:///s"}, "exacta.ws_addr": {"127.0.0.1:3"}})
	if err != nil {
		t.Fatal(err)
	}
	if v, o := row(t, c, "kernel.listen_addr"); v != "127.0.0.1:2,unix:///s" || o != "socket" {
		t.Errorf("%v %s", v, o)
	}
	if !strings.HasPrefix(c.Summary(), "2 from sockets, ") || !slices.Equal(c.Exacta.WSAddr, []string{"127.0.0.1:3"}) {
		t.Errorf("%s, %v", c.Summary(), c.Exacta.WSAddr)
	}
	if _, err := LoadWithSockets(fs, nil, map[string][]string{"kernel.listen_addr": {"0.0.0.0:2"}}); err == nil {
		t.Error("a socket beyond loopback needs no TLS")
	}
}

func TestAddresses(t *testing.T) {
	f := func(name, nearest string, is bool) {
		t.Helper()
		if got := NearestAddress(name); got != nearest || IsAddress(name) != is {
			t.Errorf("%s: %v, nearest %s", name, IsAddress(name), got)
		}
	}
	f("kernel.listen_addr", "kernel.listen_addr", true)
	f("threads.lines_addr", "threads.lines_addr", true)
	f("kernel.listen", "kernel.listen_addr", false)
	f("exacta.ws", "exacta.ws_addr", false)
	f("admin.listen_adr", "admin.listen_addr", false)
}
