package journal

import "context"

// Checkpoint calls f when everything that was appended before the call is durable; upTo is the last
// index of it. While f runs, records are appended, but no snapshot is written and nothing of the
// log is dropped, so that what f copies belongs together. It waits for a running snapshot.
//
// It returns the error of f, of ctx before f was called, or why the journal takes no records.
func (l *Log) Checkpoint(ctx context.Context, f func(upTo Index) error) error {
	select {
	case l.upkeep <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.upkeep }()
	first, err := l.unclaimed()
	switch {
	case err != nil:
		return err
	case first:
		return ErrNotReplayed
	}
	upTo := l.Appended()
	if err := l.Await(ctx, upTo); err != nil {
		return err
	}
	return f(upTo)
}
