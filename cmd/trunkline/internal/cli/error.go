package cli

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes of every verb. A script may rely on them.
const (
	CodeOK          = 0
	CodeFailed      = 1
	CodeUsage       = 2
	CodeNotFound    = 3
	CodeNotAllowed  = 4
	CodeUnavailable = 5 // unavailable or timed out
	CodeConflict    = 6
)

// Error is a failure with the exit code it ends the process with and, when there is something to do
// about it, a hint: one line each, separated by newlines. Usage, if set, is printed after both, but
// not as JSON. With a nil Err it ends the process with its code and prints nothing: the command has
// printed everything already.
type Error struct {
	Code  int
	Err   error
	Hint  string
	Usage string
}

// Error returns the message without the program name and without the hint.
func (e *Error) Error() string {
	if e.Err == nil {
		return "failed"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with this exit code; %w works as in fmt.Errorf.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// WithHint sets the hint and returns e, for one-line construction.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// Exit returns the exit code for err: CodeOK for nil, the code an Error in its chain carries,
// CodeUnavailable for a deadline that passed, else CodeFailed.
func Exit(err error) int {
	if err == nil {
		return CodeOK
	}
	var e *Error
	switch {
	case errors.As(err, &e) && e.Code != CodeOK:
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return CodeUnavailable
	}
	return CodeFailed
}

// AsUsage marks err as a usage error unless it carries a code already.
func AsUsage(err error, hint string) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: CodeUsage, Err: err, Hint: hint}
}
