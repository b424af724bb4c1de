// Package stream serves connection.Sessions over anything that reads and writes bytes and may block
// doing so: TLS, stdio, pipes, and connections that left an event loop. Each connection has two
// goroutines, and a third once it has begun to read ahead.
//
//	          ┌──────── reader ────────┐   replies    ┌──────── writer ────────┐
//	Read ───► │ Feed, until it may not │ ───────────► │ replies, then one Pump │ ───► Write
//	          └────────────────────────┘              └────────────────────────┘
//	               │ read ahead   ▲   while replies exceed UnsentBytes,   │  ▲
//	               ▼              └─ or the session is blocked ── room ───┘  └── Port.Wake
//	             bytes kept ──► tender: Feed while the reader reads, Pump while the writer writes
//
// A connection's mutex guards its session and what the goroutines share; it is never held during a
// Read or a Write. A blocking Write is the back-pressure: while it lasts, replies gather up to
// Limits.UnsentBytes, then the session stops, then what is read ahead gathers up to
// Limits.AheadBytes and AheadFrames, then the reader stops, then the peer's window closes
// (kernel-ipc §2.5, toolhost §2.2). Without AheadBytes the reader stops with the session.
//
// A connection ends by lingering (delivery): its socket is closed when its peer has all output, not
// when the socket has.
//
// Timers need no timer each: one janitor per Host looks at all connections twice a second, so a
// timer of T fires in [T, T+1 s] (kernel-ipc §2.4).
package stream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
)

// errDraining is returned for a connection or a listener that comes during a drain.
var errDraining = errors.New("cannot serve: shutting down")

// errFull is returned by Serve when the gate has no free slot.
var errFull = errors.New("cannot serve: connection limit reached")

// Config is what the owner of a server's connections needs. Open is required; zero values of the
// rest stand for the defaults named there.
type Config struct {
	// Protocol is shown in lists of connections. Name begins the names of connections; empty:
	// Protocol does.
	Protocol, Name string
	// MaxConnections is kernel.max_connections; zero stands for DefaultMaxConnections.
	MaxConnections int
	// Files counts the descriptors of connections; nil: they are not counted.
	Files  *Files
	Limits connection.Limits
	// Open makes the session of each new connection.
	Open connection.Opener
	// Refuse appends the frame that a connection beyond the limit gets; nil closes it without one.
	Refuse func(dst []byte) []byte
	// Now reads the clocks; nil stands for the process clock.
	Now func() connection.Instant
	// Logger gets a debug line per closed connection and warnings; nil drops them.
	Logger *slog.Logger
	// OnTick is called each TickEvery, for another owner's timers; nil: it is not.
	OnTick func()
}

// WithDefaults returns c with its defaults.
func (c Config) WithDefaults() Config {
	if c.Now == nil {
		c.Now = connection.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.OnTick == nil {
		c.OnTick = func() {}
	}
	return c
}

// Host owns connections served by goroutines. Its methods may be called from any goroutine.
type Host struct {
	// Gate and Stats count all connections of the server.
	Gate  *Gate
	Stats *Stats

	cfg    Config
	log    *slog.Logger
	nextID atomic.Uint64
	direct connection.Listener // of connections that were not accepted
	bufs   *bufpool.Pool
	lent   chan struct{} // refusals in flight

	running context.Context // ended by Drain: accept loops and handshakes give up
	stop    context.CancelFunc
	stopped chan struct{} // closed by Close: the janitor ends

	accepts sync.WaitGroup // accept loops; Add only under mu while not draining

	mu       sync.Mutex
	conns    map[*conn]struct{}
	lingers  map[*conn]struct{} // released, their last bytes are on the way
	lns      map[net.Listener]struct{}
	draining bool
	closed   bool
	wg       sync.WaitGroup // goroutines; Add only under mu while not closed, or by an accept loop
}

// NewHost returns a running Host; end it with Shutdown, or with Drain and Close.
func NewHost(cfg Config) *Host {
	cfg = cfg.WithDefaults()
	h := &Host{
		Gate: newGate(cfg.MaxConnections, cfg.Files), Stats: new(Stats),
		cfg: cfg, log: cfg.Logger, bufs: bufpool.New(0), lent: make(chan struct{}, refusalsInFlight),
		stopped: make(chan struct{}),
		conns:   make(map[*conn]struct{}), lingers: make(map[*conn]struct{}), lns: make(map[net.Listener]struct{}),
		direct: connection.Listener{Protocol: cfg.Protocol, Name: cmp.Or(cfg.Name, cfg.Protocol)},
	}
	h.running, h.stop = context.WithCancel(context.Background())
	h.wg.Go(h.janitor)
	return h
}

// NewPort names a new connection; remote is for people.
func (h *Host) NewPort(remote string) *connection.Port {
	return connection.NewPort(h.nextID.Add(1), remote).From(&h.direct)
}

// Listener describes ln for the ports of its connections.
func (h *Host) Listener(ln net.Listener) *connection.Listener {
	l := h.direct
	l.Addr = ln.Addr().String()
	return &l
}

// Snapshot reads the counters.
func (h *Host) Snapshot() Snapshot { return h.Stats.Snapshot(h.Gate.Open()) }

// Totals returns how many connections are open, and the bytes read and written by all there were.
func (h *Host) Totals() (open, in, out int64) {
	st := h.Snapshot()
	return st.Open, st.BytesIn, st.BytesOut
}

// Serve serves one new connection and returns when it is closed. rwc is closed in every case. Where
// rwc is a net.Conn, it may be cut at any time by closing it; where closing does not interrupt a
// Read (some stdin), the reading goroutine stays until that Read returns.
func (h *Host) Serve(rwc io.ReadWriteCloser, remote string) error {
	return h.ServeSession(rwc, remote, h.cfg.Open)
}

// ServeSession is Serve for a connection whose session is made by open.
func (h *Host) ServeSession(rwc io.ReadWriteCloser, remote string, open connection.Opener) error {
	if !h.Gate.admit() {
		h.Stats.Refused.Add(1)
		h.refuse(rwc)
		return errFull
	}
	h.Stats.Accepted.Add(1)
	c, err := h.open(rwc, h.NewPort(remote), open)
	if err != nil {
		return err
	}
	<-c.done
	return nil
}

// open starts a connection that has its slot already, and gives the slot back if it cannot.
func (h *Host) open(rwc io.ReadWriteCloser, p *connection.Port, open connection.Opener) (*conn, error) {
	c := h.bareConn(rwc, p)
	var err error
	if c.sess, err = h.openSession(c.port, open); err != nil {
		h.Gate.Release(false)
		h.Stats.CountClosed(connection.ReasonPanic)
		_ = rwc.Close()
		return nil, err
	}
	c.Quiet = h.cfg.Now().Mono
	c.Opened = c.Quiet
	return c, h.start(c, nil)
}

// start runs c's goroutines, which first send what is unsent, or closes c when the Host is closed.
func (h *Host) start(c *conn, unsent *bufpool.Buffer) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		c.abort(connection.ReasonDrain)
		c.dropInput()
		return errDraining
	}
	h.conns[c] = struct{}{}
	draining := h.draining
	c.port.SetOwner(c)
	h.wg.Go(c.read)
	h.wg.Go(func() { c.write(unsent) })
	h.mu.Unlock()
	if draining {
		c.drain()
	}
	return nil
}

func (h *Host) forget(c *conn) {
	h.mu.Lock()
	delete(h.conns, c)
	h.mu.Unlock()
}

// list appends the open connections to dst.
func (h *Host) list(dst []*conn) []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		dst = append(dst, c)
	}
	return dst
}

// Drain closes the listeners and drains every session (kernel-ipc §2.7); connections close when
// their sessions are done. Connections adopted later are drained on arrival. It returns when the
// accept loops have ended, and does not wait for connections.
func (h *Host) Drain() {
	h.mu.Lock()
	if h.draining {
		h.mu.Unlock()
		h.accepts.Wait()
		return
	}
	h.draining = true
	h.stop()
	for ln := range h.lns {
		_ = ln.Close()
	}
	h.mu.Unlock()
	h.accepts.Wait()
	h.wg.Go(h.finishTogether)
	for _, c := range h.list(nil) {
		c.drain()
	}
}

// finishTogether has the connections checked, once the rest of a drain is over.
func (h *Host) finishTogether() {
	select {
	case <-h.Gate.Rested():
	case <-h.stopped:
		return
	}
	for _, c := range h.list(nil) {
		c.ring()
	}
}

// Close closes all connections, whatever they still hold, and waits until the Host's goroutines
// have ended or ctx has.
func (h *Host) Close(ctx context.Context) error {
	h.Drain()
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.stopped)
	}
	h.mu.Unlock()
	for _, c := range h.list(nil) {
		c.abort(connection.ReasonDrain)
	}
	ended := make(chan struct{})
	go func() {
		h.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown drains for at most Limits.DrainWithin, or until ctx ends, then closes.
func (h *Host) Shutdown(ctx context.Context) error {
	h.Drain()
	grace, cancel := context.WithTimeout(ctx, time.Duration(h.cfg.Limits.DrainWithin))
	defer cancel()
	h.Gate.AwaitRest(grace, h.cfg.Limits.DrainWithin)
	_ = h.Gate.Wait(grace)
	return h.Close(ctx)
}

// TickEvery is how often owners look at their timers: twice per second, because the end of a
// request may be noticed one tick late and its timer one tick later, and both together must stay
// within the second that kernel-ipc §2.4 allows.
const TickEvery = 500 * time.Millisecond

// janitor closes connections whose timers ran out or whose peer is gone.
func (h *Host) janitor() {
	tick := time.NewTicker(TickEvery)
	defer tick.Stop()
	var conns []*conn
	for {
		select {
		case <-h.stopped:
			return
		case <-tick.C:
		}
		h.cfg.OnTick()
		now := h.cfg.Now()
		conns = h.list(conns[:0])
		for _, c := range conns {
			if r, ok := c.overdue(now); ok {
				c.abort(r)
			} else if c.lost() {
				c.abort(connection.ReasonError)
			}
		}
		clear(conns)
	}
}

// lost reports whether the peer of a connection that has ended is gone altogether: such a socket is
// not read any more, and a reset that comes while an answer is outstanding would be noticed only by
// sending it. Before Session.EOF there may be frames to serve, and the reader notices.
func (c *conn) lost() bool {
	c.mu.Lock()
	ended := c.Peer == connection.PeerEOF && !c.released
	c.mu.Unlock()
	return ended && c.sock.hungUp()
}
