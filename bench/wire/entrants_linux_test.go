package main

import (
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
	"trunkline/bench/internal/load"
)

func TestEnterRedis(t *testing.T) {
	f := func(flag, want string) {
		t.Helper()
		f := &field{o: options{redis: flag}}
		err := f.enterRedis()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || len(f.entrants) != 0 {
			t.Errorf("-redis %s: %v, %d entrants, want %q", flag, err, len(f.entrants), want)
		}
	}
	f("off", "")
	f("no-such-server", "cannot find redis")
	t.Setenv("PATH", t.TempDir())
	f("auto", "")
}

// TestStoreRows: every key is stored with a value of the size that GET is to return.
func TestStoreRows(t *testing.T) {
	if err := storeRows("127.0.0.1:1", 10); err == nil || !strings.Contains(err.Error(), "cannot store 10 keys") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestEnterFindsNoPrograms(t *testing.T) {
	rig, err := load.NewRig(t.TempDir(), "r")
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	f := &field{Rig: rig, bin: rig.Dir, replies: map[string]int{evaluated: 100}}
	if err := f.enter(); err == nil || !strings.Contains(err.Error(), "cannot start grpcunary") || len(f.entrants) != 0 {
		t.Errorf("%v, %d entrants without a program", err, len(f.entrants))
	}
	f.o.peers = t.TempDir()
	if err := f.buildPeers(); err == nil || !strings.Contains(err.Error(), "cannot build the peers") {
		t.Errorf("built out of an empty folder: %v", err)
	}
}

// TestProbeReplies: sizes are those of whole frames, and a quota that is over would not be the hot
// path.
func TestProbeReplies(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	sizes, err := probeReplies(srv.Addr)
	if err != nil || len(sizes) != len(methods) || srv.Count("TransitionState") != 2 {
		t.Errorf("%v, %v, %d transitions, want one there and one back", sizes, err, srv.Count("TransitionState"))
	}
	for method, size := range sizes {
		if want := len(fakekernel.OK("r0000000")); size != want {
			t.Errorf("%s replies with %d bytes, want %d", method, size, want)
		}
	}
	refusing := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "NOT_FOUND", "no row") })
	if _, err := probeReplies(refusing.Addr); err == nil || !strings.Contains(err.Error(), "cannot probe GetProcess") {
		t.Errorf("a server without rows: %v", err)
	}
}

// TestPacedCell: the rate is the one asked for, latencies leave out the warm-up, and the process is
// read.
func TestPacedCell(t *testing.T) {
	process, err := load.StartServer(load.Command{Name: "peer", Path: "/bin/sh", Args: []string{"-c", "echo listening x; exec sleep 60"}, Listening: load.PeerListening})
	if err != nil {
		t.Fatal(err)
	}
	defer process.Stop()
	slow := time.Now().Add(50 * time.Millisecond)
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		time.Sleep(time.Until(slow))
		return fakekernel.OK(r.ID)
	})
	cfg := load.PacedConfig{Addr: srv.Addr, Tapes: kernelTapes(evaluated, 8, 4), Depth: 64, PerSec: 2000, For: 400 * time.Millisecond, Slice: pacedSlice}
	s, err := pacedCell(process, cfg, 200*time.Millisecond)
	if err != nil || s.Requests != 800 || s.PerSec > 2100 || s.RSS <= 0 || s.P50 <= 0 || s.P50 > 40_000 {
		t.Errorf("%+v, %v", s, err)
	}
	cfg.PerSec = 0
	if _, err := pacedCell(process, cfg, 0); err == nil {
		t.Error("a load without a rate")
	}
	process.Stop()
	if _, err := pacedCell(process, cfg, 0); err == nil {
		t.Error("a process that is gone has a CPU time")
	}
}
