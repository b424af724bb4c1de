package connection

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNowFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := Now()
		time.Sleep(1500 * time.Millisecond)
		b := Now()
		if m := Mono(); m != b.Mono {
			t.Errorf("Mono says %d, Now %d", m, b.Mono)
		}
		if d := b.Mono - a.Mono; d != int64(1500*time.Millisecond) {
			t.Errorf("Mono advanced by %d ns, want 1.5 s", d)
		}
		if d := b.Wall - a.Wall; d != 1500 {
			t.Errorf("Wall advanced by %d ms, want 1500", d)
		}
	})
}

func TestNowIsPositiveAndNeverDecreases(t *testing.T) {
	last := int64(0)
	for range 1000 {
		n := Now()
		if n.Mono < 1 || n.Mono < last {
			t.Fatalf("Mono went from %d to %d", last, n.Mono)
		}
		if last = Mono(); last < n.Mono {
			t.Fatalf("Mono went from %d to %d", n.Mono, last)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Now(); Mono() }); n != 0 {
		t.Errorf("reading the clocks allocates %v times", n)
	}
}
