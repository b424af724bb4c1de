package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
)

const (
	// pulseService is what a pulse asks for; every node has it.
	pulseService = "pulse"
	// maxPulses is how many pulses a node takes: those of all nodes, twice.
	maxPulses = 128
	// beatsPerTerm is how often in a term a node shows its clock.
	beatsPerTerm = 4
	// looksPerTerm is how often in a term a Dialer looks at the clock.
	looksPerTerm = 8
	// stoppedTerms is for how many terms a process that was stopped dials no one: clients that sent
	// something before that have lost their connection by then.
	stoppedTerms = 2
)

// errStopped means that what clients of this node have sent may be old.
var errStopped = errors.New("this process was stopped for longer than a lease")

// Dialer dials other nodes so that late requests have no effect (see the package). Where
// Config.Term is 0, or the other node is of an earlier version, that is left out.
type Dialer struct {
	cfg     *Config
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup
	looked  atomic.Int64 // when, in connection.Mono
	stopped atomic.Int64 // until when nothing is dialled

	mu     sync.Mutex
	pulses map[string]*pulse // by address
}

// NewDialer returns a Dialer with cfg, which stays unchanged, until Close.
func NewDialer(cfg *Config) *Dialer {
	d := &Dialer{cfg: cfg, pulses: make(map[string]*pulse)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.looked.Store(connection.Mono())
	d.wg.Go(func() {
		tick := time.NewTicker(max(cfg.Term/looksPerTerm, time.Millisecond))
		defer tick.Stop()
		for cfg.Term > 0 {
			select {
			case <-tick.C:
				d.mayDial(connection.Mono())
			case <-d.ctx.Done():
				return
			}
		}
	})
	return d
}

// mayDial notices that this process was stopped, and reports whether that is long ago.
func (d *Dialer) mayDial(now int64) bool {
	if now-d.looked.Load() > int64(d.cfg.Term) {
		d.stopped.Store(now + stoppedTerms*int64(d.cfg.Term))
	}
	d.looked.Store(now)
	return now > d.stopped.Load()
}

// Close ends all pulses, and with them the connections that depend on them.
func (d *Dialer) Close() {
	d.stop()
	d.wg.Wait()
}

// Dial opens a connection to a service of a partition at the node at addr, in the name of a client.
// It makes the handshake; ctx bounds both. A Refusal is an answer of that node. The connection ends
// when the node was not heard for a term, and its Close drops what the node has not got yet.
func (d *Dialer) Dial(ctx context.Context, addr, service string, partition int, client string) (net.Conn, error) {
	h := &header{service: service, client: client, partition: uint32(partition)}
	if d.cfg.Term == 0 {
		c, _, err := connect(ctx, addr, d.cfg, h)
		return c, err
	}
	p, err := d.pulse(ctx, addr)
	if err != nil {
		return nil, err
	}
	h.dated = !p.earlier
	c, raw, err := connect(ctx, addr, d.cfg, h)
	if err != nil {
		return nil, err
	}
	if !d.mayDial(connection.Mono()) {
		_ = raw.Close()
		return nil, errStopped
	}
	_ = raw.(*net.TCPConn).SetLinger(0)
	if p.earlier {
		return c, nil
	}
	l := &dated{Conn: c, raw: raw, pulse: p}
	l.release = context.AfterFunc(p.ctx, func() { _ = raw.Close() })
	return l, nil
}

// pulse is what this node hears of another one: the readings of the other's clock.
type pulse struct {
	ctx     context.Context // ended when the node was not heard for a term
	end     context.CancelFunc
	ready   chan struct{} // closed when it is known whether the node answers
	err     error         // why it does not
	earlier bool          // it knows no pulses
	clock   atomic.Int64  // the reading that came last
}

// pulse returns that of a node, once the node has answered.
func (d *Dialer) pulse(ctx context.Context, addr string) (*pulse, error) {
	d.mu.Lock()
	p := d.pulses[addr]
	if p == nil {
		p = &pulse{ready: make(chan struct{})}
		p.ctx, p.end = context.WithCancel(d.ctx)
		d.pulses[addr] = p
		d.wg.Go(func() { d.listen(addr, p) })
	}
	d.mu.Unlock()
	select {
	case <-p.ready:
		return p, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen follows the clock of a node until nothing was heard of it for a term.
func (d *Dialer) listen(addr string, p *pulse) {
	defer func() {
		p.end()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.pulses, addr)
	}()
	c, raw, err := connect(d.ctx, addr, d.cfg, &header{service: pulseService, dated: true})
	var clock int64
	if err == nil {
		defer raw.Close()
		defer context.AfterFunc(d.ctx, func() { _ = raw.Close() })()
		clock, err = readClock(c, raw, d.cfg.Term)
	}
	p.clock.Store(clock)
	if p.earlier = errors.Is(err, io.EOF); !p.earlier { // one of an earlier version closes without a word
		p.err = err
	}
	close(p.ready)
	for heard := connection.Mono(); err == nil; {
		clock, err = readClock(c, raw, d.cfg.Term)
		now := connection.Mono()
		if err != nil || now-heard > int64(d.cfg.Term) {
			return // late, it may be this process that was stopped: what clients have sent is as old
		}
		heard = now
		p.clock.Store(clock)
	}
}

// readClock reads the next reading of the other node's clock.
func readClock(c io.Reader, raw net.Conn, within time.Duration) (int64, error) {
	_ = raw.SetReadDeadline(time.Now().Add(within))
	var b [clockBytes]byte
	_, err := io.ReadFull(c, b[:])
	return int64(binary.BigEndian.Uint64(b[:])), err
}

// beat shows another node the clock of this one until the connection ends.
func (s *Server) beat(c, raw net.Conn) {
	defer raw.Close()
	select {
	case s.pulses <- struct{}{}:
		defer func() { <-s.pulses }()
	default:
		_, _ = c.Write([]byte{byte(Full)})
		return
	}
	tick := time.NewTicker(max(s.cfg.Term/beatsPerTerm, time.Millisecond))
	defer tick.Stop()
	for b := []byte{byte(accepted)}; ; b = b[:0] {
		_ = raw.SetDeadline(time.Now().Add(max(s.cfg.Term, handshakeWithin)))
		if _, err := c.Write(binary.BigEndian.AppendUint64(b, uint64(connection.Mono()))); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// A dated connection carries what a client sends in pieces, each with the clock of the node that
// gets them, as this node has heard it last: length u16, clock u64. What the client gets is not
// changed.
const (
	clockBytes = 8
	pieceHead  = 2 + clockBytes
	maxPiece   = 32 << 10
)

// dated is the side of such a connection that dials. One goroutine writes at a time.
type dated struct {
	net.Conn
	raw     net.Conn // below TLS
	pulse   *pulse
	release func() bool
	buf     []byte
}

// Write implements net.Conn.
func (l *dated) Write(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(n+maxPiece, len(p))]
		l.buf = binary.BigEndian.AppendUint16(l.buf[:0], uint16(len(piece)))
		l.buf = binary.BigEndian.AppendUint64(l.buf, uint64(l.pulse.clock.Load()))
		l.buf = append(l.buf, piece...)
		if _, err = l.Conn.Write(l.buf); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// WriteTo has the system copy what the client gets, where it can.
func (l *dated) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, l.Conn) }

// CloseWrite ends the sending direction.
func (l *dated) CloseWrite() error { return l.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// NetConn returns the connection below.
func (l *dated) NetConn() net.Conn { return l.raw }

// Close implements net.Conn.
func (l *dated) Close() error {
	l.release()
	return l.raw.Close()
}

// pieces is the other side. It ends at a piece that has been on its way for longer than a term.
type pieces struct {
	in    *bufio.Reader
	from  *arrivals
	term  int64
	clock int64 // of the piece at hand
	left  int   // bytes of it
}

// piecesAhead is how much of a connection is read at a time.
const piecesAhead = 4 << 10

// Read implements io.Reader.
func (d *pieces) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for d.left == 0 {
		head, err := d.in.Peek(pieceHead)
		if err != nil {
			if err == io.EOF && len(head) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		d.left, d.clock = int(binary.BigEndian.Uint16(head)), int64(binary.BigEndian.Uint64(head[2:]))
		_, _ = d.in.Discard(pieceHead)
	}
	n, err = d.in.Read(p[:min(len(p), d.left)])
	if d.left -= n; n > 0 && d.from.late(d.clock, d.term) {
		return 0, errLate
	}
	return n, err
}

// errLate means that a client sent something so long ago that it may count on its having had no
// effect.
var errLate = errors.New("a forwarded request came later than a lease after it was sent")

// arrivals notes when bytes come. Times are those of connection.Mono. What waits here because the
// service takes nothing is not late by that: as with one server, it is the service that is slow.
type arrivals struct {
	net.Conn
	at   int64 // when the last ones came
	kept int64 // for how long nothing was read since all that had come was read
	more bool  // not all that had come was read
}

// Read implements net.Conn. It does not allocate.
func (a *arrivals) Read(p []byte) (n int, err error) {
	if !a.more {
		a.kept = 0
	}
	a.kept += connection.Mono() - a.at
	n, err = a.Conn.Read(p)
	a.at, a.more = connection.Mono(), n == len(p)
	return n, err
}

// late reports whether the bytes that came last were on their way for longer than a term; clock is
// a time before they were sent.
func (a *arrivals) late(clock, term int64) bool {
	took := a.at - clock
	return term > 0 && (took < 0 || took-a.kept > term)
}
