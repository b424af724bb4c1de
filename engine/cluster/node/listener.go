package node

import (
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
)

// noClients is a listener without an address: no client ever connects. The server needs one all the
// same: without it (DontListen) it never opens its routes, does not end, and hands over no
// leadership before it stops.
type noClients struct {
	once   sync.Once
	closed chan struct{}
	taken  atomic.Bool
}

// Accept waits until Close.
func (l *noClients) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close may be called more than once.
func (l *noClients) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the form that the server expects. The server asks for it when it begins to accept.
func (l *noClients) Addr() net.Addr {
	l.taken.Store(true)
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
}

// withoutClients gives s, a *server.Server that has not been started, the listener that it uses
// instead of opening one. unused takes it back, if the start ended before s began to accept: to
// stop, s would wait for the end of what has not begun. ok is false where the library has no such
// field: then s opens a port of the loopback interface, where only this process can log in.
func withoutClients(s any) (unused func(), ok bool) {
	f := reflect.ValueOf(s).Elem().FieldByName("listener")
	if !f.IsValid() || f.Type() != reflect.TypeFor[net.Listener]() {
		return func() {}, false
	}
	at, l := (*net.Listener)(unsafe.Pointer(f.UnsafeAddr())), &noClients{closed: make(chan struct{})}
	*at = l
	return func() {
		if !l.taken.Load() {
			*at = nil
		}
	}, true
}
