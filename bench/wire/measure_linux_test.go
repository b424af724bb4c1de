package main

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

// constant answers every frame of every connection with a reply of 20 bytes until the test ends.
func constant(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		in, reply := bufio.NewReader(c), append([]byte{0, 0, 0, 16, load.Response}, make([]byte, 15)...)
		for {
			head, err := in.Peek(4)
			if err != nil {
				return
			}
			if _, err := in.Discard(4 + int(head[2])<<8 + int(head[3])); err != nil {
				return
			}
			if _, err := c.Write(reply); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			wg.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

func TestMeasure(t *testing.T) {
	cfg := load.Config{Addr: constant(t), Tapes: kernelTapes("GetProcess", 50, 4), Depth: 8, Workers: 1}
	s, err := measure(cfg, nil, options{warmup: 5 * time.Millisecond, window: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests == 0 || s.PerSec <= 0 || s.CPU != 0 || s.P50 <= 0 || s.P99 < s.P50 || s.P999 < s.P99 {
		t.Errorf("%+v", s)
	}
	cfg.Addr = "127.0.0.1:1"
	if _, err := measure(cfg, nil, options{}); err == nil {
		t.Error("measured a server that is not there")
	}
}

func TestDeal(t *testing.T) {
	f := func(rows, conns, each int) {
		t.Helper()
		seen := map[int]bool{}
		for _, hand := range deal(rows, conns) {
			if len(hand) < each {
				t.Errorf("deal(%d, %d): a connection has %d rows, want at least %d", rows, conns, len(hand), each)
			}
			for _, row := range hand {
				if seen[row] || row < 0 || row >= rows {
					t.Fatalf("deal(%d, %d): row %d is out of range or dealt twice", rows, conns, row)
				}
				seen[row] = true
			}
		}
	}
	f(10000, 64, 156)
	f(1000, 1000, 1)
	f(1_000_000, 64, maxTape)
}

func TestTapes(t *testing.T) {
	if n := len(pid(0)); n != 36 {
		t.Errorf("a pid is %d bytes, want 36", n)
	}
	if pid(1) == load.Identifier('u', 1) || pid(1) == pid(2) {
		t.Error("identifiers repeat")
	}
	for _, method := range methods {
		want := 100
		if method == "TransitionState" {
			want = 200 // each pid to RUNNING and back
		}
		for _, tape := range kernelTapes(method, 1000, 10) {
			if tape.Len() != want {
				t.Errorf("%s: a tape of %d requests, want %d", method, tape.Len(), want)
			}
		}
	}
	running := bytes.Contains(kernelRequest("TransitionState", 1, "RUNNING"), []byte("RUNNING"))
	if !running || bytes.Contains(kernelRequest("GetProcess", 1, ""), []byte("new_state")) {
		t.Error("new_state is not where it belongs")
	}
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
	if o := f(true); o.rows != 10000 || o.conns != 64 || o.depth != 64 || o.pin || o.window < 2*time.Second {
		t.Errorf("defaults %+v", o)
	}
	if o := f(true, "-quick"); o.window >= time.Second {
		t.Errorf("quick %+v", o)
	}
	f(false, "-rows", "999")
	f(false, "-rounds", "0")
	f(false, "extra")
}
