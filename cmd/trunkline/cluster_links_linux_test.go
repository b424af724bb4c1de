package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// linkState is what becomes of the bytes from one node to another.
type linkState int

const (
	linkOpen linkState = iota
	// linkSlow: they arrive slowBy later.
	linkSlow
	// linkHeld: they arrive when that ends, as those do that TCP sends again.
	linkHeld
	// linkLost: they never arrive. A connection that has lost some breaks when that ends.
	linkLost
)

// slowBy is how long bytes take on a slow link.
const slowBy = 100 * time.Millisecond

// Bounds of what a link keeps of one connection.
const (
	linkChunk  = 32 << 10 // bytes
	linkChunks = 64
)

// netLink is the bytes from one node to another, of all connections between them.
type netLink struct {
	mu      sync.Mutex
	state   linkState
	changed chan struct{} // closed at the next change
	lost    atomic.Int64  // bytes
}

func newLink() *netLink { return &netLink{changed: make(chan struct{})} }

func (l *netLink) now() (linkState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

func (l *netLink) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
}

// awaitPassing returns true once bytes pass.
func (l *netLink) awaitPassing(ctx context.Context) bool {
	for {
		state, changed := l.now()
		if state == linkOpen || state == linkSlow {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// chunk is bytes that have come from a node at a time.
type chunk struct {
	data []byte
	came time.Time
}

// carry moves bytes until from or to ends.
func (l *netLink) carry(ctx context.Context, to, from net.Conn) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	chunks := make(chan chunk, linkChunks)
	go func() {
		defer close(chunks)
		for {
			buf := make([]byte, linkChunk)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			select {
			case chunks <- chunk{buf[:n], time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	ended, torn := false, false
	for {
		state, changed := l.now()
		in := chunks
		switch passes := state == linkOpen || state == linkSlow; {
		case torn && state != linkLost:
			_, _ = to.Close(), from.Close()
			return
		case ended && passes:
			_ = to.(*net.TCPConn).CloseWrite()
			return
		case ended, state == linkHeld:
			in = nil
		}
		select {
		case c, ok := <-in:
			switch {
			case !ok:
				ended = true
				continue
			case state == linkLost:
				torn = true
				l.lost.Add(int64(len(c.data)))
				continue
			case state == linkSlow:
				time.Sleep(time.Until(c.came.Add(slowBy)))
			}
			if _, err := to.Write(c.data); err != nil {
				_, _ = to.Close(), from.Close()
				return
			}
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// netLinks is the network between the nodes of a rig. A node reaches another one at an address of
// the links, and is seen there by its own one: the port is that at which it listens, and the host
// another one of loopback. So servers that learn of each other from a third one find nothing that
// they do not know, and no connection goes by another way.
type netLinks struct {
	rig  *clusterRig
	ctx  context.Context
	wg   sync.WaitGroup
	pair map[[2]*clusterNode]*netLink
}

func newLinks(r *clusterRig) *netLinks {
	l := &netLinks{rig: r, pair: make(map[[2]*clusterNode]*netLink)}
	ctx, stop := context.WithCancel(context.Background())
	l.ctx = ctx
	r.t.Cleanup(func() {
		stop()
		l.wg.Wait()
	})
	for _, from := range r.nodes {
		for _, to := range r.nodes { // to itself too, which is never cut
			l.pair[[2]*clusterNode{from, to}] = newLink()
		}
	}
	return l
}

// host is that of a node for the others.
func (l *netLinks) host(n *clusterNode) string {
	for i, other := range l.rig.nodes {
		if other == n {
			return fmt.Sprintf("127.77.0.%d", i+1)
		}
	}
	return ""
}

// open returns the address at which others reach what a node listens to at an address.
func (l *netLinks) open(n *clusterNode, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		l.rig.t.Fatal(err)
	}
	at := net.JoinHostPort(l.host(n), port)
	ln, err := net.Listen("tcp", at)
	if err != nil {
		l.rig.t.Fatal(err)
	}
	context.AfterFunc(l.ctx, func() { _ = ln.Close() })
	l.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.join(c, n, addr) })
		}
	})
	return at
}

// join joins a connection of a node to an address of another one. It waits until both directions
// pass, as a connection that is made over a dead link does.
func (l *netLinks) join(c net.Conn, to *clusterNode, addr string) {
	defer c.Close()
	from := l.rig.nodeAt(c.RemoteAddr().(*net.TCPAddr).Port)
	if from == nil {
		return
	}
	there, back := l.pair[[2]*clusterNode{from, to}], l.pair[[2]*clusterNode{to, from}]
	if !there.awaitPassing(l.ctx) || !back.awaitPassing(l.ctx) {
		return
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(l.host(from))}, Timeout: answerPatience}
	s, err := d.DialContext(l.ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer s.Close()
	defer context.AfterFunc(l.ctx, func() { _, _ = c.Close(), s.Close() })()
	var both sync.WaitGroup
	both.Go(func() { back.carry(l.ctx, c, s) })
	there.carry(l.ctx, s, c)
	both.Wait()
}

// nodeAt returns the node whose process has a port of loopback, nil for none.
func (r *clusterRig) nodeAt(port int) *clusterNode {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil
	}
	want := fmt.Appendf(nil, ":%04X", port)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) < 10 || !bytes.HasSuffix(f[1], want) || string(f[9]) == "0" {
			continue
		}
		socket := fmt.Sprintf("socket:[%s]", f[9])
		for _, n := range r.nodes {
			if n.has(socket) {
				return n
			}
		}
	}
	return nil
}

// has reports whether the process of a node has a file open.
func (n *clusterNode) has(file string) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", n.pid.Load())
	list, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range list {
		if at, err := os.Readlink(dir + e.Name()); err == nil && at == file {
			return true
		}
	}
	return false
}

// set has the bytes from one node to another become something.
func (l *netLinks) set(s linkState, from, to *clusterNode) { l.pair[[2]*clusterNode{from, to}].set(s) }

// cut has nothing pass between a node and others, in both directions.
func (l *netLinks) cut(s linkState, n *clusterNode, others ...*clusterNode) {
	for _, other := range others {
		l.set(s, n, other)
		l.set(s, other, n)
	}
}

// heal has everything pass.
func (l *netLinks) heal() {
	for _, one := range l.pair {
		one.set(linkOpen)
	}
}

// TestLinks: the network that faults are made of does what it is asked for.
func TestLinks(t *testing.T) {
	l := newLink()
	pipe := func() (a, b net.Conn) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
			t.Fatal(err)
		}
		if b, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		return a, b
	}
	from, in := pipe()
	out, to := pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.carry(t.Context(), out, in)
	}()
	send := func(text string) {
		t.Helper()
		if _, err := from.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		got := make([]byte, len(text))
		for n := 0; n < len(got); {
			m, err := to.Read(got[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if string(got) != text {
			t.Errorf("%q arrives, not %q", got, text)
		}
	}
	send("one ")
	want("one ")
	l.set(linkHeld)
	send("two ")
	if _ = to.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); !failsToRead(to) {
		t.Error("held bytes arrive")
	}
	_ = to.SetReadDeadline(time.Time{})
	l.set(linkSlow)
	send("three ")
	want("two three ")
	l.set(linkLost)
	send("four ")
	(&clusterRig{t: t}).until("bytes are lost", func() bool { return l.lost.Load() > 0 })
	l.set(linkOpen)
	if !failsToRead(to) {
		t.Error("a connection outlives what it has lost")
	}
	<-done
}

func failsToRead(c net.Conn) bool {
	n, err := c.Read(make([]byte, 1))
	return n == 0 && err != nil
}
