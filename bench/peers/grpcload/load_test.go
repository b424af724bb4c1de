package main

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/peers/internal/echo"
)

// serve runs the method with replies of size bytes.
func serve(t *testing.T, size int) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	echo.Register(s, &echo.Service{Reply: wrapperspb.Bytes(make([]byte, size))})
	go s.Serve(ln)
	t.Cleanup(s.Stop)
	return ln.Addr().String()
}

func TestLoad(t *testing.T) {
	l := &load{request: wrapperspb.Bytes(make([]byte, 10)), reply: 20}
	all, elapsed, total, err := l.run(serve(t, 20), 3, 4, 10*time.Millisecond, 100*time.Millisecond)
	if err != nil || total == 0 || len(all) != int(total) || elapsed < 100*time.Millisecond || slices.Min(all) <= 0 {
		t.Errorf("%d latencies, %v, %d requests, %v", len(all), elapsed, total, err)
	}
}

func TestLoadRefusesAnotherReply(t *testing.T) {
	l := &load{request: wrapperspb.Bytes(nil), reply: 20}
	if _, _, _, err := l.run(serve(t, 21), 1, 1, 0, time.Millisecond); err == nil || !strings.Contains(err.Error(), "21 bytes, want 20") {
		t.Errorf("a reply of another size: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	f := func(q float64, want int64, sorted ...int64) {
		t.Helper()
		if got := quantile(sorted, q); got != want {
			t.Errorf("quantile %v of %v is %d, want %d", q, sorted, got, want)
		}
	}
	f(0.5, 0)
	f(0.5, 2, 1, 2, 3)
	f(0.99, 2, 1, 2, 3)
	f(1, 3, 1, 2, 3)
}
