package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// verify runs store verify on the directory of a server that has ended.
func (s *server) verify() (sound bool, rows int, text string) {
	s.t.Helper()
	cmd := exec.Command(kit.Program(s.t, scratch), "store", "verify", "--json")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	var v struct {
		Sound bool
		Rows  int
	}
	if json.Unmarshal(out, &v) != nil || v.Sound != (err == nil) {
		s.t.Fatalf("%s (%v)", out, err)
	}
	return v.Sound, v.Rows, string(out)
}

// TestVerifyRows: a verification reads what agent threads keep beside the journal.
func TestVerifyRows(t *testing.T) {
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=100000")
	id := s.create()
	for i := range 300 {
		s.post("post_message", executioner, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%01000d","idempotency_key":"k%d"}`, id, i, i))
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.log.String(), "snapshot written"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there is no snapshot")
		}
	}
	s.stop()
	sound, rows, text := s.verify()
	if !sound || rows < 4 {
		t.Fatalf("%d rows: %s", rows, text)
	}
	tables, err := filepath.Glob(filepath.Join(s.dir, "trunkline-data", "rows", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, path := range tables {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/8] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if sound, _, text = s.verify(); sound || !strings.Contains(text, "rows") {
		t.Errorf("damaged rows: %s", text)
	}
	if err := os.RemoveAll(filepath.Dir(tables[0])); err != nil {
		t.Fatal(err)
	}
	if sound, _, text = s.verify(); sound {
		t.Errorf("missing rows: %s", text)
	}
}
