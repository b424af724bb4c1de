package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func script(name, text string) Command {
	return Command{Name: name, Path: "/bin/sh", Args: []string{"-c", text}, Listening: PeerListening}
}

func newRig(t *testing.T) *Rig {
	t.Helper()
	r, err := NewRig(t.TempDir(), "x-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestRigLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	r, err := NewRig(parent, "x-")
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(parent, r.Dir); err != nil || !strings.HasPrefix(rel, "x-") {
		t.Errorf("folder %s, %v", r.Dir, err)
	}
	var all []*Server
	for range 3 {
		s, err := r.Start(script("peer", "echo listening x; exec sleep 60"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if all[0].Stop(); len(r.servers) != 3 {
		t.Errorf("%d processes", len(r.servers))
	}
	s, err := r.Peer("peer", "/bin/sh", "-c", "echo listening y; exec sleep 60")
	if err != nil || s.Addr != "y" || len(r.servers) != 3 {
		t.Errorf("%v, %d processes, want one that has ended forgotten", err, len(r.servers))
	}
	all = append(all, s)
	r.Close()
	r.Close()
	for _, s := range all {
		if s.Alive() {
			t.Error("a process is left")
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := NewRig(filepath.Join(parent, "none"), "x-"); err == nil {
		t.Error("a rig in a folder that is not there")
	}
}

func TestRigFindsTheServer(t *testing.T) {
	r := newRig(t)
	if err := r.FindServer("/nonexistent/server"); err == nil {
		t.Error("a server that is not there was found")
	}
	if err := r.FindServer("/bin/sh"); err != nil || r.Binary != "/bin/sh" {
		t.Errorf("%s, %v", r.Binary, err)
	}
}

func TestRigPinsServers(t *testing.T) {
	r := newRig(t)
	loads, err := r.Divide()
	if err != nil || (len(loads) == 0) != (len(r.CPUs) == 0) {
		t.Errorf("servers on %v, load on %v, %v", r.CPUs, loads, err)
	}
	s, err := r.Start(script("peer", "echo listening x; exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(s.PID(), &set); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.CPUs {
		if !set.IsSet(c) {
			t.Errorf("the server may not run on %d of %v", c, r.CPUs)
		}
	}
	for _, c := range loads {
		if set.IsSet(c) {
			t.Errorf("the server runs where the load does: %d of %v", c, loads)
		}
	}
}

// TestRigStartsRedis checks what a redis-server is started with, by one that only shows it.
func TestRigStartsRedis(t *testing.T) {
	r := newRig(t)
	fake := filepath.Join(r.Dir, "fake")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho \"$@\"\necho Ready to accept connections\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := r.Redis("redis", fake, "--save", "")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(s.Addr, ":")
	for _, want := range []string{"--port " + port + " --bind 127.0.0.1 --dir " + r.Dir, "--save"} {
		if !strings.Contains(s.Output(), want) {
			t.Errorf("it was started with %q, which lacks %q", s.Output(), want)
		}
	}
}

func TestDirectoryBytes(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{filepath.Join(dir, "f"): 100, filepath.Join(below, "g"): 11} {
		if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := DirectoryBytes(dir); n != 111 || DirectoryBytes(filepath.Join(dir, "none")) != 0 {
		t.Errorf("%d bytes", n)
	}
}
