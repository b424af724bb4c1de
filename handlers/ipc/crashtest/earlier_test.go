package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
)

// TestDirectoryOfAnEarlierRevision opens the directory of a server of an earlier revision, which
// was killed: processes in all states, quota defaults, usage, rate windows, envelopes, sessions
// with an answered and with an open interrupt, a reported and a forced session, and idempotency
// keys, in a snapshot and in the log behind it. testdata/earlier.txt has what that revision found
// there: its digests, as GetSystemStatus shows them, and the number of records and of keys.
func TestDirectoryOfAnEarlierRevision(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS("testdata/earlier")); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/earlier.txt")
	if err != nil {
		t.Fatal(err)
	}
	rt := runtime.New(runtime.Config{Journaled: true, Now: func() connection.Instant {
		return connection.Instant{Mono: 1, Wall: 1700000000000}
	}})
	files, err := embedded.Open(embedded.Config{Dir: dir, Mode: journal.Always})
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(files, journal.Config{Mode: journal.Always, OnDurable: rt.Durable})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var snapshot uint64
	o := store.RecoverOptions{Progress: func(p store.RecoverProgress) {
		if p.Snapshot {
			snapshot = p.Total
		}
	}}
	if err := rt.Store.Recover(log, o); err != nil {
		t.Fatal(err)
	}
	d := rt.Digests(nil)
	got := fmt.Sprintf("kernel %x\norchestration %x\nkeys %x\n%d records, %d keys",
		d.Kernel, d.Orchestration, rt.Outcomes.Digest(), log.Appended(), rt.Outcomes.Len())
	if got != strings.TrimSpace(string(want)) || snapshot == 0 {
		t.Errorf("%s with a snapshot of %d bytes, want %s", got, snapshot, want)
	}
}
