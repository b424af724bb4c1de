package threadstore

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"
)

// TestForgottenSegments: memory that was dropped is free, whatever threads had messages there.
func TestForgottenSegments(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1, segment: 4096})
	var segments []weak.Pointer[segment]
	for range 40 {
		id := r.create()
		for range 3 {
			r.post(alice, id, "a message of a thread that then is idle", "")
		}
		r.sync()
		for _, s := range r.hot.segments {
			if p := weak.Make(s); !slices.Contains(segments, p) {
				segments = append(segments, p)
			}
		}
		r.store()
	}
	kept := func() (n int) {
		runtime.GC()
		for _, p := range segments {
			if p.Value() != nil {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(20 * time.Second); kept() > 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d segments are kept", kept(), len(segments))
		}
	}
	runtime.KeepAlive(r)
}
