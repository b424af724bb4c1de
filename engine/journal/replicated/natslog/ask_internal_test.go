package natslog

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestAskAgain: a question that no server has taken is put again soon, and an answer that takes
// long is waited for. What may be large is asked for again only where a leader has answered since.
func TestAskAgain(t *testing.T) {
	const within = 19 * askEach / 2
	after := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-time.After(d):
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	f := func(what string, asked int, took time.Duration, want error, put func(ctx context.Context, question func(context.Context) (int, error)) (int, error), answers ...func(context.Context) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var asks atomic.Int64
			began := time.Now()
			_, err := put(t.Context(), func(ctx context.Context) (int, error) {
				n := int(asks.Add(1))
				return n, answers[min(n, len(answers))-1](ctx)
			})
			if since, n := time.Since(began), int(asks.Load()); n != asked || since != took || !errors.Is(err, want) {
				t.Errorf("%s: %v after %v and %d questions", what, err, since, n)
			}
		})
	}
	silence, other := after(time.Hour, nil), errors.New("another error")
	none, unavailable := after(time.Millisecond, errLeaderless), after(time.Millisecond, &jetstream.APIError{ErrorCode: notAvailable})

	plain := func(ctx context.Context, question func(context.Context) (int, error)) (int, error) {
		return ask(ctx, within, question)
	}
	f("an answer", 1, time.Millisecond, nil, plain, after(time.Millisecond, nil))
	f("an error", 1, time.Millisecond, other, plain, after(time.Millisecond, other))
	f("no answer at first", 3, 2*askEach, nil, plain, silence, silence, after(0, nil))
	f("no leader at first", 4, 3*askEach, nil, plain, none, unavailable, none, after(0, nil))
	f("an answer that takes long", 10, within-askEach/4, nil, plain, after(within-askEach/4, nil))
	f("never an answer", 10, within, context.DeadlineExceeded, plain, silence)
	f("never a leader", 10, within, context.DeadlineExceeded, plain, none)

	// beside returns askLarge with the answers to its small questions.
	beside := func(answers ...func(context.Context) error) func(context.Context, func(context.Context) (int, error)) (int, error) {
		return func(ctx context.Context, question func(context.Context) (int, error)) (int, error) {
			var asks atomic.Int64
			return askLarge(ctx, within, question, func(ctx context.Context) (none struct{}, err error) {
				return none, answers[min(int(asks.Add(1)), len(answers))-1](ctx)
			})
		}
	}
	f("large: an answer", 1, time.Millisecond, nil, beside(silence), after(time.Millisecond, nil))
	f("large: an error", 1, time.Millisecond, other, beside(silence), after(time.Millisecond, other))
	f("large: a leader that is busy", 1, within-askEach/4, nil, beside(silence), after(within-askEach/4, nil))
	f("large: small answers come first", 4, within-askEach/4, nil, beside(after(0, nil)), after(within-askEach/4, nil))
	f("large: an election", 2, 5*askEach, nil, beside(silence, silence, silence, silence, after(0, nil)), silence, after(0, nil))
	f("large: no leader at first", 2, 4*askEach, nil, beside(none, unavailable, none, after(0, nil)), none, after(0, nil))
	f("large: another election", 3, 3*askEach, nil, beside(after(0, nil)), silence, silence, after(0, nil))
	f("large: never a leader", 1, within, context.DeadlineExceeded, beside(none), silence)
	f("large: a server that fails", 4, within, context.DeadlineExceeded, beside(after(0, other)), silence)
}

// TestSentHeader: what is no time of an owner is one that is not known.
func TestSentHeader(t *testing.T) {
	f := func(text string, owner uint64, sent time.Duration) {
		t.Helper()
		if o, s := sentOf(text); o != owner || s != sent {
			t.Errorf("%q: %d, %v", text, o, s)
		}
	}
	f("7.1500", 7, 1500)
	f("18446744073709551615.-1", 1<<64-1, -1)
	for _, text := range []string{"", "7", "7.", ".5", "x.5", "7.x", "-7.5", "7.5.6"} {
		f(text, 0, 0)
	}
}
