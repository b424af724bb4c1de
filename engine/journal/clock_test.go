package journal

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLogTime: it follows the wall clock, never goes back, and does not follow a jump forward,
// which is reported once.
func TestLogTime(t *testing.T) {
	var told strings.Builder
	logger := slog.New(slog.NewTextHandler(&told, nil))
	base := time.Unix(1_800_000_000, 0)
	c := clock{last: base.Add(-48 * time.Hour).UnixNano()} // of the owner before
	f := func(elapsed, wall, want time.Duration, alarms int) {
		t.Helper()
		if got := time.Unix(0, c.next(base.Add(wall), elapsed, logger)).Sub(base); got != want {
			t.Errorf("at %v the clock shows %v, the log %v, want %v", elapsed, wall, got, want)
		}
		if n := strings.Count(told.String(), "the clock jumped"); n != alarms {
			t.Errorf("at %v: told %d times, want %d", elapsed, n, alarms)
		}
	}
	const s, h = time.Second, time.Hour
	f(0, 0, 0, 0) // two days in which no one owned the log are no jump
	f(1*s, 1*s, 1*s, 0)
	f(2*s, 2*s+maxClockStep, 2*s+maxClockStep, 0)   // at the limit
	f(3*s, 3*s, 2*s+maxClockStep, 0)                // back: it waits
	f(100*s, 100*s, 100*s, 0)                       // and goes on
	f(101*s, 101*s+maxClockStep+1, 101*s, 1)        // beyond the limit
	f(105*s, 105*s+h, 105*s, 1)                     // still ahead
	f(110*s, 110*s-h, 105*s, 1)                     // an hour behind
	f(115*s, 115*s, 115*s, 1)                       // right again
	f(120*s, 120*s+h, 120*s, 2)                     // another jump
	f(120*s+2*h, 120*s+3*h, 120*s+2*h, 2)           // it never comes back
	f(120*s+2*h, 120*s+2*h+30*s, 120*s+2*h+30*s, 2) // slewed to within the limit
}
