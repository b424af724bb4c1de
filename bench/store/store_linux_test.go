package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

func TestFlags(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := parseFlags(args)
		if got := fmt.Sprint(err); !strings.Contains(got, want) || want == "" && err != nil {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f("")
	f("", "-quick", "-parts", "restart")
	rows := func(want int, args ...string) {
		t.Helper()
		if o, err := parseFlags(args); o.restartRows != want || err != nil {
			t.Errorf("%v: restarts with %d rows, %v, want %d", args, o.restartRows, err, want)
		}
	}
	rows(goalRows)
	rows(quickRows, "-quick")
	rows(9000, "-quick", "-restart-rows", "9000")
	f("", "-peer", "everysec", "-peer-file", "x")
	f("cannot run", "-rounds", "0")
	f("cannot run", "-rows", "2047")
	f("", "-rows", "2048")
	f("cannot run", "-restart-rows", "2047")
	f("cannot run", "-window", "0s")
	f("cannot run", "more")
	f(`cannot measure part "x"`, "-parts", "cells,x")
	f("cannot be peer", "-peer", "no", "-peer-file", "x")
	f("cannot be peer", "-peer", "always")
	f("", "-peer", "http")
	f("", "-parts", "threads,cells")
}

func TestMountOf(t *testing.T) {
	const info = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:1 / /tmp rw shared:1 - tmpfs tmpfs rw\n" +
		"3 1 8:2 / /data rw - xfs /dev/b rw\n4 1 8:3 / /data rw - btrfs /dev/c rw\nnonsense\n"
	f := func(path, want string) {
		t.Helper()
		if got := mountOf([]byte(info), path); got != want {
			t.Errorf("%s is on %s, want %s", path, got, want)
		}
	}
	f("/", "ext4 on /dev/a")
	f("/tmpx/y", "ext4 on /dev/a")
	f("/tmp", "tmpfs on tmpfs")
	f("/tmp/x", "tmpfs on tmpfs")
	f("/data/x", "btrfs on /dev/c")
	if got := mountOf(nil, "/"); got != "unknown" {
		t.Errorf("without mounts: %s", got)
	}
	if got := filesystem(t.TempDir()); !strings.Contains(got, " on ") {
		t.Errorf("the temporary folder is on %q", got)
	}
}

func TestStoreFolderRefusesMemory(t *testing.T) {
	const shared = "/dev/shm"
	if !strings.HasPrefix(filesystem(shared), "tmpfs") {
		t.Skip("no tmpfs here")
	}
	if rig, err := storeRig(shared); err == nil || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("%+v, %v", rig, err)
	}
	if _, err := storeRig(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was taken")
	}
}

func TestDiskTimes(t *testing.T) {
	d, dir := diskTimes{}, t.TempDir()
	for range 2 {
		if err := d.measure(dir); err != nil {
			t.Fatal(err)
		}
	}
	rows := d.rows()
	if len(rows) != len(diskSizes) || rows[0].Samples != 2*diskSamples || rows[0].P50 <= 0 || rows[1].P99 < rows[1].P50 {
		t.Errorf("rows %+v", rows)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

func TestLogged(t *testing.T) {
	const out = "12:00:00 INF recovered dir=/x records=7 secs=0.25 snapshot_secs=1e-3\n12:00:01 INF snapshot written index=9 secs=1.5\n" +
		"12:00:02 INF snapshot written index=12 secs=2\n"
	f := func(message, key string, want float64) {
		t.Helper()
		if got := logged(out, message, key); got != want {
			t.Errorf("%s of %q = %v, want %v", key, message, got, want)
		}
	}
	f("recovered", "secs", 0.25)
	f("recovered", "records", 7)
	f("recovered", "snapshot_secs", 0.001)
	f("recovered", "replay_secs", 0)
	f("snapshot written", "index", 12)
	f("snapshot written", "secs", 2)
	f("nothing", "secs", 0)
}

func TestRecoveryIsDivided(t *testing.T) {
	f := func(m restart, snapshot, replay float64) {
		t.Helper()
		before := []restart{{Rows: 8, Tail: 8, Recovery: 9}, {Rows: 8, Recovery: 2}}
		if got := m.divided(before); got.Snapshot != snapshot || got.Replay != replay {
			t.Errorf("%+v: snapshot %v, replay %v, want %v and %v", m, got.Snapshot, got.Replay, snapshot, replay)
		}
	}
	f(restart{Rows: 8, Tail: 8, Recovery: 3}, 0, 3)
	f(restart{Rows: 8, Tail: 0, Recovery: 3}, 3, 0)
	f(restart{Rows: 8, Tail: 2, Recovery: 3}, 2, 1)
	f(restart{Rows: 8, Tail: 2, Recovery: 1}, 1, 0)
	f(restart{Rows: 8, Tail: 2, Recovery: 5, Snapshot: 3, Replay: 1.5}, 3, 1.5)
}

func TestSplitTakesASnapshotApart(t *testing.T) {
	const ms = time.Millisecond
	p := &load.Paced{Start: time.Unix(100, 0), Width: 10 * ms, Slices: make([]load.Histogram, 10)}
	for i := range p.Slices {
		p.Slices[i].Add(1000, 1)
	}
	at := func(d time.Duration) time.Time { return p.Start.Add(d) }
	f := func(beside, during uint64, snapshots ...period) {
		t.Helper()
		b, d := split(p, snapshots)
		if b.Total() != beside || d.Total() != during {
			t.Errorf("%d beside and %d during, want %d and %d", b.Total(), d.Total(), beside, during)
		}
	}
	f(0, 0)
	f(2, 3, period{at(20 * ms), at(50 * ms)})
	f(1, 2, period{at(15 * ms), at(45 * ms)}) // slices that are in both count nowhere
	f(0, 2, period{at(-30 * ms), at(20 * ms)})
	f(3, 4, period{at(10 * ms), at(30 * ms)}, period{at(50 * ms), at(70 * ms)})
}

func TestTapes(t *testing.T) {
	f := func(what string, tapes []*load.Tape, frames int) {
		t.Helper()
		if len(tapes) != 2 || tapes[1].Len() != frames {
			t.Errorf("%s: %d tapes of %d frames, want 2 of %d", what, len(tapes), tapes[1].Len(), frames)
		}
	}
	for method, frames := range map[string]int{recordUsage: 5, transitionState: 10, checkRateLimit: 5, updateEnvelope: 5} {
		f(method, tapesOf(method, span{100, 110}, 2, []string{"e"}), frames)
	}
	f(createProcess, freshTapes(2), 1)
	f("SET", redisTapes(span{0, 10}, 2), 5)
}

func TestSizesWorkOnRowsOfTheirOwn(t *testing.T) {
	f := &field{bench: &bench{o: options{rows: 2 * manyConns}}}
	a, b := f.rows(many()), f.rows(fewDeep())
	if a.to > b.from || a.to-a.from < manyConns || b.to > f.o.rows {
		t.Errorf("spans %v and %v of %d rows", a, b, f.o.rows)
	}
}

func TestRedisPath(t *testing.T) {
	f := func(flag, path, want string) {
		t.Helper()
		t.Setenv("PATH", path)
		b := &bench{o: options{redis: flag}}
		if got, err := b.redisPath(); got != want || err != nil {
			t.Errorf("-redis %s: %q, %v, want %q", flag, got, err, want)
		}
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "redis-server")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f("off", dir, "")
	f("auto", t.TempDir(), "")
	f("auto", dir, name)
	f("/x/redis", dir, "/x/redis")
}

// TestWholeRun measures a little of everything with the real server: whether it fits together, not
// what comes out.
func TestWholeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	o, err := parseFlags([]string{"-parts", "cells,restart,threads", "-rounds", "1", "-rows", "2048", "-restart-rows", "2048", "-restarts", "1", "-redis", "off",
		"-warmup", "5ms", "-window", "20ms", "-paced", "2500ms"})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	if err := load.RaiseFileLimit(8 * manyConns); err != nil {
		t.Skip(err)
	}
	b, err := newBench(o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := newReport(b.Dir, o)
	if err = b.cells(&r); err != nil {
		t.Fatal(err)
	}
	if err := b.restart(&r); err != nil {
		t.Fatal(err)
	}
	if err := b.threads(&r); err != nil {
		t.Fatal(err)
	}
	r.conclude()
	_, _, noNode := findNode("")
	for _, g := range r.Goals {
		if g.Verdict == goal.None && (noNode == nil || !strings.Contains(g.What, "node")) {
			t.Errorf("%s was not measured", g.What)
		}
	}
	for _, s := range r.Cells {
		if s.Median.PerSec <= 0 || s.Via != viaNothing && (s.Median.CPU <= 0 || s.Median.P50 <= 0 || s.Median.RSS <= 0) {
			t.Errorf("%v: %+v", s.Cell, s.Median)
		}
	}
	var from []string
	for _, x := range r.Restarts {
		from = append(from, x.From)
		if x.Recovery <= 0 || x.Answer < x.Recovery || x.RSS <= 0 || x.Store <= 0 {
			t.Errorf("restart %+v", x)
		}
	}
	if want := []string{"log", "snapshot", "snapshot + tail"}; !slices.Equal(from, want) {
		t.Errorf("restarts from %q, want %q", from, want)
	}
	for _, l := range r.Latencies {
		if l.Snapshots == 0 || l.Beside.Requests == 0 || l.Beside.P50 <= 0 {
			t.Errorf("latency %+v", l)
		}
	}
}
