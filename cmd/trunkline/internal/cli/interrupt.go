package cli

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
)

// CodeInterrupted is the exit code of work that SIGINT or SIGTERM ended before its end, as shells
// have it.
const CodeInterrupted = 130

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM; the second one kills the
// process as if no handler were set.
func UntilSignal(parent context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Interrupted gives an error that comes of a canceled context the exit code for it; other errors
// stay as they are.
func Interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return Errorf(CodeInterrupted, "interrupted")
	}
	return err
}
