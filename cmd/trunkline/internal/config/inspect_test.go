package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// free are the listeners of a server, all on addresses that are free.
var free = []string{"--set=kernel.listen_addr=127.0.0.1:0", "--set=http.listen_addr=127.0.0.1:0", "--set=admin.listen_addr=127.0.0.1:0"}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCert(t, dir)
	other, _ := writeCert(t, t.TempDir())
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sock := filepath.Join(dir, "s")
	un, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer un.Close()
	at := time.Now()
	// f checks that the only finding is about key and has a text; no key is no finding.
	f := func(when time.Time, key, text string, warning bool, set ...string) {
		t.Helper()
		args := append([]string{}, free...)
		for _, s := range set {
			args = append(args, "--set="+s)
		}
		found := mustLoad(t, args, nil, "").inspect(when)
		switch {
		case key == "":
			if len(found) > 0 {
				t.Errorf("%q: %+v", set, found)
			}
		case len(found) != 1 || found[0].Key != key || found[0].Warning != warning || !strings.Contains(found[0].Text, text):
			t.Errorf("%q: %+v, want one about %s with %q", set, found, key, text)
		}
	}
	tls := []string{"kernel.tls_cert_file=" + cert, "kernel.tls_key_file=" + key}
	f(at, "", "", false)
	f(at.Add(-certificateSoon), "", "", false, tls...)
	f(at, "kernel.tls_cert_file", "expires in less than 14 days", true, tls...)
	f(at.Add(2*time.Hour), "kernel.tls_cert_file", "expired at", false, tls...)
	f(time.Unix(-1<<40, 0), "kernel.tls_cert_file", "is not valid before", false, tls...)
	f(at, "http.tls_cert_file", "does not match", false, "http.tls_cert_file="+other, "http.tls_key_file="+key)
	f(at, "store.dir", "not a directory", false, "store.dir="+file)
	f(at, "store.dir", "not a directory", false, "store.dir="+file+"/below")
	f(at, "", "", false, "store.dir="+dir+"/a/b/c")
	f(at, "", "", false, "store.dir="+file, "store.mode=memory")
	f(at, keyTokenFile, "no such file", false, "exacta.auth_token_file="+dir+"/nope")
	f(at, keyTokenFile, "16 to", false, "exacta.auth_token_file="+file)
	f(at, "threads", "cannot use the keys of", false, "threads.public_key_file="+file, "threads.issuer=i", "threads.listen_addr=127.0.0.1:0", "threads.lines_addr=")
	f(at, "threads.supervisor_workdir", "no such file", false, "threads.supervisor_workdir="+dir+"/nope")
	f(at, "exacta.allowed_roots", "no such file", true, "exacta.allowed_roots="+dir+"/nope")
	f(at, "toolhost.root", "no such file", false, "toolhost.listen_addr=127.0.0.1:0", "toolhost.root="+dir+"/nope")
	f(at, "toolhost.plugins", "no such file", false, "toolhost.listen_addr=127.0.0.1:0", "toolhost.plugins=builtin,"+dir+"/nope")
	f(at, "kernel.listen_addr", "is in use", true, "kernel.listen_addr="+ln.Addr().String())
	f(at, "kernel.listen_addr", "is in use", true, "kernel.listen_addr=unix://"+sock)
	f(at, "kernel.listen_addr", "no such file", false, "kernel.listen_addr=unix://"+dir+"/nope/s")
	f(at, "", "", false, "kernel.listen_addr=unix://"+dir+"/other")
	f(at, "exacta.ws_addr", "is in use", true, "exacta.ws_addr="+ln.Addr().String())
}

// TestInspectSeesWhatMayNotBeWritten runs only as a user to whom modes apply.
func TestInspectSeesWhatMayNotBeWritten(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	found := mustLoad(t, append([]string{"--set=store.dir=" + dir + "/d"}, free...), nil, "").inspect(time.Now())
	if len(found) != 1 || found[0].Key != "store.dir" || found[0].Warning {
		t.Errorf("%+v", found)
	}
}
