package journal

import "time"

// Bounds of a linger.
const (
	// minLinger is the shortest write that a linger is worth its timer for.
	minLinger = 100 * time.Microsecond
	// MaxLinger is the longest that a group waits for more records.
	MaxLinger = 4 * time.Millisecond
	// maxLingerSkips is how many groups go without a linger at most, before one is tried again.
	maxLingerSkips = 255
)

// linger (as linger.ms of Kafka; not that of a socket, which engine/stream has) delays a group for
// records that will come soon, because a write costs the same for one record as for many. Clients
// that wait for each reply all send again once a group is acknowledged. Without a linger the first
// of them are written alone while the others wait: two half groups take turns, with twice the
// writes.
//
// A linger ends when as many records wait as were in flight at the last acknowledgement, less an
// eighth, or after twice the time of a write. It was useful if that many came, and if few more came
// during the write. After a useless linger the next group goes without one, then three, seven and
// so on. Log.mu guards it.
type linger struct {
	target   int64         // records to wait for; 0: no linger
	took     time.Duration // time of a write, smoothed
	lingered bool          // the group that was taken last
	expired  bool          // its linger ended by time
	skip     int           // groups that go without
	skips    int           // groups that went without after the last linger without use
	seq      uint64        // counts lingers
	timed    uint64        // the linger that the timer was set for; 0: it is not set
	timer    *time.Timer
}

// begin starts the linger of the next group, if there is to be one. A group of acked records was
// acknowledged after a write that took some time, and other records wait already.
func (g *linger) begin(acked, waiting int64, took time.Duration) {
	g.took += (took - g.took) / 8
	if g.lingered {
		if g.expired || waiting > acked/4 {
			g.skips = min(2*g.skips+1, maxLingerSkips)
			g.skip = g.skips
		} else {
			g.skips = 0
		}
		g.lingered, g.expired = false, false
	}
	if g.skip > 0 {
		g.skip--
		return
	}
	target := acked + waiting
	target -= target / 8
	if g.took < minLinger || target <= max(waiting, 1) {
		return
	}
	g.target = target
	if g.seq++; g.timed == 0 {
		g.setTimer()
	}
}

func (g *linger) setTimer() {
	g.timed = g.seq
	g.timer.Reset(min(2*g.took, MaxLinger))
}

// end is called when a group is taken.
func (g *linger) end() {
	g.lingered = g.target > 0 || g.expired
	g.target = 0
}

// lingerExpired is the timer's function. The timer is not set anew for each linger: one that began
// after it was set gets its time from here, up to twice as long.
func (l *Log) lingerExpired() {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &l.linger
	late := g.timed == g.seq
	g.timed = 0
	switch {
	case g.target == 0:
	case !late:
		g.setTimer()
	default:
		g.target, g.expired = 0, true
		if l.due() {
			l.work.Signal()
		}
	}
}
