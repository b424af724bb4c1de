package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal/replicated/natslog"
)

// TestUnanswered: servers without a leader are asked again, and those that refuse are not.
func TestUnanswered(t *testing.T) {
	for err, want := range map[error]bool{
		context.DeadlineExceeded: true, nats.ErrTimeout: true, nats.ErrNoResponders: true, &jetstream.APIError{Code: 503, ErrorCode: 10008}: true,
		&jetstream.APIError{Code: 400, ErrorCode: 10005}: true,
		&jetstream.APIError{Code: 503, ErrorCode: 10039}: false, &jetstream.APIError{Code: 404, ErrorCode: 10059}: false, errors.New("streams could lose what was acknowledged"): false, context.Canceled: false,
	} {
		if natslog.Unanswered(fmt.Errorf("cannot open stream: %w", err)) != want {
			t.Errorf("%v: not %v", err, want)
		}
	}
}
