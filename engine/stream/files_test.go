package stream

import (
	"log/slog"
	"net"
	"testing"
)

// TestDescriptorsOfAllConnections: two gates share the descriptors; at the last one a connection is
// admitted, one more is not, and one that parts takes its descriptor along until it is closed.
func TestDescriptorsOfAllConnections(t *testing.T) {
	f := &Files{}
	f.free.Store(2)
	a, b := newGate(5, f), newGate(5, f)
	if !a.admit() || !b.admit() || a.admit() || b.admit() || a.Open() != 1 || b.Open() != 1 {
		t.Fatalf("%d and %d open with two descriptors", a.Open(), b.Open())
	}
	if !a.BeginLinger() {
		t.Fatal("a connection that is there may part")
	}
	a.Release(false)
	if b.admit() {
		t.Error("a connection that parts has its descriptor still")
	}
	a.EndLinger()
	if !b.admit() || b.admit() {
		t.Error("its descriptor is free once it is closed, and no other")
	}
	b.Release(false)
	b.Release(false)
	if n := f.free.Load(); n != 2 {
		t.Errorf("%d descriptors in the end", n)
	}
}

// TestCountedListener: a connection for which there is no descriptor is closed, and closing one
// twice frees one.
func TestCountedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	f := &Files{}
	f.free.Store(1)
	ln := f.Listener(inner, slog.New(slog.DiscardHandler))
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	dial()
	first, err := ln.Accept()
	if err != nil || f.free.Load() != 0 {
		t.Fatal(err, f.free.Load())
	}
	refused := dial()
	next := make(chan net.Conn)
	go func() {
		nc, _ := ln.Accept()
		next <- nc
	}()
	if n, err := refused.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("there is no descriptor for it")
	}
	_, _ = first.Close(), first.Close()
	dial()
	if nc := <-next; nc == nil || f.free.Load() != 0 {
		t.Errorf("%v, %d free", nc, f.free.Load())
	} else {
		_ = nc.Close()
	}
	if f.free.Load() != 1 {
		t.Errorf("%d free in the end", f.free.Load())
	}
}

// TestShareOfFewDescriptors: the whole of it from twice spareDescriptors files on, less below, and
// never nothing.
func TestShareOfFewDescriptors(t *testing.T) {
	var none *Files
	if n := none.Share(64); n != 64 {
		t.Errorf("without a limit: %d of 64", n)
	}
	for spare, want := range map[int64]int{spareDescriptors: 64, spareDescriptors - 1: 63, spareDescriptors / 6: 10, 1: 1} {
		if n := (&Files{spare: spare}).Share(64); n != want {
			t.Errorf("%d spare descriptors: %d of 64, want %d", spare, n, want)
		}
	}
}
