//go:build !race

package tool

import "testing"

func TestNoAllocs(t *testing.T) {
	f := func(what string, fn func()) {
		t.Helper()
		fn()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	buf := make([]byte, 0, 256)
	text := []byte("BREAKER_TRIP")
	e := &DispatchError{"AID.X.v1", Crash, "out of \"memory\"", false}
	effects := []string{"none", "filesystem_write"}
	f("ParseStatus", func() { buf = append(buf[:0], ParseStatus(text).String()...) })
	f("AppendJSON", func() { buf = e.AppendJSON(buf[:0]) })
	br := NewBreaker(BreakerConfig{Threshold: 5, Now: func() int64 { return 0 }})
	f("a call past the breaker", func() {
		probe, _ := br.Allow()
		br.Start(probe)
		br.Done(probe, nil)
	})
	f("TierOf", func() { TierOf("AID.FILE.WRITE.v1", effects) })
}
