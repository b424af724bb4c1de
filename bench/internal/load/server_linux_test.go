package load

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTrunklineKeepsNothingUnlessAsked(t *testing.T) {
	f := func(env, dirEnv string, dev, temp bool, settings ...string) {
		t.Helper()
		t.Setenv("TRUNKLINE_STORE_MODE", env)
		t.Setenv("TRUNKLINE_STORE_DIR", dirEnv)
		c := Trunkline("x", settings...)
		if got := slices.Contains(c.Args, "--dev"); got != dev || c.TempStore != temp {
			t.Errorf("%q %q %q: %q, temporary store %v", env, dirEnv, settings, c.Args, c.TempStore)
		}
		for _, kv := range settings {
			if !slices.Contains(c.Args, kv) {
				t.Errorf("%q lack %s", c.Args, kv)
			}
		}
	}
	f("", "", true, false)
	f("", "", true, false, "kernel.loops=1", "store.dir=d")
	f("memory", "", true, false)
	f("always", "", false, true)
	f("interval", "d", false, false)
	f("always", "", true, false, "store.mode=memory")
	f("", "", false, true, "store.mode=interval")
	f("", "", false, true, "store.mode=memory", "store.mode=always")
	f("", "", false, false, "store.mode=always", "store.dir=d")
}

// TestTemporaryStoreGoesWithTheServer: it is there while the process runs, and not afterwards,
// whether it was stopped, ended by itself or was never started.
func TestTemporaryStoreGoesWithTheServer(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := func() int {
		entries, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	shell := func(script string) Command {
		return Command{Name: "peer", Path: "/bin/sh", Args: []string{"-c", script, "sh"}, Listening: PeerListening, TempStore: true}
	}
	s, err := StartServer(shell(`echo "$2"; echo listening x; exec sleep 60`))
	if err != nil {
		t.Fatal(err)
	}
	dir, ok := strings.CutPrefix(strings.Split(s.Output(), "\n")[0], "store.dir=")
	if info, err := os.Stat(dir); !ok || err != nil || !info.IsDir() {
		t.Errorf("it was given %q: %v", s.Output(), err)
	}
	s.Stop()
	if n := left(); n != 0 {
		t.Errorf("%d entries are left of a server that was stopped", n)
	}
	s, err = StartServer(shell("echo listening x"))
	for until := time.Now().Add(startTimeout); err == nil && s.Alive() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if n := left(); err != nil && !strings.Contains(err.Error(), "it ended") || n != 0 {
		t.Errorf("%v, %d entries are left of a server that ended", err, n)
	}
	none := shell("")
	none.Path = "/nonexistent/server"
	if _, err := StartServer(none); err == nil || left() != 0 {
		t.Errorf("%v, %d entries are left of a server that did not start", err, left())
	}
}
