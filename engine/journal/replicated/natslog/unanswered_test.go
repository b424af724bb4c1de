package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit/natstest"
)

// TestUnanswered: servers without a leader are asked again, and those that refuse are not.
func TestUnanswered(t *testing.T) {
	for err, want := range map[error]bool{
		context.DeadlineExceeded: true, nats.ErrTimeout: true, nats.ErrNoResponders: true, &jetstream.APIError{Code: 503, ErrorCode: 10008}: true,
		&jetstream.APIError{Code: 400, ErrorCode: 10005}: true,
		&jetstream.APIError{Code: 404, ErrorCode: 10059}: true, &nats.APIError{Code: 404, ErrorCode: 10059}: true,
		&jetstream.APIError{Code: 503, ErrorCode: 10039}:       false,
		errors.New("streams could lose what was acknowledged"): false, context.Canceled: false,
	} {
		if natslog.Unanswered(fmt.Errorf("cannot open stream: %w", err)) != want {
			t.Errorf("%v: not %v", err, want)
		}
	}
}

// TestReadEndsWithoutAnswer: a read that is to end does not wait for servers that have no leader,
// as a node that takes the log over would be late.
func TestReadEndsWithoutAnswer(t *testing.T) {
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	l := c.Open(nc, "ends", time.Hour)
	a := &replicated.Append{Message: replicated.Message{Kind: replicated.KindBlock, First: 1, Data: []byte("x")}, ID: "one"}
	must(t, l.Append(a)().Err)
	c.Silence(0, "$JS.API.CONSUMER.DELETE.*.*")
	ctx, cancel := context.WithCancel(t.Context())
	err := l.Read(ctx, 1, replicated.Forever, func(*replicated.Message) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
