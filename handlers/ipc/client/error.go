package client

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"trunkline/codec/wire"
)

// Error is an ERROR frame: the server's answer to one request, or to the connection as a whole
// (kernel-ipc §3.5). Fault describes the members of the same names.
type Error struct {
	// Code is the closed wire code; an unknown spelling becomes wire.Internal and stays in Message.
	Code                wire.Code
	Message             string
	Retryable           bool
	KernelQueueCapacity int64
	MaxConnections      int64
	RetryAfterSeconds   float64
}

func newError(f *Fault) *Error {
	e := &Error{0, f.Message, f.Retryable, f.KernelQueueCapacity, f.MaxConnections, f.RetryAfterSeconds}
	var ok bool
	if e.Code, ok = wire.ParseCode(f.Code); !ok || e.Code == wire.OK {
		e.Code = wire.Internal
		e.Message = strings.TrimSpace(f.Code + " " + f.Message)
	}
	return e
}

// Error returns "CODE: message".
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// ConnError means that the connection could not be made, is lost or was closed. Every call and
// stream on it gets the same one.
type ConnError struct {
	// Addr is the address as it was dialled.
	Addr string
	// Err is the reason: ErrClosed, the error of the transport, io.EOF when the server closed, or
	// the *Error by which it refused the connection (kernel-ipc §2.6).
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
	// ErrFrameTooLarge is wrapped by the error of a request over the frame limit; nothing was sent.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrProtocol is wrapped by the reason of a ConnError when the server violated the protocol.
	ErrProtocol = errors.New("protocol violation")
)

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}
