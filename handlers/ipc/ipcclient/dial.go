package ipcclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"trunkline/codec/wire"
)

// Dial connects to addr, which is host:port or unix:///path (kernel-ipc §6). ctx bounds the
// connecting and the TLS handshake only. A connection over the limit of the server fails at its
// first call, because the server refuses it by a frame (kernel-ipc §2.6).
func Dial(ctx context.Context, addr string, opts ...Option) (*Conn, error) {
	o := newOptions(opts)
	nc, err := connect(ctx, addr, &o)
	if err != nil {
		return nil, err
	}
	return newConn(nc, addr, o), nil
}

func connect(ctx context.Context, addr string, o *options) (net.Conn, error) {
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
	return nc, nil
}

// Probe asks a server that answers no frame whether it speaks HTTP or lines, by a request of HTTP
// on a connection of its own. A kernel server closes that connection, because the request is no
// frame. The result is "" when nothing is recognised before ctx ends.
func Probe(ctx context.Context, addr string, opts ...Option) Foreign {
	o := newOptions(opts)
	nc, err := connect(ctx, addr, &o)
	if err != nil {
		return ""
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(nc, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return ""
	}
	var first [4]byte
	n, _ := io.ReadFull(nc, first[:])
	return foreign(first[:n])
}

// New returns a Conn over nc, which it owns from then on. WithTLS is ignored.
func New(nc net.Conn, opts ...Option) *Conn {
	return newConn(nc, nc.RemoteAddr().String(), newOptions(opts))
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
	if cfg.ServerName == "" {
		host, _, _ := net.SplitHostPort(target)
		cfg = cfg.Clone()
		cfg.ServerName = cmp.Or(host, "localhost")
	}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("cannot complete the TLS handshake: %w", err)
	}
	return tc, nil
}

// Defaults of the options.
const (
	// DefaultStreamMessages bounds the messages that one stream holds for its consumer. The buffer
	// of the server (16384) takes what is beyond.
	DefaultStreamMessages = 1024
	// DefaultStreamBytes bounds the same in bytes of message bodies.
	DefaultStreamBytes = 4 << 20
	// maxUnsent bounds the requests that wait for the writer. Over it, new requests wait.
	maxUnsent = 16
)

type options struct {
	tls            *tls.Config
	maxFrame       int // bounds a frame's length field in both directions
	streamMessages int
	streamBytes    int
}

func newOptions(opts []Option) options {
	o := options{nil, wire.DefaultMaxFrame, DefaultStreamMessages, DefaultStreamBytes}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Option changes one setting of a connection.
type Option func(*options)

// WithTLS makes Dial use TLS with cfg; nil means plain. Dial fills an empty ServerName.
func WithTLS(cfg *tls.Config) Option { return func(o *options) { o.tls = cfg } }

// WithStreamBuffer bounds the messages, and the bytes of their bodies, that a stream holds for its
// consumer before the connection is no longer read. One message always fits.
func WithStreamBuffer(messages, bytes int) Option {
	return func(o *options) { o.streamMessages, o.streamBytes = messages, bytes }
}
