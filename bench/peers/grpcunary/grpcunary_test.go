package main

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// call makes the calls to a server with replies of size bytes.
func call(t *testing.T, size int, l *callers) error {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(size)
	go s.Serve(ln)
	defer s.Stop()
	got, err := l.run(ln.Addr().String())
	if err == nil && (got.Requests == 0 || got.PerSec <= 0 || got.CPU <= 0 || got.P50 <= 0 || got.P999 < got.P50 || got.RSS <= 0) {
		t.Errorf("%+v", got)
	}
	return err
}

func TestCalls(t *testing.T) {
	l := &callers{request: wrapperspb.Bytes(make([]byte, 10)), reply: 20, pid: os.Getpid(), conns: 3, inflight: 4, warmup: 10 * time.Millisecond, window: 100 * time.Millisecond}
	if err := call(t, 20, l); err != nil {
		t.Error(err)
	}
	l = &callers{request: wrapperspb.Bytes(nil), reply: 20, pid: os.Getpid(), conns: 1, inflight: 1, window: time.Millisecond}
	if err := call(t, 21, l); err == nil || !strings.Contains(err.Error(), "21 bytes, want 20") {
		t.Errorf("a reply of another size: %v", err)
	}
}
