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
// long is waited for.
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
	silence, other := after(time.Hour, nil), errors.New("another error")
	none, unavailable := after(time.Millisecond, errLeaderless), after(time.Millisecond, &jetstream.APIError{ErrorCode: notAvailable})
	f := func(what string, asked int, took time.Duration, want error, answers ...func(context.Context) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var asks atomic.Int64
			began := time.Now()
			_, err := ask(t.Context(), within, func(ctx context.Context) (int, error) {
				n := int(asks.Add(1))
				return n, answers[min(n, len(answers))-1](ctx)
			})
			if since, n := time.Since(began), int(asks.Load()); n != asked || since != took || !errors.Is(err, want) {
				t.Errorf("%s: %v after %v and %d questions", what, err, since, n)
			}
		})
	}
	f("an answer", 1, time.Millisecond, nil, after(time.Millisecond, nil))
	f("an error", 1, time.Millisecond, other, after(time.Millisecond, other))
	f("no answer at first", 3, 2*askEach, nil, silence, silence, after(0, nil))
	f("no leader at first", 4, 3*askEach, nil, none, unavailable, none, after(0, nil))
	f("an answer that takes long", 10, within-askEach/4, nil, after(within-askEach/4, nil))
	f("never an answer", 10, within, context.DeadlineExceeded, silence)
	f("never a leader", 10, within, context.DeadlineExceeded, none)
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
