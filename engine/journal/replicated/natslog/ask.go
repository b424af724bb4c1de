package natslog

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// askEach is how often a question is put until it is answered.
const askEach = 100 * time.Millisecond

// errLeaderless stands for the answer of a server that knows of no leader: it may not know the end.
var errLeaderless = errors.New("the stream has no leader")

// ask puts a question again each askEach until a server answers that knows of a leader, and at most
// within a time. While a leader is elected no server answers, and the next leader does not know the
// question.
func ask[T any](ctx context.Context, within time.Duration, question func(ctx context.Context) (T, error)) (T, error) {
	return askWhen(ctx, within, question, 1, func(context.Context) {})
}

// askLarge is ask for an answer that may be large. It puts the question again once the leader has
// answered a small one that was put later, each time after twice as long: a slow server would have
// more large answers to send each askEach, and would be asked for still more.
func askLarge[T any](ctx context.Context, within time.Duration, question func(ctx context.Context) (T, error), small func(ctx context.Context) (struct{}, error)) (T, error) {
	return askWhen(ctx, within, question, 2, func(ctx context.Context) {
		_, _ = ask(ctx, within, small) // what is wrong with it is wrong with the question
	})
}

// askWhen puts a question again after askEach, growth times as long each time, and once due has
// returned.
func askWhen[T any](ctx context.Context, within time.Duration, question func(ctx context.Context) (T, error), growth time.Duration, due func(ctx context.Context)) (T, error) {
	type reply struct {
		answer T
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	replies := make(chan reply) // those of all questions
	for gap := askEach; ; gap *= growth {
		go func() {
			answer, err := question(ctx)
			select {
			case replies <- reply{answer, err}:
			case <-ctx.Done():
			}
		}()
		again := make(chan struct{})
		go func() {
			select {
			case <-time.After(gap):
			case <-ctx.Done():
				return
			}
			if due(ctx); ctx.Err() == nil {
				close(again)
			}
		}()
		for wait := true; wait; {
			select {
			case r := <-replies:
				if !leaderless(r.err) {
					return r.answer, r.err
				}
			case <-again:
				wait = false
			case <-ctx.Done():
				var none T
				return none, ctx.Err()
			}
		}
	}
}

// askSmall asks the leader for a message that is never there.
func (l *Log) askSmall(ctx context.Context) (none struct{}, err error) {
	if _, err = l.log.GetLastMsgForSubject(ctx, l.root+noSubject); errors.Is(err, jetstream.ErrMsgNotFound) {
		err = nil
	}
	return none, err
}

// leaderless reports whether an error is the answer of a server that knows of no leader.
func leaderless(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, errLeaderless) || errors.As(err, &api) && api.ErrorCode == notAvailable
}

// Unanswered reports whether an error means no more than that no server has answered, as while they
// elect a leader, that too few see each other yet, or that the one that answers does not know the
// stream yet: Open makes what is missing. It may be asked again.
func Unanswered(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) ||
		errors.As(err, &api) && (api.ErrorCode == notAvailable || api.ErrorCode == noPeers)
}
