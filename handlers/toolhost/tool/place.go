package tool

import (
	"context"
	"sync"
	"time"
)

// Place is what a built-in tool has while it runs off the event loops: one of few, for all calls of
// a server. Only the goroutine of the tool uses it.
type Place interface {
	// Worked takes note of n bytes more that the tool has worked on. Where that makes the call a
	// long one it waits for a place among the long calls, until ctx ends.
	Worked(ctx context.Context, n int64) error
	// Leave gives the place up, Return waits for one again until ctx ends.
	Leave()
	Return(ctx context.Context) error
}

type placeKey struct{}

// WithPlace returns a context that carries p to the tool that runs with it.
func WithPlace(ctx context.Context, p Place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// Worked notes n bytes more of work in ctx. A tool calls it before each piece of work whose amount
// the caller decides, so that small calls do not wait for large ones. It fails when ctx ends first.
func Worked(ctx context.Context, n int64) error {
	if p, ok := ctx.Value(placeKey{}).(Place); ok {
		return p.Worked(ctx, n)
	}
	return nil
}

// Aside runs wait, which waits for something else than the processor or a disk and has its own
// bound, without the place of the tool in ctx. It returns wait's error, or why no place came back.
func Aside(ctx context.Context, wait func() error) error {
	p, ok := ctx.Value(placeKey{}).(Place)
	if !ok {
		return wait()
	}
	p.Leave()
	err := wait()
	if back := p.Return(ctx); err == nil {
		err = back
	}
	return err
}

// EndWithin waits for what running counts, at most for limit, and reports whether all ended: a tool
// may hang in the system for ever.
func EndWithin(running *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
