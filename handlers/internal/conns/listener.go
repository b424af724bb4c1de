package conns

import (
	"net"
	"sync"
)

// Listener is a listener with a bound on its open connections. At the bound it stops accepting: new
// ones wait in the system's backlog until a connection closes.
type Listener struct {
	net.Listener
	book *Book
	addr string

	mu     sync.Mutex
	change *sync.Cond // one of the fields below changed
	most   int
	open   int
	closed bool
}

// Limit returns ln with a bound: at most so many connections are open at once.
func Limit(ln net.Listener, most int) *Listener {
	l := &Listener{Listener: ln, most: most}
	l.change = sync.NewCond(&l.mu)
	return l
}

// Limit is the function Limit for a listener whose connections the book lists.
func (b *Book) Limit(ln net.Listener, most int) *Listener {
	l := Limit(ln, most)
	l.book, l.addr = b, ln.Addr().String()
	return l
}

// SetLimit changes the bound. Connections above a lower one stay open.
func (l *Listener) SetLimit(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = most
	l.change.Broadcast()
}

// Accept waits for a free slot, then for a connection, which is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	if !l.take() {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.give()
		return nil, err
	}
	conn := &Conn{Conn: c, from: l}
	if l.book != nil {
		l.book.enter(conn, l.addr)
	}
	return conn, nil
}

// take waits for a slot; false: the listener is closed.
func (l *Listener) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && !l.closed {
		l.change.Wait()
	}
	if l.closed {
		return false
	}
	l.open++
	return true
}

func (l *Listener) give() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.change.Signal()
}

// Open returns how many connections are open, and one more while Accept waits for one.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Close also ends an Accept that waits for a slot.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}
