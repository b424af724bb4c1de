package doctor

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// named runs the checks of what the quiet settings, with args over them, name.
func named(t *testing.T, args ...string) *Report {
	t.Helper()
	c, err := load(append(slices.Clone(quiet), args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return Named(t.Context(), c)
}

// TestNamedAsksNoOne: an address that is in use is a warning, and a key set is not fetched.
func TestNamedAsksNoOne(t *testing.T) {
	r := newRig(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const key, url = "kernel.listen_addr", "threads.jwks_url"
	r.want(named(t, "--listen", ln.Addr().String()), "listeners", key, Warning, "is in use")
	r.want(named(t, "--listen", "unix://"+path), "listeners", key, Warning, "is in use")
	r.want(named(t, "--admin-listen", ln.Addr().String()), "listeners", "admin.listen_addr", Warning, "is in use")
	r.want(named(t, "--listen", "unix://"+dir+"/missing/s"), "listeners", key, Failed, "no such file")
	keys := []string{"--set", url + "=http://" + ln.Addr().String(), "--set", "threads.issuer=i", "--set", "threads.listen_addr=", "--set", "threads.lines_addr="}
	r.want(named(t, keys...), "threads.keys", url, Skipped, "is not asked") // no one would answer
	for result, offline := range map[Result]bool{Warning: true, Failed: false} {
		if f := (&subject{offline: offline}).unsure("k", "f", "%s", "e"); f.Result != result {
			t.Errorf("%+v", f)
		}
	}
}

func TestNamed(t *testing.T) {
	r := newRig(t)
	got := named(t)
	if !got.OK || got.Warnings > 0 {
		t.Errorf("%+v", got)
	}
	for _, f := range got.Checks {
		if f.ID == "settings" || f.ID == "server" || f.ID == "clock" || f.ID == "store.sync" {
			t.Errorf("%+v looks at more", f)
		}
	}
	file := write(t, filepath.Join(t.TempDir(), "file"), "short")
	r.want(named(t, "--set", "store.mode=always", "--set", "store.dir="+file+"/below"), "store.directory", keyDir, Failed, "not a directory")
	r.want(named(t, "--set", "exacta.auth_token_file="+file), "exacta.secrets", "exacta.auth_token_file", Failed, "16 to")
	cert, key := certificate(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour), nil, loopback)
	got = named(t, "--set", tlsCert+"="+cert, "--set", "kernel.tls_key_file="+key)
	r.want(got, "tls.expiry", tlsCert, Failed, "expired at")
	if got.OK || got.Failures != 1 {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := load(quiet...)
	if err != nil {
		t.Fatal(err)
	}
	if got := Named(ctx, c); len(got.Checks) == 0 || !strings.Contains(got.Checks[0].Evidence, "ended before") {
		t.Errorf("%+v", got)
	}
}
