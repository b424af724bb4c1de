package connection

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Bounds of what is observed.
const (
	// maxTaps is how many connections of one Taps are observed at a time.
	maxTaps = 4
	// tapBytes is what a Tap holds for its reader; each frame counts tapFrame bytes beside its
	// own.
	tapBytes = 1 << 20
	tapFrame = 64
)

// Why a connection cannot be observed.
var (
	errNoConnection = errors.New("no such connection")
	ErrTapped       = errors.New("the connection is observed already")
	ErrTaps         = errors.New("too many connections are observed")
)

// Taps makes the sessions of connections that can be observed. A turn of a connection that is not
// observed costs one look at a pointer and allocates nothing. The zero value is ready. Any
// goroutine may call its methods.
type Taps struct {
	mu    sync.Mutex
	conns map[uint64]*tapped
	taps  int // how many are open
}

// Opener returns an Opener whose sessions are those of open.
func (t *Taps) Opener(open Opener) Opener {
	return func(p *Port) Session {
		c := &tapped{Session: open(p), taps: t, id: p.ID()}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.conns == nil {
			t.conns = make(map[uint64]*tapped)
		}
		t.conns[c.id] = c
		return c
	}
}

// Observe begins to observe the connection whose port has this id. Close must be called. keep is
// how many bytes of each frame are copied. size returns the length of the frame at the front of b,
// which need not be whole, or 0 where b begins no frame; out is whether the server sent it. It must
// be quick. The error is ErrTapped, ErrTaps, or another one where there is no such connection.
func (t *Taps) Observe(id uint64, keep int, size func(out bool, b []byte) int) (*Tap, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.conns[id]
	switch {
	case c == nil:
		return nil, errNoConnection
	case c.tap.Load() != nil:
		return nil, ErrTapped
	case t.taps == maxTaps:
		return nil, ErrTaps
	}
	t.taps++
	tap := &Tap{conn: c, keep: keep, size: size, ready: make(chan struct{}, 1)}
	c.tap.Store(tap)
	return tap, nil
}

// release ends the observation of c by tap; any tap if that is nil. It returns the tap that ended.
func (t *Taps) release(c *tapped, tap *Tap) *Tap {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := c.tap.Load()
	if tap == nil {
		delete(t.conns, c.id)
		tap = was
	}
	if was == nil || was != tap {
		return nil
	}
	c.tap.Store(nil)
	t.taps--
	return was
}

// tapped is a session that can be observed.
type tapped struct {
	Session
	taps *Taps
	id   uint64
	tap  atomic.Pointer[Tap]
}

// Feed implements Session.
func (c *tapped) Feed(in, out []byte, now Instant) (used int, outAfter []byte, v Verdict) {
	tap := c.tap.Load()
	if tap == nil {
		return c.Session.Feed(in, out, now)
	}
	before := len(out)
	used, outAfter, v = c.Session.Feed(in, out, now)
	tap.copy(false, in[:used], now)
	tap.copy(true, outAfter[before:], now)
	return used, outAfter, v
}

// Pump implements Session.
func (c *tapped) Pump(out []byte, room int, now Instant) (outAfter []byte, more bool) {
	tap := c.tap.Load()
	if tap == nil {
		return c.Session.Pump(out, room, now)
	}
	before := len(out)
	outAfter, more = c.Session.Pump(out, room, now)
	tap.copy(true, outAfter[before:], now)
	return outAfter, more
}

// Report implements Reporter. A session that counts nothing has no numbers.
func (c *tapped) Report() (inFlight, streams int64) {
	if r, ok := c.Session.(Reporter); ok {
		inFlight, streams = r.Report()
	}
	return inFlight, streams
}

// Closed implements Session.
func (c *tapped) Closed() {
	if tap := c.taps.release(c, nil); tap != nil {
		tap.end()
	}
	c.Session.Closed()
}

// Seen is one frame of an observed connection.
type Seen struct {
	// At is the time of its turn, Unix time in milliseconds.
	At int64
	// Out is whether the server sent it.
	Out bool
	// Size is its length in bytes.
	Size int
	// Head is its beginning; nil where the bytes begin no frame, as in the middle of one that was
	// begun before the connection was observed.
	Head []byte
}

// Tap holds copies of the frames of one connection for one reader. The connection never waits for
// the reader: frames for which there is no room are counted and lost.
type Tap struct {
	conn  *tapped
	keep  int
	size  func(out bool, b []byte) int
	ready chan struct{} // one slot: the reader has something to look at

	mu    sync.Mutex
	rest  [2]int // bytes to come of the frame at hand: of input, of output
	seen  []Seen
	bytes int
	lost  uint64 // frames after those in seen
	ended bool
}

// copy takes the frames in b, which a session took or appended.
func (t *Tap) copy(out bool, b []byte, now Instant) {
	if len(b) == 0 {
		return
	}
	t.mu.Lock()
	rest := &t.rest[0]
	if out {
		rest = &t.rest[1]
	}
	for len(b) > 0 {
		if *rest == 0 {
			*rest = t.add(out, b, now)
		}
		n := min(*rest, len(b))
		*rest -= n
		b = b[n:]
	}
	t.mu.Unlock()
	t.ring()
}

// add holds the frame at the front of b, if there is room, and returns its length. What begins no
// frame is held as one without a head. mu is held.
func (t *Tap) add(out bool, b []byte, now Instant) (size int) {
	s := Seen{At: now.Wall, Out: out, Size: len(b)}
	if size = t.size(out, b); size > 0 {
		s.Size, s.Head = size, b[:min(size, len(b), t.keep)]
	}
	if t.lost > 0 || t.bytes+len(s.Head)+tapFrame > tapBytes {
		t.lost++
		return s.Size
	}
	s.Head = append([]byte(nil), s.Head...)
	t.bytes += len(s.Head) + tapFrame
	t.seen = append(t.seen, s)
	return s.Size
}

// end notes that the connection is closed.
func (t *Tap) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.ring()
}

func (t *Tap) ring() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// Next waits for frames and returns those that are held, and how many were lost behind them. The
// error is io.EOF once the connection is closed and all was returned, or that of ctx. One goroutine
// calls it.
func (t *Tap) Next(ctx context.Context) (seen []Seen, lost uint64, err error) {
	for {
		t.mu.Lock()
		ended := t.ended
		seen, lost = t.seen, t.lost
		t.seen, t.lost, t.bytes = nil, 0, 0
		t.mu.Unlock()
		switch {
		case len(seen) > 0 || lost > 0:
			return seen, lost, nil
		case ended:
			return nil, 0, io.EOF
		}
		select {
		case <-t.ready:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// Close ends the observation.
func (t *Tap) Close() { t.conn.taps.release(t.conn, t) }
