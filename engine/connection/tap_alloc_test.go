//go:build !race

package connection

import "testing"

// TestNoAllocsWithoutATap: a connection that can be observed costs nothing while it is not.
func TestNoAllocsWithoutATap(t *testing.T) {
	var taps Taps
	s, e := observed(&taps, 1)
	e.news = "news"
	in, out := []byte("1"), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		s.Feed(in, out, Instant{})
		s.Pump(out, 64, Instant{})
		s.Load()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
