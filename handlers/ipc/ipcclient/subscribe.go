package ipcclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
)

const busService = "commbus"

// The event types a server emits itself (kernel-ipc §4.15).
const (
	eventSubscribed = "commbus.subscribed"
	eventGap        = "commbus.gap"
)

// The kinds of an Instruction.
const (
	RunAgent      = "RUN_AGENT"
	WaitInterrupt = "WAIT_INTERRUPT"
	Terminate     = "TERMINATE"
)

// Messages is a live stream whose messages are of type T.
type Messages[T any, P decoder[T]] struct {
	stream *Stream
	// Name is the subscriber or handler id in force; the server may have generated it.
	Name string
	// Types are the types the stream serves.
	Types []string
}

// decoder is a pointer to a message that decodes itself.
type decoder[T any] interface {
	*T
	msgp.Unmarshaler
}

// The streams of the service commbus.
type (
	// Subscription receives the events of its types.
	Subscription = Messages[Event, *Event]
	// CommandHandler receives the commands of its types.
	CommandHandler = Messages[Command, *Command]
	// QueryHandler receives the queries of its types. Each is answered with Conn.Reply on the same
	// connection.
	QueryHandler = Messages[QueryCall, *QueryCall]
)

// Next returns the next message and waits for it; its errors are those of Stream.Next.
func (m *Messages[T, P]) Next(ctx context.Context) (out T, err error) {
	body, err := m.stream.Next(ctx)
	if err != nil {
		return out, err
	}
	if _, err = P(&out).UnmarshalMsg(body); err != nil {
		err = protocolErrorf("message of stream %s: %v", m.stream.id, err)
	}
	return out, err
}

// All ranges over the messages until the stream's end, which is no error, or until an error.
func (m *Messages[T, P]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := m.Next(ctx)
			if err == io.EOF || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the stream as Stream.Close does.
func (m *Messages[T, P]) Close() error { return m.stream.Close() }

// Subscribe opens a subscription and returns once it is live: whatever is published afterwards
// arrives (kernel-ipc §4.18). It sets Ack, so the server must know that extension. Where it does
// not know EventPatterns, the error is ErrNoPatterns.
func (c *Conn) Subscribe(ctx context.Context, in Subscribe) (*Subscription, error) {
	in.Ack = true
	var ack Event
	var payload struct {
		SubscriberID  string   `json:"subscriber_id"`
		EventPatterns []string `json:"event_patterns"`
	}
	stream, err := c.open(ctx, "Subscribe", &in, &ack, func() bool {
		return ack.EventType == eventSubscribed && json.Unmarshal([]byte(ack.Payload), &payload) == nil
	})
	switch patterns := len(in.EventPatterns) > 0; {
	case err != nil && patterns && len(in.EventTypes) == 0 && isMissingTypes(err):
		return nil, ErrNoPatterns
	case err != nil:
		return nil, err
	case patterns && len(payload.EventPatterns) == 0:
		if stream.discard() {
			c.unsubscribe(stream.id)
		}
		return nil, ErrNoPatterns
	}
	return &Subscription{stream, payload.SubscriberID, in.EventTypes}, nil
}

// isMissingTypes reports whether err is the refusal, by a server that knows no patterns, of a
// request that has nothing else.
func isMissingTypes(err error) bool {
	var said *Error
	return errors.As(err, &said) && said.Code == wire.InvalidArgument && strings.HasPrefix(said.Message, "event_types is required")
}

// Gap reports whether e marks missing events, and how many (kernel-ipc §4.18).
func Gap(e *Event) (dropped int64, ok bool) {
	if e.EventType != eventGap {
		return 0, false
	}
	var payload struct {
		Dropped int64 `json:"dropped"`
	}
	_ = json.Unmarshal([]byte(e.Payload), &payload) // an unreadable count is 0
	return payload.Dropped, true
}

// RegisterCommandHandler takes over command types and returns once the server has registered them
// (kernel-ipc §4.20).
func (c *Conn) RegisterCommandHandler(ctx context.Context, in RegisterCommandHandler) (*CommandHandler, error) {
	return register[Command](ctx, c, "RegisterCommandHandler", &in)
}

// RegisterQueryHandler takes over query types and returns once the server has registered them
// (kernel-ipc §4.20).
func (c *Conn) RegisterQueryHandler(ctx context.Context, in RegisterQueryHandler) (*QueryHandler, error) {
	return register[QueryCall](ctx, c, "RegisterQueryHandler", &in)
}

func register[T any, P decoder[T]](ctx context.Context, c *Conn, method string, in msgp.Marshaler) (*Messages[T, P], error) {
	var first Registered
	stream, err := c.open(ctx, method, in, &first, func() bool { return len(first.Registered) > 0 })
	if err != nil {
		return nil, err
	}
	return &Messages[T, P]{stream, first.HandlerID, first.Registered}, nil
}

// open opens a stream and decodes its first message, which shows that the stream is live. It closes
// the stream on an error.
func (c *Conn) open(
	ctx context.Context, method string, in msgp.Marshaler, out msgp.Unmarshaler, valid func() bool,
) (*Stream, error) {
	body, err := encode(in)
	if err != nil {
		return nil, err
	}
	stream, err := c.Stream(ctx, busService, method, body)
	if err != nil {
		return nil, err
	}
	first, err := stream.Next(ctx)
	if err == nil {
		if _, err = out.UnmarshalMsg(first); err != nil || !valid() {
			err = protocolErrorf("first message of %s.%s: %v", busService, method, err)
		}
	}
	if err != nil {
		if stream.discard() {
			c.unsubscribe(stream.id)
		}
		return nil, err
	}
	return stream, nil
}
