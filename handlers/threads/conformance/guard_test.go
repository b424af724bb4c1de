package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// refused starts the program again in the directory of s, and expects that it does not serve.
func (s *server) refused(why, hint string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, kit.Program(s.t, scratch), s.cmd.Args[1:]...)
	cmd.Dir, cmd.Env = s.cmd.Dir, s.cmd.Env
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), hint) {
		s.t.Errorf("%s: %v, want %q: %s", why, err, hint, out)
	}
}

// TestStoreIsGuarded: no second server has the store, and one whose rows are missing, or older than
// its journal, is refused; with its own rows everything is there.
func TestStoreIsGuarded(t *testing.T) {
	t.Parallel()
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=50000")
	id := s.create()
	n := 0
	post := func(more int) {
		for range more {
			n++
			if a := s.post("post_message", executioner, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%0500d","idempotency_key":"k%d"}`, id, n, n)); a.status != 200 || a.body["seq"] != float64(n) {
				t.Fatal(a.status, a.text)
			}
		}
	}
	snapshots := func() int { return strings.Count(s.log.String(), "snapshot written") }
	post(150)
	s.eventually("a snapshot", func() bool { return snapshots() > 0 })
	s.refused("a second server", "in use")
	data := filepath.Join(s.dir, "trunkline-data")
	rows, older, away := filepath.Join(data, "rows"), filepath.Join(s.dir, "older"), filepath.Join(s.dir, "away")
	s.kill()
	if err := os.CopyFS(older, os.DirFS(rows)); err != nil {
		t.Fatal(err)
	}
	s.run()
	had := snapshots()
	post(400)
	s.eventually("a later snapshot", func() bool { return snapshots() > had })
	s.kill()
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(rows, away)
	s.refused("missing rows", "rows")
	_ = os.RemoveAll(rows)
	move(older, rows)
	s.refused("older rows", "rows")
	if err := os.RemoveAll(rows); err != nil {
		t.Fatal(err)
	}
	move(away, rows)
	s.run()
	for since := 0; since < n; {
		a := s.post("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d,"limit":200}`, id, since))
		list, _ := a.body["messages"].([]any)
		if len(list) == 0 {
			t.Fatal(a.status, a.text)
		}
		for _, m := range list {
			if since++; m.(map[string]any)["body"] != fmt.Sprintf("%0500d", since) {
				t.Fatalf("message %d is %v", since, m)
			}
		}
	}
	s.stop()
}
