package stream

import (
	"io"
	"testing"
	"time"

	"trunkline/engine/connection"
)

// TestWriteTimerOfASubscriber begins when it could have read what its system took, and no later
// than one more SendWithin; that of another connection begins with the last byte that was taken.
func TestWriteTimerOfASubscriber(t *testing.T) {
	const second, within = int64(time.Second), int64(10 * time.Second)
	h, _ := newHost(t, func(c *Config) { c.Limits.SendWithin = within })
	type taken struct {
		at int64
		n  int
	}
	f := func(want, wantOther int64, steps ...taken) {
		t.Helper()
		var nothing struct{ io.ReadWriteCloser }
		c := h.bareConn(nothing, connection.NewPort(1, "test"))
		for _, s := range steps {
			c.sendFrom = s.at * second
			c.takes(s.n, s.at*second)
		}
		if got := c.takesFrom(true); got != want*second {
			t.Errorf("%v: the timer of a subscriber begins at %v, want %d s", steps, time.Duration(got), want)
		}
		if got := c.takesFrom(false); got != wantOther*second {
			t.Errorf("%v: the timer of another begins at %v, want %d s", steps, time.Duration(got), wantOther)
		}
	}
	f(105, 100, taken{100, 5 * slowestReader})
	f(110, 100, taken{100, 10 * slowestReader})                               // the limit,
	f(110, 100, taken{100, 11 * slowestReader})                               // and beyond it
	f(107, 101, taken{100, 4 * slowestReader}, taken{101, 3 * slowestReader}) // what is not read yet counts on
	f(121, 120, taken{100, 9 * slowestReader}, taken{120, slowestReader})
	f(100, 100, taken{100, 0})
}
