package link

import (
	"sync"
	"sync/atomic"
)

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
