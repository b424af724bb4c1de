package main

import (
	"runtime"
	"testing"
)

// TestSpareProcessors is not parallel: the number is the process's.
func TestSpareProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []struct {
		env       string
		was, want int
	}{
		{"", minProcessors - 1, minProcessors},
		{"", minProcessors, minProcessors},
		{"", minProcessors + 1, minProcessors + 1},
		{"2", 2, 2},
	} {
		t.Setenv("GOMAXPROCS", c.env)
		runtime.GOMAXPROCS(c.was)
		if spareProcessors(); runtime.GOMAXPROCS(0) != c.want {
			t.Errorf("with GOMAXPROCS=%q and %d processors: %d, want %d", c.env, c.was, runtime.GOMAXPROCS(0), c.want)
		}
	}
}
