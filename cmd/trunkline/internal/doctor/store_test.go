package doctor

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/fuzz/kit"
)

// in runs the checks with a store in a directory.
func (r *rig) in(dir string, args ...string) *Report {
	r.t.Helper()
	return r.run(append([]string{"--set", "store.mode=always", "--set", "store.dir=" + dir}, args...)...)
}

func TestStoreDirectory(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.want(r.in(dir), "store.directory", "store.dir", Warning,
		"other users can look into "+dir+", which has mode -rwxr-xr-x")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	got := r.in(dir)
	r.want(got, "store.directory", "store.dir", OK, "a file could be made, written and removed in "+dir)
	r.want(got, "store.layout", "store.dir", OK, "is empty")
	r.want(got, "store.lock", "store.dir", OK, "no server has had")
	r.want(got, "store.sync", "store.dir", OK, "8 syncs of 4096 bytes: median ")
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("%v, left behind: %v", err, names)
	}
	missing := filepath.Join(dir, "a", "b")
	got = r.in(missing)
	r.want(got, "store.directory", "store.dir", OK, missing+" is not there yet; a file could be made and removed in "+dir)
	r.want(got, "store.layout", "store.dir", Skipped, "is not there yet")
	r.want(got, "store.lock", "store.dir", Skipped, "is not there yet")
	if _, err := os.Stat(missing); err == nil {
		t.Error("the directory was made")
	}
	file := write(t, filepath.Join(dir, "file"), "x")
	r.want(r.in(file), "store.directory", "store.dir", Failed, "not a directory")
	r.want(r.run(), "store.directory", "store.mode", Skipped, "nothing is kept")
	sealed := filepath.Join(dir, "sealed")
	if err := os.Mkdir(sealed, 0o500); err != nil {
		t.Fatal(err)
	}
	if unix.Access(sealed, unix.W_OK) == nil {
		t.Log("this user may write everywhere: a directory that may not be written is not tried")
		return
	}
	got = r.in(sealed)
	r.want(got, "store.directory", "store.dir", Failed, "permission denied")
	r.want(got, "store.sync", "store.dir", Skipped, "no file can be made")
}

// madeStore is a directory that a server has kept its state in.
func madeStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := embedded.Open(embedded.Config{Dir: dir, Mode: journal.Always})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStoreLayout(t *testing.T) {
	r := newRig(t)
	dir := madeStore(t)
	r.want(r.in(dir), "store.layout", "store.dir", OK, "its mode is always")
	r.want(r.in(dir, "--set", "store.mode=interval"), "store.layout", "store.mode", Failed, "it was made in mode always")
	stamp := filepath.Join(dir, "JOURNAL")
	write(t, stamp, "trunkline journal 99\nmode always\nformat 1\n")
	r.want(r.in(dir), "store.layout", "store.dir", Failed, "version")
	write(t, stamp, "something else")
	r.want(r.in(dir), "store.layout", "store.dir", Failed, "damaged")
}

// holdLock names the file that the process of TestMain locks, for another process to look at.
const holdLock = "TRUNKLINE_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	name := os.Getenv(holdLock)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		os.Exit(1)
	}
	if unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}) != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

func TestStoreLock(t *testing.T) {
	r := newRig(t)
	dir := madeStore(t)
	r.want(r.in(dir), "store.lock", "store.dir", OK, "no process has")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(program)
	holder.Env = append(os.Environ(), holdLock+"="+filepath.Join(dir, "LOCK"))
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(holder); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = holder.Wait()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("locked\n"))); err != nil {
		t.Fatal(err)
	}
	pid := "process " + strconv.Itoa(holder.Process.Pid) + " has "
	r.want(r.in(dir), "store.lock", "store.dir", Warning, pid)
	r.want(r.in(dir, "--admin-listen", adminOf(t, healthy())), "store.lock", "store.dir", OK, pid)
}

func TestRateSpace(t *testing.T) {
	f := func(free, total uint64, result Result, evidence string) {
		t.Helper()
		if got := rateSpace(free, total); got.Result != result || !strings.Contains(got.Evidence, evidence) {
			t.Errorf("%d of %d: %+v, want %s with %q", free, total, got, result, evidence)
		}
	}
	const least = embedded.MinFreeBytes
	f(least-1, 10*least, Failed, "every change is refused")
	f(least, 10*least, Warning, "every change is refused")
	f(2*least-1, 10*least, Warning, "every change is refused")
	f(2*least, 20*least, OK, "(10 %)")
	f(2*least-1, 20*least, Warning, "")
	f(20*least-1, 200*least, Warning, "less than 10 %")
	f(20*least, 200*least, OK, "")
}

func TestRateSyncs(t *testing.T) {
	f := func(median time.Duration, mode string, result Result, fix string) {
		t.Helper()
		took := []time.Duration{time.Second, 0, median, 0, median}
		got := rateSyncs(took, mode)
		if got.Result != result || !strings.Contains(got.Fix, fix) || !strings.Contains(got.Evidence, "longest 1s") {
			t.Errorf("%s: %+v, want %s", median, got, result)
		}
	}
	f(slowSync, "always", OK, "")
	f(slowSync+1, "always", Warning, "store.mode=interval")
	f(slowSync+1, "interval", Warning, "syncs faster")
}

func TestFilesystems(t *testing.T) {
	r := newRig(t)
	if _, err := os.Stat("/dev/shm"); err != nil || fileSystem("/dev/shm") != "tmpfs" {
		t.Skip("there is no /dev/shm of kind tmpfs")
	}
	r.want(r.in("/dev/shm"), "store.filesystem", "store.dir", Warning, "/dev/shm is on tmpfs")
	if kind := fileSystem("."); kind == "" {
		r.want(r.in("."), "store.filesystem", "store.dir", Skipped, "not known")
	} else {
		r.want(r.in("."), "store.filesystem", "store.dir", OK, "is on "+kind)
	}
}
