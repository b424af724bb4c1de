package doctor

import (
	"net"
	"path/filepath"
	"testing"
)

func TestListeners(t *testing.T) {
	r := newRig(t)
	const key = "kernel.listen_addr"
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := ln.Addr().String()
	r.want(r.run(), "listeners", key, OK, "the port is chosen at the start")
	r.want(r.run("--listen", taken), "listeners", key, Failed, taken+" is in use, and no trunkline answers")
	admin := adminOf(t, healthy())
	got := r.run("--listen", taken, "--admin-listen", admin)
	r.want(got, "listeners", key, OK, taken+" is in use, and trunkline v1 answers on "+admin)
	r.want(got, "listeners", "admin.listen_addr", OK, admin+" is in use")
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	r.want(r.run("--listen", taken), "listeners", key, OK, taken+" is free")
	// 192.0.2.0/24 is for documentation: no machine has an address of it.
	r.want(r.run("--listen", "192.0.2.1:50051", "--set", "kernel.insecure_bind=true"), "listeners", key, Failed, "is no address of this machine")
	stranger := adminOf(t, map[string]any{})
	r.want(r.run("--admin-listen", stranger), "listeners", "admin.listen_addr", Failed, "is in use")
}

func TestSockets(t *testing.T) {
	r := newRig(t)
	const key = "http.listen_addr"
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	f := func(path string, result Result, evidence string) {
		t.Helper()
		r.want(r.run("--http-listen", "unix://"+path), "listeners", key, result, evidence)
	}
	f(path, OK, "is free")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	f(path, Failed, "is in use")
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	f(path, OK, "is free") // what is left of a server is no obstacle
	f(write(t, filepath.Join(dir, "file"), "x"), Failed, "is there and no socket")
	f(filepath.Join(dir, "missing", "s"), Failed, "no socket can be made")
}

// TestEachSectionIsTried: an address that is not tried would be found at the start only.
func TestEachSectionIsTried(t *testing.T) {
	r := newRig(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	keys := write(t, filepath.Join(t.TempDir(), "secret"), "0123456789012345678901234567890123456789")
	for _, key := range []string{"toolhost.listen_addr", "threads.listen_addr", "threads.lines_addr", "exacta.listen_addr", "exacta.ws_addr"} {
		got := r.run("--set", "threads.hs256_secret_file="+keys, "--set", "threads.issuer=i", "--set", "threads.listen_addr=127.0.0.1:0", "--set", "threads.lines_addr=127.0.0.1:0", "--set", key+"="+ln.Addr().String())
		r.want(got, "listeners", key, Failed, "is in use")
	}
}
