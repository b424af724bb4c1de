package workers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/tool"
)

// put writes a program to a file and returns its hash.
func put(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestMaxProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tool.sh")
	text := "#!/bin/sh\nread x; echo '{\"status\":\"OK\"}'\n"
	sum := put(t, file, text)
	f := func(limit int, want string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Command, c.SHA256, c.Oneshot = []string{file}, sum, true }, "good")
		if r.maxProgram != maxProgram {
			t.Errorf("limit %d", r.maxProgram)
		}
		r.maxProgram = int64(limit)
		r.want(want)
	}
	f(len(text), `OK  ""`)
	detail := fmt.Sprintf("too large to be hashed: %d bytes, more than %d", len(text), len(text)-1)
	f(len(text)-1, fmt.Sprintf(`TOOL_ERROR  %q not_found %q`, "toolhost launch failed: "+detail, detail))

	g := func(limit int64, want error) { // a file that grows
		t.Helper()
		if _, _, err := hashOf(context.Background(), bytes.NewReader(make([]byte, hashStep+1)), limit); !errors.Is(err, want) {
			t.Errorf("limit %d: %v, want %v", limit, err, want)
		}
	}
	g(hashStep+1, nil)
	g(hashStep, errTooLarge)
}

type cancelling struct{ cancel context.CancelFunc }

// Read has no end but that of the context.
func (c cancelling) Read(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// TestDeadlineBoundsTheStart: the hash of a large file, and a wait for the turn of a start.
func TestDeadlineBoundsTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if _, _, err := hashOf(ctx, cancelling{cancel}, maxProgram); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "large")
	put(t, file, "#!/bin/sh\n")
	if err := os.Truncate(file, maxProgram); err != nil { // nothing of it is on the disk
		t.Fatal(err)
	}
	late := timedOut + `"not started before the deadline"`
	r := newRig(t, func(c *ProcessConfig) { c.Command, c.SHA256 = []string{file}, strings.Repeat("0", 64) })
	if got := short(r.call(30*time.Millisecond, "{}", nil)); got != late {
		t.Errorf("%s", got)
	}

	r = newRig(t, func(c *ProcessConfig) { c.Spawner = &Spawner{} }, "good") // no one takes its jobs
	if got := short(r.call(30*time.Millisecond, "{}", nil)); got != late {
		t.Errorf("%s", got)
	}
	for r.Workers() > 0 { // the place is free again
		time.Sleep(time.Millisecond)
	}
}

// TestLateStart: a start that a call does not wait for is not lost.
func TestLateStart(t *testing.T) {
	real := NewSpawner()
	defer real.Close()
	slow := &Spawner{jobs: make(chan func())}
	r := newRig(t, func(c *ProcessConfig) { c.Spawner, c.Pool.Max = slow, 1 }, "good")
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan string)
	go func() { result <- short(r.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte("{}")})) }()
	j := <-slow.jobs
	cancel()
	if got := <-result; got != timedOut+`"not started before the deadline"` {
		t.Errorf("%s", got)
	}
	real.jobs <- j
	r.want(good)
	if n := r.started(); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// TestSwapped: what runs is what was hashed, whatever is at its path by then.
func TestSwapped(t *testing.T) {
	const mismatch = `TOOL_ERROR  "toolhost launch failed: hash mismatch" not_found "hash mismatch"`
	const reply = "echo '{\"status\":\"OK\"}'\n"
	f := func(oneshot bool, text, want string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "tool.sh")
		sum := put(t, file, "#!/bin/sh\nread x\n"+text+reply)
		r := newRig(t, func(c *ProcessConfig) { c.Command, c.SHA256, c.Oneshot = []string{file}, sum, oneshot })
		r.want(want)
	}
	for _, oneshot := range []bool{true, false} {
		f(oneshot, "", `OK  ""`)
		f(oneshot, "cp \"$0\" x; mv x \"$0\"\n", mismatch)                             // the same content, but who knows for how long
		f(oneshot, "echo >> \"$0\"\n", mismatch)                                       // in place
		f(oneshot, "touch -r \"$0\" x; echo >> \"$0\"; touch -r x \"$0\"\n", mismatch) // and the time set back
	}
	f(true, "echo >> \"$0\"; exit 3\n", mismatch)

	file := filepath.Join(t.TempDir(), "tool.sh")
	sum := put(t, file, "#!/bin/sh\n"+reply)
	p, err := openProgram(context.Background(), file, sum, maxProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	put(t, file+".new", "#!/bin/sh\nexit 9\n")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, nil, "good")
	if _, err := r.Process.launch(context.Background(), p, nil); err != errHash {
		t.Errorf("%v", err)
	}
}

// TestChangeTick: a change right after the hash gets another time, even if the file was written
// right before it.
func TestChangeTick(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tool.sh")
	for range 20 {
		sum := put(t, file, "#!/bin/sh\nexit 1\n")
		p, err := openProgram(context.Background(), file, sum, maxProgram)
		if err != nil {
			t.Fatal(err)
		}
		if !p.same() {
			t.Error("changed without a change")
		}
		put(t, file, "#!/bin/sh\nexit 2\n")
		if p.same() {
			t.Error("a change went unseen")
		}
		p.close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := func(changed time.Time, want error) {
		t.Helper()
		if err := grownOld(ctx, changed); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	f(time.Now(), context.Canceled)
	f(time.Now().Add(-changeTick), nil)
	f(time.Now().Add(time.Hour), nil)
}

// TestOpenProgram: what must not be opened, or not for ever.
func TestOpenProgram(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	f := func(path string, want error) {
		t.Helper()
		if _, err := openProgram(context.Background(), path, strings.Repeat("0", 64), maxProgram); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	f(fifo, fs.ErrPermission)
	f(dir, fs.ErrPermission)
	f(filepath.Join(dir, "none"), fs.ErrNotExist)
	put(t, filepath.Join(dir, "file"), "x")
	f(filepath.Join(dir, "file"), errHash)
}
