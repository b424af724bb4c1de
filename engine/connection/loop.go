package connection

import "sync/atomic"

// RoundHook is work that the requests of one round share, such as the flush of a journal.
type RoundHook interface {
	// RoundEnded runs on the owner's goroutine. It must be quick, and must not call the session. It
	// reports whether what the sessions wait for (Port.Await) comes soon.
	RoundEnded() (soon bool)
}

// Loop is what the connections of one event loop share. An Owner whose connections are served by a
// loop returns it from its method Loop. But for Ring, only the loop's goroutine uses it.
type Loop struct {
	ring    func()
	inRound bool
	awaits  uint64
	hooks   []RoundHook
	waiting []*Port

	mark    *Watermark // where the loop was listed last
	listed  atomic.Bool
	reached atomic.Bool
	from    atomic.Uint64 // the least index that a port of the loop waits for
}

// NewLoop returns a loop; ring may be called from any goroutine, and starts a round soon.
func NewLoop(ring func()) *Loop { return &Loop{ring: ring} }

// BeginRound wakes the ports whose index was reached. It does not allocate.
func (l *Loop) BeginRound() {
	l.inRound = true
	if !l.reached.Swap(false) {
		return
	}
	for i := len(l.waiting) - 1; i >= 0; i-- {
		if p := l.waiting[i]; p.mark.At() >= p.until {
			p.leaveList()
			p.Wake()
		} else {
			p.mark.list(l, p.until)
		}
	}
}

// EndRound runs the hooks that the round's requests asked for, each once, and reports whether what
// sessions wait for comes soon. It does not allocate.
func (l *Loop) EndRound() (soon bool) {
	for _, h := range l.hooks {
		soon = h.RoundEnded() || soon
	}
	clear(l.hooks)
	l.hooks, l.inRound = l.hooks[:0], false
	return soon
}

// Awaits returns how often sessions have called Port.Await.
func (l *Loop) Awaits() uint64 { return l.awaits }

// AtRoundEnd has h run once after the loop has served the sockets that are ready now, however many
// sessions ask for it. An owner without a loop runs it at once: its round is one call of a
// session's method. Only methods of the port's session call it, after their changes.
func (p *Port) AtRoundEnd(h RoundHook) {
	l := p.loop
	if l == nil {
		h.RoundEnded()
		return
	}
	for _, asked := range l.hooks {
		if asked == h {
			return
		}
	}
	l.hooks = append(l.hooks, h)
	if !l.inRound {
		l.ring()
	}
}
