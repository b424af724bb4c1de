package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/storesocket"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/kernel"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// program is the program as a process of its own.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args[0] = "trunkline" // see TestMain
	return cmd
}

// storeServer is a server with a store, and clients that make processes in it.
type storeServer struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	addr string
	stop context.CancelFunc
	load sync.WaitGroup
	rest sync.RWMutex // held by a test while the clients have to wait

	mu    sync.Mutex
	acked []string
}

// startStoreServer starts one, and a load of a few clients.
func startStoreServer(t *testing.T, dir, mode string, round int) *storeServer {
	t.Helper()
	s := &storeServer{t: t, dir: dir, addr: "unix://" + filepath.Join(t.TempDir(), "t.sock")}
	s.cmd = program("serve", "--listen", s.addr, "--http-listen=", "--admin-listen=", "--set", "store.dir="+dir, "--set", "store.mode="+mode,
		"--set", "store.snapshot_bytes=65536", "--log-format=text")
	talk, err := s.cmd.StderrPipe()
	if err == nil {
		err = kit.Start(s.cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, serving := bufio.NewScanner(talk), make(chan bool, 1)
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "INF serving") {
				serving <- true
			}
		}
		close(serving)
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	if !<-serving {
		t.Fatal("the server did not start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	for w := range 3 {
		c, err := ipcclient.Dial(ctx, s.addr)
		if err != nil {
			t.Fatal(err)
		}
		s.load.Go(func() {
			defer c.Close()
			for i := 0; ctx.Err() == nil; i++ {
				pid := fmt.Sprintf("p%02d-%d-%06d", round, w, i) // of one width: none begins another
				if !s.create(ctx, c, pid) {
					return
				}
			}
		})
	}
	return s
}

// create makes a process; false means that the server is gone.
func (s *storeServer) create(ctx context.Context, c *ipcclient.Conn, pid string) bool {
	s.rest.RLock()
	defer s.rest.RUnlock()
	_, err := c.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = append(s.acked, pid)
	return true
}

// answered returns what was acknowledged until now.
func (s *storeServer) answered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked[:len(s.acked):len(s.acked)]
}

// kill ends the server with SIGKILL, and the load.
func (s *storeServer) kill() {
	s.t.Helper()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.stop()
	s.load.Wait()
}

// holds reads a store, in the journal and in its snapshot, and returns which of the processes are
// not in it.
func holds(t *testing.T, dir string, pids []string) (missing []string) {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := program("store", "export", "--store-dir", dir)
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, talk.String())
	}
	var all bytes.Buffer // what a snapshot has is there as it is stored
	for line := range strings.Lines(out.String()) {
		var l struct {
			Kind   string `json:"kind"`
			PID    string `json:"pid"`
			Base64 []byte `json:"base64"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Kind == "snapshot.part" {
			all.Write(l.Base64)
		} else if l.PID != "" {
			all.WriteString("\x00" + l.PID + "\x00")
		}
	}
	found := map[string]bool{}
	for _, pid := range regexp.MustCompile(`p\d\d-\d-\d{6}`).FindAllString(all.String(), -1) {
		found[pid] = true
	}
	for _, pid := range pids {
		if !found[pid] {
			missing = append(missing, pid)
		}
	}
	return missing
}

// TestBackupUnderLoad backs up a busy server again and again, kills it or the backup at any moment,
// and looks at what is there: a backup that was reported has everything that was answered before
// it began. One that was not is no store, or has all of that too. The server has lost nothing.
func TestBackupUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers")
	}
	for _, mode := range []string{"always", "interval"} {
		t.Run(mode, func(t *testing.T) {
			dir, at := filepath.Join(t.TempDir(), "data"), t.TempDir()
			rng := rand.New(rand.NewPCG(1, uint64(len(mode))))
			var acked []string
			during, killed := 0, 0
			for round := range rounds.Pick(1, 16) {
				s := startStoreServer(t, dir, mode, round)
				for len(s.answered()) < 200 {
					time.Sleep(time.Millisecond)
				}
				for i, end := range []string{"none", "archive", "backup", "server"} {
					dest := filepath.Join(at, fmt.Sprintf("%d-%d", round, i))
					if end == "archive" {
						dest += ".tar"
					}
					before := append(acked[:len(acked):len(acked)], s.answered()...)
					cmd := program("store", "backup", "--store-dir", dir, dest)
					var talk bytes.Buffer
					cmd.Stdout, cmd.Stderr = &talk, &talk
					if err := kit.Start(cmd); err != nil {
						t.Fatal(err)
					}
					if end == "backup" || end == "server" {
						time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
						if end == "server" {
							s.kill()
						} else {
							_ = cmd.Process.Kill()
						}
					}
					err := cmd.Wait()
					if err == nil && (end == "none" || end == "archive") {
						during += len(s.answered()) + len(acked) - len(before)
					}
					if err != nil {
						if killed++; end == "none" || end == "archive" {
							t.Fatalf("%v: %s", err, talk.String())
						}
					}
					s.rest.Lock() // a store that grows while it is read makes each reading longer than the last
					checkBackup(t, dest, err == nil, before)
					s.rest.Unlock()
				}
				acked = append(acked, s.answered()...)
			}
			if missing := holds(t, dir, acked); len(missing) > 0 {
				t.Errorf("the server has lost %q", missing)
			}
			if during == 0 {
				t.Error("nothing was answered while backups were made")
			}
			t.Logf("%d processes, %d of them answered while a backup was made; %d backups were ended", len(acked), during, killed)
		})
	}
}

// checkBackup looks at what a backup has left, which was reported as made or not.
func checkBackup(t *testing.T, dest string, made bool, before []string) {
	t.Helper()
	store := dest
	if strings.HasSuffix(dest, ".tar") {
		store += ".restored"
		if out, err := program("store", "restore", "--store-dir", store, dest).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	out, err := program("store", "verify", "--store-dir", store).CombinedOutput()
	if err != nil && made {
		t.Fatalf("a backup was reported, and is none: %s", out)
	}
	if err != nil {
		return
	}
	if missing := holds(t, store, before); len(missing) > 0 {
		t.Errorf("%s has not %q, which were answered before it was begun", dest, missing)
	}
}

// TestCheckpointsThatAreLeft: a start removes the checkpoints of a server that was killed, also
// where the store has another name since, or its checkpoints another place.
func TestCheckpointsThatAreLeft(t *testing.T) {
	f := func(before, after string, moved bool) {
		t.Helper()
		at := t.TempDir()
		dir := filepath.Join(at, "data")
		t.Setenv("TRUNKLINE_STORE_BACKUP_DIR", before)
		s := startStoreServer(t, dir, "always", 0)
		lease, err := storesocket.Ask(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s.kill()
		lease.Close()
		left := filepath.Dir(lease.Dir)
		if moved {
			if err := os.Rename(dir, dir+"2"); err != nil {
				t.Fatal(err)
			}
			left, dir = strings.Replace(left, dir, dir+"2", 1), dir+"2"
		}
		if _, err := os.Stat(left); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TRUNKLINE_STORE_BACKUP_DIR", after)
		startStoreServer(t, dir, "always", 1).kill()
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("from %q to %q: %s is left (%v)", before, after, left, err)
		}
	}
	f("", "", false)
	f("", "", true)
	elsewhere := t.TempDir()
	f("", elsewhere, false)
	f(elsewhere, elsewhere, false)
}

// terminal is what a progress bar is drawn on. It calls begins when the first phase of that name
// begins.
type terminal struct {
	phase  string
	begins func()
}

// Write implements io.Writer.
func (w *terminal) Write(p []byte) (int, error) {
	if begins := w.begins; begins != nil && strings.HasPrefix(string(p), "\r"+w.phase) {
		w.begins = nil
		begins()
	}
	return len(p), nil
}

// TestTheServerEndsDuringABackup: a copy in a directory needs the server until it is made, and is
// verified without it; an archive needs it to its end, and there is none then.
func TestTheServerEndsDuringABackup(t *testing.T) {
	f := func(dest, phase string, want bool) {
		t.Helper()
		dir, at := t.TempDir(), t.TempDir()
		s, err := embedded.Open(embedded.Config{Dir: dir, FreeBytes: func() (uint64, error) { return 1 << 40, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		l, err := journal.Open(s, journal.Config{})
		if err == nil {
			err = l.Replay(0, func(journal.Index, []byte) error { return nil })
		}
		for i := range 20 {
			l.Append(kernel.AppendChange([]byte{kernel.Tag}, &kernel.Change{Kind: kernel.ChangeRemove, PID: fmt.Append(nil, i)}))
			err = errors.Join(err, l.Barrier(t.Context()))
		}
		checkpoint := filepath.Join(t.TempDir(), "checkpoint")
		server, failed := storesocket.Serve(storesocket.Config{Store: dir, Logger: slog.New(slog.DiscardHandler), Take: func(context.Context) (storesocket.Checkpoint, func(), error) {
			err := s.Checkpoint(checkpoint, nil)
			return storesocket.Checkpoint{Dir: checkpoint, Index: l.Durable()}, func() { _ = os.RemoveAll(checkpoint) }, err
		}})
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		ended := false
		bar := cli.NewProgress(&terminal{phase: phase, begins: func() {
			ended = true
			server.Close()
			time.Sleep(20 * time.Millisecond) // for the client to notice
		}}, time.Now)
		b := madeBackup{Directory: dir, Backup: filepath.Join(at, dest)}
		unread, err := b.make(t.Context(), true, bar)
		if made := err == nil && unread == nil; made != want || !ended || !b.Online {
			t.Errorf("%s, %s: %v, %v (%+v)", dest, phase, unread, err, b)
		}
		if want && (b.Index != l.Durable() || !b.Report.Sound) {
			t.Errorf("%s, %s: up to %d, want %d: %+v", dest, phase, b.Index, l.Durable(), b.Report)
		}
		if names, _ := os.ReadDir(at); !want && len(names) != 0 {
			t.Errorf("%s, %s: left %v, %v", dest, phase, names, err)
		}
	}
	f("copy", "log", true)
	f("copy", "copy", false)
	f("copy.tar", "log", false)
	f("copy.tar", "copy", false)
}
