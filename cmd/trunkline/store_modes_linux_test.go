package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"trunkline/fuzz/kit"
)

// underUmask is a run of the program with a umask that lets others read what is made.
type underUmask struct {
	cmd *exec.Cmd
	log kit.Text
}

// newUnderUmask makes a run that is not started.
func newUnderUmask(dir string, args ...string) *underUmask {
	r := &underUmask{cmd: exec.Command("bash", append([]string{"-c", `umask 022; exec -a trunkline "$0" "$@"`, os.Args[0]}, args...)...)} // see TestMain
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = dir, &r.log, &r.log
	return r
}

func startUnderUmask(t *testing.T, dir string, args ...string) *underUmask {
	t.Helper()
	r := newUnderUmask(dir, args...)
	if err := kit.Start(r.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// serve waits until the run serves, and ends it.
func (r *underUmask) serve(t *testing.T, meanwhile func()) {
	t.Helper()
	kit.Until(t, "serving", func() bool { return r.log.Has(`"msg":"serving"`) })
	meanwhile()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Fatalf("%v, %s", err, &r.log)
	}
}

// wantPrivate walks a directory in which only the owner may have rights; skip names what is not of
// the program.
func wantPrivate(t *testing.T, root string, least int, skip ...string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, s := range skip {
			if name == s {
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if seen++; info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return nil
	})
	if err != nil || seen < least {
		t.Errorf("%s: %d files, %v", root, seen, err)
	}
}

// TestFilesOfAStoreAreOfItsOwner: under a umask of 022 every file and directory of a store, of a
// node's store and of its backups is for the owner alone.
func TestFilesOfAStoreAreOfItsOwner(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: ", err)
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "made", "store")
	alone := []string{"serve", "--http-listen=", "--listen=127.0.0.1:0", "--admin-listen=", "--threads-listen=",
		"--set=threads.lines_addr=", "--set=store.dir=" + store}
	verb := func(args ...string) {
		t.Helper()
		if r := newUnderUmask(dir, args...); r.cmd.Run() != nil {
			t.Fatalf("%q: %v, %s", args, r.cmd.ProcessState, &r.log)
		}
	}
	copies := func(name string) {
		verb("store", "backup", "-q", "--store-dir="+store, filepath.Join(dir, name))
		verb("store", "backup", "-q", "--store-dir="+store, filepath.Join(dir, name+".tar"))
	}
	server := startUnderUmask(t, dir, alone...)
	server.serve(t, func() { copies("beside") })
	if server.log.Has("chmod 700") {
		t.Errorf("a warning about a directory that was made: %s", &server.log)
	}
	copies("copy")
	verb("store", "export", "--store-dir="+store, "-o", filepath.Join(dir, "export"))
	verb("store", "restore", "-q", filepath.Join(dir, "copy.tar"), "--store-dir="+filepath.Join(dir, "restored"))
	verb("store", "import", "--store-dir="+filepath.Join(dir, "imported"), filepath.Join(dir, "export"))
	startUnderUmask(t, dir, alone...).serve(t, func() {}) // logs of before are taken again
	var routes []string
	var nodes []*underUmask
	for _, name := range []string{"n1", "n2", "n3"} {
		routes = append(routes, name+"="+kit.Reserve(t))
	}
	for _, route := range routes {
		name, addr, _ := strings.Cut(route, "=")
		nodes = append(nodes, startUnderUmask(t, dir, append(alone[:len(alone)-1:len(alone)-1],
			"--set=store.dir="+filepath.Join(dir, name), "--set=cluster.mode=embedded", "--set=cluster.name=c",
			"--set=cluster.node="+name, "--set=cluster.routes="+strings.Join(routes, ","), "--set=cluster.listen_addr="+addr,
			"--set=cluster.peer_addr="+kit.Reserve(t))...))
	}
	kit.Until(t, "an owner", func() bool {
		return slices.ContainsFunc(nodes, func(n *underUmask) bool { return n.log.Has("this node owns the journal") })
	})
	for _, n := range nodes {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	}
	wantPrivate(t, dir, 60, dir)
}

// TestAnOpenStoreDirectoryIsNamed: a directory that others can read is used as it is, and the log
// has the command that closes it.
func TestAnOpenStoreDirectoryIsNamed(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: ", err)
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	for mode, warned := range map[fs.FileMode]bool{0o755: true, 0o701: true, 0o770: false, 0o700: false} {
		if err := os.MkdirAll(store, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(store, mode); err != nil {
			t.Fatal(err)
		}
		server := startUnderUmask(t, dir, "serve", "--http-listen=", "--listen=127.0.0.1:0", "--admin-listen=",
			"--threads-listen=", "--set=threads.lines_addr=", "--set=store.dir="+store)
		server.serve(t, func() {})
		if server.log.Has(`"fix":"chmod 700 `+store+`"`) != warned {
			t.Errorf("mode %v: want a warning: %v, got %s", mode, warned, &server.log)
		}
		wantPrivate(t, store, 10, store)
	}
}
