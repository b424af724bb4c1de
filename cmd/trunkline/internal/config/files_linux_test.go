package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOnlySmallRegularFilesAreRead: of settings, and what they name.
func TestOnlySmallRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	fifo, zero, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "zero"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, []byte("log:\n  level: debug\n"+strings.Repeat("#", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "not a regular file", zero: "not a regular file",
		large: "too large: more than 1048576 bytes"} {
		if _, err := load(t, []string{"--config=" + path}, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("settings %s: %v, want %s", path, err, want)
		}
		if _, err := secretOf("key", path, 1, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("token %s: %v, want %s", path, err, want)
		}
		if _, err := LoadPair(path, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("certificate %s: %v, want %s", path, err, want)
		}
	}
}

// TestOneDocument: what follows the first one is not left out without a word.
func TestOneDocument(t *testing.T) {
	const mark, level = "\uFEFF", "log:\n  level: debug\n"
	for text, bad := range map[string]bool{
		level: false, mark + level: false, "---\n" + level: false, "# c\n--- # c\n" + level: false, level + "---\n": false,
		level + "...\n# c\n":       false,
		"%YAML 1.1\n---\n" + level: false, "log:\n  level: debug # --- x\n": false, "log: {level: debug} # x\n ---\n": true,
		level + "---\nadmin:\n  pprof: true\n": true, level + "--- {admin: {pprof: true}}\n": true, level +
			"...\nadmin:\n  pprof: true\n": true,
		"---\n---\n" + level: true, level + "---\n---\n# c\nx: 1\n": true,
	} {
		c, err := load(t, nil, nil, text)
		if bad != (err != nil) || err == nil && c.Log.Level != "debug" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNumbersOfYAML: a boolean may be a number, and a number is shown as it stands.
func TestNumbersOfYAML(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "0": false, "true": true, `"1"`: true} {
		if c := mustLoad(t, nil, nil, "admin:\n  insecure_bind: "+value+"\n"); c.Admin.InsecureBind != want {
			t.Errorf("insecure_bind %s is %v", value, c.Admin.InsecureBind)
		}
	}
	for value, want := range map[string]string{"2": "= 2 ", "1.0": "= 1.0 "} {
		if _, err := load(t, nil, nil, "admin:\n  insecure_bind: "+value+"\n"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("insecure_bind %s: %v", value, err)
		}
	}
	for value, shown := range map[string]string{"5000.0": "5000.0", "5000.5": "5000.5", "5e3": "5000.0"} {
		if _, err := load(t, nil, nil, "http:\n  max_body_bytes: "+value+"\n"); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("= %s ", shown)) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
