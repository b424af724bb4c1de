package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// burn keeps a core busy long enough for samples.
func burn(lasting time.Duration) (sum uint64) {
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		for i := range uint64(100_000) {
			sum += i * i
		}
		hash := sha256.Sum256(make([]byte, 1<<20))
		sum += uint64(hash[0])
	}
	return sum
}

func take(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		t.Fatal(err)
	}
	burn(300 * time.Millisecond)
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func values(p *profile.Profile) (sum int64) {
	for _, s := range p.Sample {
		sum += s.Value[0]
	}
	return sum
}

func TestConvert(t *testing.T) {
	dir := t.TempDir()
	a, b, out := filepath.Join(dir, "a.pprof"), filepath.Join(dir, "b.pprof"), filepath.Join(dir, "default.pgo")
	take(t, a)
	take(t, b)
	var complaints bytes.Buffer
	if status := command([]string{"-o", out, dir}, &complaints); status != 0 {
		t.Fatalf("status %d: %s", status, &complaints)
	}
	pa, err := read(a)
	if err != nil {
		t.Fatal(err)
	}
	pb, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := read(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(merged), values(pa)+values(pb); got != want || got == 0 {
		t.Errorf("%d samples, want %d", got, want)
	}
	found := false
	for _, f := range merged.Function {
		found = found || strings.HasSuffix(f.Name, ".burn")
		if strings.HasPrefix(f.Name, "crypto/") {
			t.Errorf("%s is in it", f.Name)
		}
	}
	if !found {
		t.Error("the function that used the time is not in it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(merged.String(), self) || merged.TimeNanos != 0 {
		t.Error("it tells where and when it was taken")
	}
}

func TestCommandRefuses(t *testing.T) {
	f := func(status int, why string, args ...string) {
		t.Helper()
		var complaints bytes.Buffer
		if got := command(args, &complaints); got != status || !strings.Contains(complaints.String(), why) {
			t.Errorf("%q: status %d, %s", args, got, &complaints)
		}
	}
	dir := t.TempDir()
	f(2, "cannot run without", dir)
	f(2, "cannot run without", "-o", "x")
	f(2, "flag provided but not defined", "-nope")
	f(1, "cannot find a profile", "-o", filepath.Join(dir, "x"), dir)
	if err := os.WriteFile(filepath.Join(dir, "bad.pprof"), []byte("no profile"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(1, "cannot read", "-o", filepath.Join(dir, "x"), dir)
}
