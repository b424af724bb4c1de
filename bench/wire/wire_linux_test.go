package main

import (
	"bufio"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

func TestTapes(t *testing.T) {
	f := func(method string, tapes []*load.Tape, want int) {
		t.Helper()
		for _, tape := range tapes {
			if tape.Len() != want {
				t.Errorf("%s: a tape of %d requests, want %d", method, tape.Len(), want)
			}
		}
	}
	for _, method := range methods {
		want := 100
		if method == "TransitionState" {
			want = 200 // each pid to RUNNING and back
		}
		f(method, kernelTapes(method, 1000, 10), want)
	}
	f(get, redisTapes(1000, 10), 100)
	f(requestReply, natsTapes(10), 64)
}

func TestReadGRPC(t *testing.T) {
	server, err := load.StartServer(load.Command{Name: "peer", Path: "/bin/sh", Args: []string{"-c", "echo listening x; exec sleep 60"}, Listening: load.PeerListening})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	f := func(out, want string) {
		t.Helper()
		s, err := readGRPC(bufio.NewScanner(strings.NewReader(out)), server)
		if want == "" && (err != nil || s.PerSec != 2000 || s.P50 != 1.5 || s.RSS == 0) {
			t.Errorf("%+v, %v", s, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("measuring\nmeasured\n"+`{"requests":1000,"elapsed_ns":500000000,"p50_ns":1500,"p99_ns":1,"p999_ns":1}`+"\n", "")
	f("measuring\n", "without a report")
	f("measuring\nmeasured\n{}\n", "cannot use")
}

func TestFlags(t *testing.T) {
	f := func(ok bool, args ...string) options {
		t.Helper()
		o, err := parseFlags(args)
		if (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
		return o
	}
	if o := f(true); o.rows != 10000 || o.conns != 64 || o.depth != 64 || o.many != 1000 || o.pin || o.goalsOnly || o.rounds <= o.gridRounds {
		t.Errorf("defaults %+v", o)
	}
	if o := f(true, "-quick"); o.window >= 500*time.Millisecond || o.gridRounds != 1 {
		t.Errorf("quick %+v", o)
	}
	if o := f(true, "-many", "500", "-rows", "500"); !slices.Equal(o.sizes(), [][2]int{{1, 1}, {1, 16}, {1, 64}, {64, 1}, {64, 16}, {64, 64}, {500, 1}, {500, 16}, {500, 64}}) {
		t.Errorf("sizes %v", o.sizes())
	}
	f(false, "-rows", "999")
	f(false, "-rounds", "0")
	f(false, "-conns", "1000")
	f(false, "-conns", "1")
	f(false, "-depth", "7")
	f(false, "-window", "5ms")
	f(false, "-warmup", "1s")
	f(false, "extra")
}
