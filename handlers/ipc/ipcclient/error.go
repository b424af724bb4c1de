package ipcclient

import (
	"bytes"
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
	// ErrNoPatterns is the error of Conn.Subscribe when the server does not know EventPatterns.
	ErrNoPatterns = errors.New("the server takes no event_patterns")
)

// Foreign is the name of another protocol, which a peer speaks as far as its first bytes show. It
// is wrapped by the reason of a ConnError.
type Foreign string

// TLS is what a peer speaks that refuses a connection without TLS.
const TLS Foreign = "TLS"

const (
	http  Foreign = "HTTP"
	lines Foreign = "lines of JSON" // of the tool server, of agent threads and of projects
)

// Error names the protocol.
func (f Foreign) Error() string { return "the peer speaks " + string(f) + ", not kernel IPC" }

// foreign returns the protocol to which the first bytes of a peer belong, "" for none of them. Each
// of them would be a frame of more than 300 MB.
func foreign(first []byte) Foreign {
	switch {
	case bytes.HasPrefix(first, []byte("HTTP")):
		return http
	case bytes.HasPrefix(first, []byte{0x15, 3}): // the alert by which TLS refuses what is no handshake
		return TLS
	case bytes.HasPrefix(first, []byte(`{"`)):
		return lines
	}
	return ""
}

func protocolErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}
