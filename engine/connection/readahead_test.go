package connection

import (
	"bytes"
	"testing"
)

// TestFull: reading ahead pauses at a limit and resumes at half of it.
func TestFull(t *testing.T) {
	f := func(l Limits, size, frames int, paused, want bool) {
		t.Helper()
		if got := l.Full(size, frames, paused); got != want {
			t.Errorf("%d bytes, %d frames, paused %v: %v", size, frames, paused, got)
		}
	}
	both := Limits{AheadBytes: 100, AheadFrames: 10}
	f(both, 99, 9, false, false)
	f(both, 100, 1, false, true)
	f(both, 101, 1, false, true)
	f(both, 1, 10, false, true)
	f(both, 1, 11, false, true)
	f(both, 51, 1, true, true)
	f(both, 50, 6, true, true)
	f(both, 50, 5, true, false)
	bytesOnly := Limits{AheadBytes: 100}
	f(bytesOnly, 99, 1000, false, false)
	f(bytesOnly, 50, 1000, true, false)
	f(bytesOnly, 100, 0, false, true)
	f(Limits{}, 0, 0, false, true) // nothing is read ahead
}

func TestCount(t *testing.T) {
	lines := func(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
	f := func(l Limits, want int) {
		t.Helper()
		if got := l.Count([]byte("a\nb\nc")); got != want {
			t.Errorf("%d frames, want %d", got, want)
		}
	}
	f(Limits{AheadFrames: 1, FramesIn: lines}, 2)
	f(Limits{FramesIn: lines}, 0)
	f(Limits{AheadFrames: 1}, 0)
}

func TestPartWithin(t *testing.T) {
	f := func(send, want int64) {
		t.Helper()
		l := Limits{SendWithin: send}
		if got := l.LingerWithin(); got != want {
			t.Errorf("%d with a send timeout of %d, want %d", got, send, want)
		}
	}
	f(0, DefaultLingerWithin)
	f(1, 1)
	f(30e9, 30e9)
}
