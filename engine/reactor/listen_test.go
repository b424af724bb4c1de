package reactor

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestListen(t *testing.T) {
	dir := t.TempDir()
	f := func(addr, wantErr string) {
		t.Helper()
		ln, err := Listen(addr)
		if err == nil {
			_ = ln.Close()
		}
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("Listen(%q) said %v, want %q", addr, err, wantErr)
		}
	}
	f("127.0.0.1:0", "")
	f("127.0.0.1:notaport", "cannot listen on 127.0.0.1:notaport")
	f("unix://", "1 to 107 bytes")
	f("unix://"+dir+"/"+strings.Repeat("x", 107-len(dir)-1), "")
	f("unix://"+dir+"/"+strings.Repeat("x", 108-len(dir)-1), "1 to 107 bytes")
	f("unix://"+dir+"/missing/s", "cannot open the lock file")
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f("unix://"+dir+"/file", "not a socket")
	f("unix://"+dir+"/file", "not a socket") // the failure gave its lock back
	if err := os.Symlink(dir+"/file", dir+"/link.lock"); err != nil {
		t.Fatal(err)
	}
	f("unix://"+dir+"/link", "cannot open the lock file")

	leaveStale(t, dir+"/s")
	f("unix://"+dir+"/s", "")
	wantFile(t, dir+"/s", false)
}

// leaveStale makes a socket file that no one answers, as a killed server leaves it.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path string, there bool) {
	t.Helper()
	if _, err := os.Lstat(path); os.IsNotExist(err) == there {
		t.Errorf("Lstat %s: %v, want a file: %v", path, err, there)
	}
}

func mustListen(t *testing.T, path string) net.Listener {
	t.Helper()
	ln, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func TestUnixFilesAreForTheirOwner(t *testing.T) {
	path := t.TempDir() + "/s"
	ln := mustListen(t, path)
	for _, name := range []string{path, path + lockSuffix} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info, err)
		}
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, path, false)
	wantFile(t, path+lockSuffix, true)
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second Close said %v", err)
	}
}

func TestUnixPathInUse(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		ln, err := Listen("unix://" + path)
		if err == nil {
			_ = ln.Close()
			t.Fatal("one path was opened twice")
		}
		if !strings.Contains(err.Error(), want) || !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v, want %q", err, want)
		}
		wantFile(t, path, true)
	}
	path := t.TempDir() + "/s"
	ours := mustListen(t, path)
	defer ours.Close()
	f(path, "another server holds the lock "+path+".lock")

	path = t.TempDir() + "/s"
	theirs, err := net.Listen("unix", path) // by a program that knows no lock
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	f(path, "another server answers there")
}

func TestOneOfManyOpensAStalePath(t *testing.T) {
	const racers, rounds = 4, 200
	path := t.TempDir() + "/s"
	for round := range rounds {
		leaveStale(t, path)
		var won [racers]net.Listener
		var lost [racers]error
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range racers {
			wg.Go(func() {
				<-begin
				won[i], lost[i] = Listen("unix://" + path)
			})
		}
		close(begin)
		wg.Wait()
		var winners []net.Listener
		for i, ln := range won {
			switch {
			case lost[i] == nil:
				winners = append(winners, ln)
			case !errors.Is(lost[i], syscall.EADDRINUSE):
				t.Errorf("round %d: %v", round, lost[i])
			}
		}
		if len(winners) != 1 {
			t.Fatalf("round %d: %d listeners on one path, want 1", round, len(winners))
		}
		wantAnswer(t, path, winners[0])
		if err := winners[0].Close(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		wantFile(t, path, false)
	}
}

// wantAnswer checks that path leads to ln.
func wantAnswer(t *testing.T, path string, ln net.Listener) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := ln.Accept() // the dial is in the backlog of the one that owns the path
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Close()
}

func TestCloseLeavesTheFileOfAnother(t *testing.T) {
	path := t.TempDir() + "/s"
	a := mustListen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, path, true)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("B does not answer: %v", err)
	}
	_ = c.Close()
}

func TestCloseWithoutItsFile(t *testing.T) {
	path := t.TempDir() + "/s"
	ln := mustListen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := mustListen(t, path).Close(); err != nil {
		t.Error(err)
	}
}

func TestTCPNetwork(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		if got := tcpNetwork(addr); got != want {
			t.Errorf("tcpNetwork(%q) = %s, want %s", addr, got, want)
		}
	}
	f("0.0.0.0:0", "tcp4")
	f("127.0.0.1:80", "tcp4")
	f("[::ffff:127.0.0.1]:80", "tcp4")
	f("[::]:0", "tcp6")
	f("[fe80::1%lo]:0", "tcp6")
	f("localhost:0", "tcp")
	f(":0", "tcp")
	f("nonsense", "tcp")
}

func TestIPv4AnyIsNotIPv6(t *testing.T) {
	ln, err := Listen("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if addr := ln.Addr().(*net.TCPAddr); addr.IP.To4() == nil {
		t.Errorf("0.0.0.0 was bound as %s", addr)
	}
}
