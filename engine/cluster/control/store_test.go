package control

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// TestStreamsWithoutALeaderAreAskedAgain, and those that refuse are not.
func TestStreamsWithoutALeaderAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := func(answers ...error) (n int, err error) {
			err = attempts(t.Context(), func(context.Context) error {
				n++
				return fmt.Errorf("cannot open stream: %w", answers[n-1])
			})
			return n, err
		}
		refused := errors.New("it could lose what was acknowledged")
		if n, err := asked(nats.ErrNoResponders, context.DeadlineExceeded, refused, nil); n != 3 || !errors.Is(err, refused) {
			t.Errorf("asked %d times: %v", n, err)
		}
	})
}

// TestAnOwnerAsksPastItsLease, and for no longer than the stream remembers what it was sent.
func TestAnOwnerAsksPastItsLease(t *testing.T) {
	for term, want := range map[time.Duration]time.Duration{time.Second: 5 * time.Second, 12 * time.Second: time.Minute, time.Minute: time.Minute} {
		if got := askWithin(term); got != want {
			t.Errorf("lease %v: %v, want %v", term, got, want)
		}
	}
}
