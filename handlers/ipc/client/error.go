package client

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"trunkline/codec/wire"
)

// Error is an ERROR frame: what the server answered to one request, or to the connection as a whole (kernel-ipc §3.5).
type Error struct {
	// Code is the closed wire code; a spelling this client does not know becomes wire.Internal and stays in Message.
	Code wire.Code
	// Message is the server's sentence, without the code.
	Message string
	// Retryable is true on saturation: the same request may succeed a moment later.
	Retryable bool
	// KernelQueueCapacity is the server's kernel_queue_capacity, in requests, when that queue was full; else 0.
	KernelQueueCapacity int64
	// MaxConnections is the server's max_connections when the connection itself was refused; else 0.
	MaxConnections int64
	// RetryAfterSeconds is how long the rate limiter asks to wait; 0 when it did not say.
	RetryAfterSeconds float64
}

// Error returns "CODE: message".
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// ConnError says that the connection could not be made, is lost or was closed. Every call and stream on it gets the same one.
type ConnError struct {
	// Addr is the address as it was dialled.
	Addr string
	// Err is why: ErrClosed, the transport's error, io.ErrUnexpectedEOF when the server closed, or an *Error when the server
	// said the reason first (kernel-ipc §2.6).
	Err error

	dialling bool // there was no connection yet
}

// Error names the address and the reason.
func (e *ConnError) Error() string {
	if !e.dialling {
		return "connection to " + e.Addr + " lost: " + e.Err.Error()
	}
	why := e.Err
	if op, ok := why.(*net.OpError); ok && op.Err != nil {
		why = op.Err // its own text begins with the address again
	}
	return "cannot connect to " + e.Addr + ": " + why.Error()
}

// Unwrap returns the reason.
func (e *ConnError) Unwrap() error { return e.Err }

var (
	// ErrClosed is the reason of a ConnError after Conn.Close.
	ErrClosed = errors.New("closed by this side")
	// ErrStreamClosed is what Stream.Next returns after Stream.Close.
	ErrStreamClosed = errors.New("stream is closed")
	// ErrFrameTooLarge is wrapped by the error of a request that would exceed the frame limit; nothing was sent.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrProtocol is wrapped by the reason of a ConnError when the server sent what the protocol does not allow.
	ErrProtocol = errors.New("protocol violation")
)

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}

// setCode keeps an unknown spelling readable instead of losing it.
func (e *Error) setCode(spelling string) {
	code, ok := wire.ParseCode(spelling)
	if !ok || code == wire.OK {
		e.Code = wire.Internal
		e.Message = strings.TrimSpace(spelling + " " + e.Message)
		return
	}
	e.Code = code
}
