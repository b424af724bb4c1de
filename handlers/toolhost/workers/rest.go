package workers

import "time"

// When a worker that never stands still must.
const (
	// restCalls is how many calls, and restEvery how long, a worker is used without a pause before it gets one.
	restCalls = 64
	restEvery = 50 * time.Millisecond
	// maxRest is the longest pause.
	maxRest = time.Second
)

// rest returns how long the worker must be left alone before its next call, which is nearly always 0.
//
// A worker that takes requests before it has answered the last one, or on a system that does not report when it takes them, may be one
// answer ahead after a stray line, and stay so as long as each request comes before the answer that is still on its way. A caller that
// leaves it alone for as long as two calls take sees that answer. So a worker that had no such pause for some time gets one, and ask
// looks for what came.
func (w *worker) rest(now time.Time) (pause time.Duration) {
	idle, enough := now.Sub(w.freeAt), time.Duration(0)
	if w.calls > 0 {
		enough = 2 * w.busy / time.Duration(w.calls)
	}
	switch {
	case idle >= enough:
	case w.calls < restCalls || now.Sub(w.quietAt) < restEvery:
		return 0
	default:
		pause = min(enough-idle, maxRest)
	}
	w.quietAt, w.calls, w.busy = now.Add(pause), 0, 0
	return pause
}

// asked takes note of a call's begin.
func (w *worker) asked(now time.Time) { w.askedAt = now }

// free takes note of a call's end, or that there was none.
func (w *worker) free(now time.Time) {
	w.freeAt = now
	if !w.askedAt.IsZero() {
		w.calls++
		w.busy += now.Sub(w.askedAt)
		w.askedAt = time.Time{}
	}
}
