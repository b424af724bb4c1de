package client

import (
	"crypto/tls"

	"trunkline/codec/wire"
)

// Defaults of the options.
const (
	// DefaultStreamMessages bounds the messages one stream holds for its consumer: a burst of ordinary size fits, and the
	// server's own buffer (16384) takes what is beyond.
	DefaultStreamMessages = 1024
	// DefaultStreamBytes bounds the same in bytes of message bodies.
	DefaultStreamBytes = 4 << 20
	// maxUnsent bounds the request bytes waiting for the socket; over it new requests wait for room, with their context.
	maxUnsent = 1 << 20
)

type options struct {
	tls            *tls.Config
	maxFrame       int
	streamMessages int
	streamBytes    int
}

func defaults() options {
	return options{
		maxFrame:       wire.DefaultMaxFrame,
		streamMessages: DefaultStreamMessages,
		streamBytes:    DefaultStreamBytes,
	}
}

// Option changes one setting of a connection.
type Option func(*options)

// WithTLS makes Dial speak TLS with the given configuration; nil means plain. An empty ServerName is filled from the address.
func WithTLS(cfg *tls.Config) Option { return func(o *options) { o.tls = cfg } }

// WithMaxFrame sets the bound on a frame's length field in both directions, in bytes (kernel-ipc §2.1). It must not be below
// the server's, or large replies end the connection. Values below 1 leave the default.
func WithMaxFrame(n int) Option {
	return func(o *options) {
		if n > 0 {
			o.maxFrame = n
		}
	}
}

// WithStreamBuffer sets how many messages and how many bytes of message bodies a stream holds for its consumer before the
// connection is no longer read. One message is always taken, however large. Values below 1 leave the default.
func WithStreamBuffer(messages, bytes int) Option {
	return func(o *options) {
		if messages > 0 {
			o.streamMessages = messages
		}
		if bytes > 0 {
			o.streamBytes = bytes
		}
	}
}
