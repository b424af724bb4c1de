package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
)

// Dial connects to addr, which is host:port or unix:///path, as the server's kernel.listen_addr spells it (kernel-ipc §6).
// ctx bounds the connecting and the TLS handshake only. A connection the server refuses for being one too many fails at its
// first call, because the server says so in a frame (kernel-ipc §2.6).
func Dial(ctx context.Context, addr string, opts ...Option) (*Conn, error) {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	network, target, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, target)
	if err != nil {
		return nil, &ConnError{Addr: addr, Err: err, dialling: true}
	}
	if o.tls != nil {
		if nc, err = handshake(ctx, nc, o.tls, target); err != nil {
			return nil, &ConnError{Addr: addr, Err: err, dialling: true}
		}
	}
	return newConn(nc, addr, o), nil
}

// New speaks the protocol over a transport that is connected already; the Conn owns nc from now on. WithTLS is ignored.
func New(nc net.Conn, opts ...Option) *Conn {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	return newConn(nc, nc.RemoteAddr().String(), o)
}

func splitAddr(addr string) (network, target string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return "", "", fmt.Errorf("cannot use address %q: the path of unix:// must be absolute", addr)
		}
		return "unix", path, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return "", "", fmt.Errorf("cannot use address %q: want host:port or unix:///path", addr)
	}
	return "tcp", addr, nil
}

func handshake(ctx context.Context, nc net.Conn, cfg *tls.Config, target string) (net.Conn, error) {
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(target)
		if err != nil {
			host = "localhost"
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("cannot complete the TLS handshake: %w", err)
	}
	return tc, nil
}
