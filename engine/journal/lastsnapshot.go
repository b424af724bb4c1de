package journal

import "time"

// LastSnapshot returns the index and the time of the newest snapshot. known is false while
// LoadSnapshot, Replay or WriteSnapshot run, for which it does not wait; then the rest has no
// meaning. ok is false where there is no snapshot.
func (l *Log) LastSnapshot() (index Index, at time.Time, ok, known bool) {
	select {
	case l.upkeep <- struct{}{}:
		defer func() { <-l.upkeep }()
	default:
		return 0, time.Time{}, false, false
	}
	if len(l.snapshots.kept) == 0 {
		return 0, time.Time{}, false, true
	}
	m := l.snapshots.newest()
	return m.index, time.Unix(0, m.time), true, true
}
