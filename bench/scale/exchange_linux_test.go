package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
	"trunkline/bench/internal/load"
)

func request(method string) []byte { return load.CountedRequest(1, "kernel", method) }

// until waits for what is true soon.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

func TestExchange(t *testing.T) {
	large := fakekernel.Frame(load.Response, bytes.Repeat([]byte{0xc0}, 1<<20))
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if r.Method == "Large" {
			return large
		}
		return fakekernel.OK(r.ID)
	})
	x, err := startExchange(srv.Addr, [][]byte{request("Small"), request("Large")})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "both are answered", func() bool { return srv.Count("Small") > 2*burst && srv.Count("Large") > 2*burst })
	if err := x.stop(); err != nil {
		t.Error(err)
	}
	// What was sent is waited for.
	if n := x.replies.Load(); n != uint64(srv.Count("Small")+srv.Count("Large")) || n%burst != 0 {
		t.Errorf("%d replies to %d and %d requests", n, srv.Count("Small"), srv.Count("Large"))
	}
}

func TestExchangeFails(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "NOT_FOUND", "no such thing") })
	x, err := startExchange(srv.Addr, [][]byte{request("Any")})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.stop(); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := startExchange("127.0.0.1:1", [][]byte{request("Any")}); err == nil {
		t.Error("nobody answered")
	}
}

func TestGreet(t *testing.T) {
	srv := fakekernel.Start(t, 3, func(r fakekernel.Request) []byte {
		if r.Method != "GetProcessCounts" {
			t.Errorf("asked for %s", r.Method)
		}
		return fakekernel.OK(r.ID)
	})
	c, err := greet(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := srv.Count("GetProcessCounts"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	f := func(want string, answer func(r fakekernel.Request) []byte) {
		t.Helper()
		srv := fakekernel.Start(t, 0, answer)
		if _, err := greet(srv.Addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f("0xFF", func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "UNAVAILABLE", "full") })
	f("this large", func(fakekernel.Request) []byte { return fakekernel.Frame(load.Response, make([]byte, 8000)) })
	f("outside", func(fakekernel.Request) []byte { return []byte{0xff, 0xff, 0xff, 0xff} })
	if _, err := greet("127.0.0.1:1"); err == nil {
		t.Error("nobody answered")
	}
}

func TestExchangeIsMeasured(t *testing.T) {
	// Its CPU time is that of a process beside the one that answers, which is this one.
	busy, err := load.StartServer(load.Command{Name: "busy", Path: "/bin/sh", Args: []string{"-c", "echo listening x; while :; do :; done"}, Listening: load.PeerListening})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Stop()
	srv := fakekernel.Start(t, 0, nil)
	x, err := startExchange(srv.Addr, [][]byte{request("Any"), request("Any")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := x.measure(busy, 10*time.Millisecond, 100*time.Millisecond)
	if stopErr := x.stop(); err != nil || stopErr != nil {
		t.Fatal(err, stopErr)
	}
	if s.Requests == 0 || s.Requests > uint64(srv.Count("Any")) || s.CPU <= 0 || s.RSS <= 0 {
		t.Errorf("%+v", s)
	}
}
