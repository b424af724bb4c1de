package connection

import (
	"sync"
	"sync/atomic"
)

// Journal is what replies wait for.
type Journal interface {
	// Durable returns the index up to which nothing can be lost any more.
	Durable() uint64
	// FlushNext has what was appended written with a group that waits for more; false: there is
	// none.
	FlushNext() bool
	// Flush has it written now, and reports whether it is durable soon.
	Flush() (soon bool)
}

// Gate is a journal with the sessions whose replies wait for it. One gate serves all protocols of a
// process.
type Gate struct {
	// Mark is up to where the journal is durable. Its owner raises it.
	Mark Watermark
	// Journal returns the journal, nil where nothing is kept. It must not allocate.
	Journal func() Journal
}

// RoundEnded implements RoundHook: the changes of one round of a loop share a group.
func (g *Gate) RoundEnded() (soon bool) { return g.Journal().Flush() }

// Deferral holds the replies of one session back until the journal is durable up to their index.
// The zero Deferral holds none.
type Deferral struct {
	held  []byte
	until uint64
}

// keptHeld bounds the buffer that a Deferral keeps.
const keptHeld = 256 << 10

// Hold takes back what was appended to out behind start until the journal is durable up to an
// index: what a reply reports, or an event shows, must survive a crash. Replies keep their order,
// so those behind held ones are held too.
func (d *Deferral) Hold(p *Port, g *Gate, out []byte, start int, upTo uint64) []byte {
	if len(out) == start {
		return out
	}
	j := g.Journal()
	if j == nil || len(d.held) == 0 && upTo <= j.Durable() {
		return out
	}
	d.held = append(d.held, out[start:]...)
	d.until = max(d.until, upTo)
	p.Await(&g.Mark, d.until)
	if !j.FlushNext() { // else the round shares the next group without being ended for it
		p.AtRoundEnd(g)
	}
	return out[:start]
}

// Append appends the held replies, if the journal is durable up to their index.
func (d *Deferral) Append(p *Port, g *Gate, out []byte) []byte {
	if len(d.held) == 0 {
		return out
	}
	if g.Mark.At() < d.until {
		p.Await(&g.Mark, d.until) // the owner may be another one now
		return out
	}
	out = append(out, d.held...)
	if d.held = d.held[:0]; cap(d.held) > keptHeld {
		d.held = nil
	}
	return out
}

// Len returns how many bytes are held.
func (d *Deferral) Len() int { return len(d.held) }

// Watermark is a number that only grows, such as the index up to which a journal is durable, with
// the sessions that wait for it. The zero Watermark is ready.
type Watermark struct {
	at atomic.Uint64

	mu    sync.Mutex
	loops []*Loop
}

// At returns the number. Any goroutine may call it.
func (w *Watermark) At() uint64 { return w.at.Load() }

// Reach raises the number to n. Each loop with ports that wait for n or less gets one wake-up,
// however many they are. Any goroutine may call it. It does not allocate.
func (w *Watermark) Reach(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= w.at.Load() {
		return
	}
	w.at.Store(n)
	kept := w.loops[:0]
	for _, l := range w.loops {
		if l.from.Load() > n {
			kept = append(kept, l)
			continue
		}
		l.listed.Store(false)
		l.wake()
	}
	clear(w.loops[len(kept):])
	w.loops = kept
}

// list has Reach wake l once the number is n, and wakes it where that is so already.
func (w *Watermark) list(l *Loop, n uint64) {
	if !l.listed.Swap(true) || l.mark != w {
		l.mark = w
		l.from.Store(n)
		w.mu.Lock()
		w.loops = append(w.loops, l)
		w.mu.Unlock()
	} else if n < l.from.Load() {
		l.from.Store(n)
	}
	if w.at.Load() >= n { // Reach may have come before it could see the loop
		l.wake()
	}
}

func (l *Loop) wake() {
	l.reached.Store(true)
	l.ring()
}

// Await has the port woken once w has reached n. A port waits for one index at a time: the last
// call counts. A session calls it from its own methods; after a change of owner it is pumped, and
// calls it again. It does not allocate on a loop.
func (p *Port) Await(w *Watermark, n uint64) {
	p.mark, p.until = w, n
	l := p.loop
	if l == nil {
		if p.own == nil {
			p.own = NewLoop(p.Wake)
		}
		p.own.from.Store(n) // a port of its own waits for its last index only
		w.list(p.own, n)
		return
	}
	l.awaits++
	if p.slot == 0 {
		l.waiting = append(l.waiting, p)
		p.slot = len(l.waiting)
	}
	w.list(l, n)
}

// leaveList takes the port from the list of its loop.
func (p *Port) leaveList() {
	if p.slot == 0 {
		return
	}
	list := p.loop.waiting
	last := len(list) - 1
	list[p.slot-1] = list[last]
	list[last].slot = p.slot
	list[last] = nil
	p.loop.waiting, p.slot = list[:last], 0
}
