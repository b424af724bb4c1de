package load

import (
	"testing"
	"time"
)

func TestBurstsAreOfOneTick(t *testing.T) {
	p := &pace{cfg: &Config{PerSec: 64000, Burst: 100}, tick: int64(time.Millisecond / 4), total: 100}
	f := func(sent int64, room, burst, want int) {
		t.Helper()
		if p.sent, p.cfg.Burst = sent, burst; p.together(room) != want {
			t.Errorf("%d of %d are sent together after %d with room for %d, want %d", p.together(room), p.total, sent, room, want)
		}
	}
	f(0, 64, 100, 16)
	f(0, 64, 0, 1)
	f(0, 64, 5, 5)
	f(0, 7, 100, 7)
	f(10, 64, 100, 6) // the rest of its tick
	f(96, 64, 100, 4) // the end of the run
}
