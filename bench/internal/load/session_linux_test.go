package load

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/fuzz/kit/fakekernel"
)

func request(method, pid string) []byte {
	return NewRequest("kernel", method, "pid", pid)
}

func tapes(n int, frames ...[]byte) []*Tape {
	out := make([]*Tape, n)
	for i := range out {
		out[i] = new(Tape)
		for _, f := range frames {
			out[i].Add(f)
		}
	}
	return out
}

// runFor lets a load run until the server has answered at least n requests.
func runFor(t *testing.T, cfg Config, n uint64) (*Session, *Histogram, error) {
	t.Helper()
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Record(true)
	for s.Replies() < n {
		select {
		case <-s.Done():
			h, err := s.Wait()
			return s, h, err
		case <-time.After(time.Millisecond):
		}
	}
	h, err := s.Stop()
	return s, h, err
}

func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	f := func(conns, depth, workers, chop int) {
		t.Helper()
		srv := fakekernel.Start(t, chop, nil)
		cfg := Config{Addr: srv.Addr, Tapes: tapes(conns, request("A", "p"), request("B", "q"), request("C", "r")), Depth: depth, Workers: workers}
		s, h, err := runFor(t, cfg, 500)
		if err != nil || s.Dropped() != 0 {
			t.Fatalf("%d×%d: %v, %d dropped", conns, depth, err, s.Dropped())
		}
		seen := uint64(srv.Count("A") + srv.Count("B") + srv.Count("C"))
		if s.Replies() != seen {
			t.Errorf("%d×%d: %d replies counted, %d requests seen by the server", conns, depth, s.Replies(), seen)
		}
		if h.Total() == 0 || h.Total() > s.Replies() || h.Quantile(0.5) <= 0 {
			t.Errorf("%d×%d: %d latencies for %d replies, median %v", conns, depth, h.Total(), s.Replies(), h.Quantile(0.5))
		}
	}
	f(1, 1, 1, 0)
	f(1, 64, 1, 0)
	f(8, 64, 2, 0)
	f(5, 7, 3, 11)
	f(4, 2, 16, 1)
}

func TestSendOnceSendsEachFrameOnce(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	list := []*Tape{new(Tape), new(Tape)}
	for i := range 150 {
		list[i%2].Add(request("Create", fmt.Sprint(i)))
	}
	if err := SendOnce(srv.Addr, Kernel, list, 64); err != nil {
		t.Fatal(err)
	}
	if n := srv.Count("Create"); n != 150 {
		t.Errorf("the server saw %d requests, want 150", n)
	}
}

func TestTapeGoesOnWhereItStopped(t *testing.T) {
	// Each pid must alternate RUNNING, READY, across runs and whatever the depth.
	state := map[string]string{}
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		pid, to := r.Str("pid"), r.Str("new_state")
		if state[pid] == to || state[pid] == "" && to != "RUNNING" {
			return fakekernel.Failure(r.ID, "FAILED_PRECONDITION", "m")
		}
		state[pid] = to
		return fakekernel.OK(r.ID)
	})
	list := make([]*Tape, 3)
	for i := range list {
		list[i] = new(Tape)
		for _, to := range []string{"RUNNING", "READY"} {
			for j := range 5 {
				list[i].Add(NewRequest("kernel", "TransitionState", "pid", fmt.Sprint(i, j), "new_state", to))
			}
		}
	}
	for _, depth := range []int{1, 7, 64, 3} {
		if _, _, err := runFor(t, Config{Addr: srv.Addr, Tapes: list, Depth: depth}, 100); err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
	}
}

func TestFreshIdentifiersNeverRepeat(t *testing.T) {
	live, used := map[string]bool{}, map[string]bool{}
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		pid, method := r.Str("pid"), r.Method
		if strings.Contains(pid, "#") || method == "Create" && used[pid] || method == "Terminate" && !live[pid] {
			return fakekernel.Failure(r.ID, "FAILED_PRECONDITION", "m")
		}
		used[pid], live[pid] = true, method == "Create"
		return fakekernel.OK(r.ID)
	})
	tape := new(Tape)
	tape.AddFresh(request("Create", "p-"+Placeholder))
	tape.Add(request("Other", "x"))
	tape.Add(request("Terminate", "p-"+Placeholder))
	for _, depth := range []int{2, 16, 1} {
		if _, _, err := runFor(t, Config{Addr: srv.Addr, Tapes: []*Tape{tape}, Depth: depth}, 200); err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
	}
}

func TestErrorFrames(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if r.Method == "Next" {
			return fakekernel.Failure(r.ID, "NOT_FOUND", "m")
		}
		return fakekernel.OK(r.ID)
	})
	cfg := Config{Addr: srv.Addr, Tapes: tapes(2, request("Get", "p"), request("Next", "q")), Depth: 8}
	s, _, err := runFor(t, cfg, 1<<62)
	if err == nil || err.Error() != "NOT_FOUND: m" {
		t.Errorf("without a evaluate: %v, want the error frame's text once", err)
	}
	if s.Dropped() == 0 {
		t.Error("requests in flight behind the error are not counted as dropped")
	}
	var evaluated atomic.Int64
	cfg.Tapes = tapes(2, request("Get", "p"), request("Next", "q"))
	cfg.Refused = func(f *Failure) error {
		evaluated.Add(1)
		if f.Code != "NOT_FOUND" {
			return fmt.Errorf("refused: %v", f)
		}
		return nil
	}
	if _, _, err := runFor(t, cfg, 300); err != nil || evaluated.Load() < 100 {
		t.Errorf("with a evaluate: %v after %d error frames", err, evaluated.Load())
	}
}

func TestBadServers(t *testing.T) {
	f := func(what, want string, answer func(r fakekernel.Request) []byte) {
		t.Helper()
		srv := fakekernel.Start(t, 0, answer)
		taken := func(*Failure) error { return nil } // which is not asked about a frame that is none
		_, _, err := runFor(t, Config{Addr: srv.Addr, Tapes: tapes(1, request("Get", "p")), Depth: 4, Refused: taken}, 1<<62)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
	f("closes", "connection closed by the server", func(fakekernel.Request) []byte { return nil })
	f("answers twice", "replies to 4 requests", func(r fakekernel.Request) []byte { return append(fakekernel.OK(r.ID), fakekernel.OK(r.ID)...) })
	f("sends a request", "cannot take a frame of type 0x01", func(r fakekernel.Request) []byte { return fakekernel.Frame(Request, nil) })
	f("sends length 0", "malformed", func(fakekernel.Request) []byte { return []byte{0, 0, 0, 0} })
	f("sends a huge length", "malformed", func(fakekernel.Request) []byte { return []byte{1, 0, 0, 1} })
	f("sends a bad error", "cannot", func(fakekernel.Request) []byte { return fakekernel.Frame(Error, []byte{0xc1}) })
}

// TestLargeReplies: a reply may be as large as a frame.
func TestLargeReplies(t *testing.T) {
	large := fakekernel.Frame(Response, make([]byte, maxFrame-1))
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return large })
	if err := SendOnce(srv.Addr, Kernel, tapes(2, request("Get", "p")), 2); err != nil {
		t.Error(err)
	}
}

func TestStreamFramesAreNoReplies(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		return append(fakekernel.Frame(Chunk, []byte{0x80}), append(fakekernel.OK(r.ID), fakekernel.Frame(0x04, []byte{0x80})...)...)
	})
	s, _, err := runFor(t, Config{Addr: srv.Addr, Tapes: tapes(1, request("Get", "p")), Depth: 4}, 100)
	if err != nil || s.Chunks() < 2*s.Replies()-8 {
		t.Errorf("%v, %d stream frames beside %d replies", err, s.Chunks(), s.Replies())
	}
}

func TestStartRefuses(t *testing.T) {
	f := func(want string, cfg Config) {
		t.Helper()
		if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("cannot dial nowhere", Config{Addr: "nowhere", Tapes: tapes(1, request("A", "")), Depth: 1})
	f("cannot run 0 connections", Config{Addr: "127.0.0.1:1", Depth: 1})
	f("at depth 0", Config{Addr: "127.0.0.1:1", Tapes: tapes(1, request("A", ""))})
	f("cannot dial", Config{Addr: "127.0.0.1:1", Tapes: tapes(1, request("A", "")), Depth: 1})
	srv := fakekernel.Start(t, 0, nil)
	f("empty tape", Config{Addr: srv.Addr, Tapes: []*Tape{{}}, Depth: 1})
}

func TestClient(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		switch r.Method {
		case "Fail":
			return fakekernel.Failure(r.ID, "NOT_FOUND", "m")
		case "Mix":
			return fakekernel.OK(r.ID + "x")
		}
		return fakekernel.OK(r.ID)
	})
	c, err := Dial(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if body, size, err := c.Call("kernel", "Get", "pid", "p"); err != nil || len(body) != 0 || size != len(fakekernel.OK(requestID)) {
		t.Errorf("Call = %v, %d, %v", body, size, err)
	}
	var f *Failure
	if _, _, err := c.Call("kernel", "Fail"); !errors.As(err, &f) || f.Code != "NOT_FOUND" || f.ID != requestID {
		t.Errorf("Call = %v, want the error frame", err)
	}
	if _, _, err := c.Call("kernel", "Mix"); err == nil {
		t.Error("Call takes a reply with another id")
	}
}

// TestSubscriber has a server that writes as soon as a client connects, and closes.
func TestSubscriber(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	release := make(chan struct{})
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			_, _ = c.Write(bytes.Repeat(fakekernel.Frame(Chunk, []byte{0x80}), 5))
			go func() {
				<-release
				c.Close()
			}()
		}
	}()
	s, err := Subscribe(ln.Addr().String(), "e", 1)
	if err != nil {
		t.Fatal(err)
	}
	for s.Chunks() < 5 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	if _, _ = s.Wait(); s.Dropped() != 1 {
		t.Error("the end of the stream was not noticed")
	}
	refusing := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "INVALID_ARGUMENT", "m") })
	if _, err := Subscribe(refusing.Addr, "e", 2); err == nil || !strings.Contains(err.Error(), "INVALID_ARGUMENT") {
		t.Errorf("subscribed although refused: %v", err)
	}
}
