package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"trunkline/engine/cluster/upstream"
)

// leg is a connection of a client to the owner of a partition. One request at a time has it.
type leg struct {
	net.Conn
	in      *bufio.Reader
	out     *bufio.Writer
	owned   context.Context
	release [2]func() bool // of what closes it

	wanted  atomic.Bool // a request wants it
	watched chan bool   // gets whether it may serve one; no value while it rests
}

// leg returns that of a client to the owner of a partition, for a request.
func (w *Web) leg(c *client, partition int) (*leg, error) {
	if l := c.legs[partition]; l != nil {
		delete(c.legs, partition)
		if l.wake() {
			return l, nil
		}
	}
	nc, owned, err := w.dial(partition, c.remote)
	if err != nil {
		return nil, err
	}
	l := &leg{Conn: nc, in: bufio.NewReader(nc), out: bufio.NewWriter(nc), owned: owned}
	l.release = [...]func() bool{context.AfterFunc(owned, l.cut), context.AfterFunc(w.ctx, l.cut)}
	return l, nil
}

// watch begins when a leg has brought an answer. One that the owner ends, or no request wants for a
// while, is closed.
func (l *leg) watch(w *Web) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.wanted.Store(false)
	l.watched = make(chan bool, 1)
	if w.stopped {
		l.close()
		l.watched <- false
		return
	}
	_ = l.SetReadDeadline(time.Now().Add(w.idle))
	w.watching.Go(func() {
		_, err := l.in.Peek(1)
		good := errors.Is(err, os.ErrDeadlineExceeded) && l.wanted.Load()
		if !good {
			l.close()
		}
		l.watched <- good
	})
}

// wake ends what watch began, for a request. false: the leg is closed.
func (l *leg) wake() bool {
	l.wanted.Store(true)
	_ = l.SetReadDeadline(longAgo)
	if !<-l.watched {
		return false
	}
	if l.owned.Err() != nil || l.SetReadDeadline(time.Time{}) != nil {
		l.close()
		return false
	}
	return true
}

// close ends the leg.
func (l *leg) close() {
	for _, release := range l.release {
		release()
	}
	l.cut()
}

// cut closes the connection at once: the end of TLS would wait for the owner.
func (l *leg) cut() {
	_ = upstream.Cut(l.Conn)
	_ = l.Close()
}
