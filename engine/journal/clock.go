package journal

import (
	"log/slog"
	"time"
)

// maxClockStep is how far the wall clock may get ahead of the monotonic one between two blocks. A
// jump must not end early what is kept for a time.
const maxClockStep = 60 * time.Second

// clock makes the log time of an owner. It never goes back, and follows the wall clock unless that
// jumps. The committer owns it, and Replay before.
type clock struct {
	last    int64         // ns since 1970
	elapsed time.Duration // reading of the monotonic clock at last
	begun   bool          // elapsed is of this owner; the time without an owner is not known
	ahead   bool          // the wall clock has jumped
}

// next returns the time of the next block.
func (c *clock) next(wall time.Time, elapsed time.Duration, log *slog.Logger) int64 {
	t := wall.UnixNano()
	if steady := c.last + int64(elapsed-c.elapsed); c.begun && t > steady+int64(maxClockStep) {
		if !c.ahead {
			log.Error("the clock jumped; the time of the journal goes on without it until the next start",
				"clock", wall, "journal", time.Unix(0, steady), "step", time.Duration(t-steady))
		}
		t, c.ahead = steady, true
	} else {
		c.ahead = false
	}
	c.last = max(c.last, t)
	c.elapsed, c.begun = elapsed, true
	return c.last
}
