package client

import (
	"errors"
	"net"

	"trunkline/engine/exacta/fault"
)

// Error is an error object (exacta §3.7): the server's, or one that this side found.
type Error struct {
	Code, Category   string
	Message, Detail  string
	Recovery         string
	Retryable, Local bool // Local: this side found it
}

// Error returns "CODE: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// local returns an error that this side found.
func local(code, detail string, values ...string) *Error {
	f := fault.New(code, detail, values...)
	row := f.Row()
	return &Error{Code: code, Category: row.Category, Message: f.Message(), Detail: detail, Recovery: row.Recovery, Retryable: row.Retryable, Local: true}
}

// ConnError means that a connection could not be made or is lost.
type ConnError struct {
	Addr string // as it was dialled
	Err  error  // the reason; io.EOF when the server closed

	dialling bool
}

// Error names the address and the reason.
func (e *ConnError) Error() string {
	if !e.dialling {
		return "connection to " + e.Addr + " lost: " + e.Err.Error()
	}
	why := e.Err
	if op := (*net.OpError)(nil); errors.As(why, &op) && op.Err != nil {
		why = op.Err // its own text has the address again
	}
	return "cannot connect to " + e.Addr + ": " + why.Error()
}

// Unwrap returns the reason.
func (e *ConnError) Unwrap() error { return e.Err }
