package client

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"trunkline/codec/frame"
)

// closeWithin bounds how long Stream.Close waits for the server's confirmation.
const closeWithin = 5 * time.Second

// Stream is the client's end of a server stream (kernel-ipc §3.6). One goroutine consumes it; Close may come from any.
type Stream struct {
	c  *Conn
	id string

	news chan struct{} // one slot, for the consumer: queue or end changed
	room chan struct{} // one slot, for the reader: the queue has room or the stream has ended

	mu    sync.Mutex // guards what follows
	queue [][]byte
	bytes int
	end   error // why nothing more will come, once known
}

// Stream opens a stream. It returns once the request is queued: nothing is sent by the server for a plain Subscribe before
// its first event, so a refused opening shows as an *Error from the first Next. Opening a method that answers once gives that
// answer as the only message.
func (c *Conn) Stream(ctx context.Context, service, method string, body []byte) (*Stream, error) {
	s := &Stream{c: c, news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	_, err := c.send(ctx, service, method, body, func(id string) {
		s.id = id
		c.streams[id] = s
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ID returns the stream's request id, which names it on its connection.
func (s *Stream) ID() string { return s.id }

// Next returns the next message's body, which belongs to the caller, and waits for it. After the last one it returns io.EOF
// when the server ended the stream, its *Error when it refused or evicted it, a *ConnError when the connection is gone, or
// ErrStreamClosed after Close. A ctx that ends does not hurt the stream.
func (s *Stream) Next(ctx context.Context) ([]byte, error) {
	for {
		if body, err, ok := s.pop(); ok {
			return body, err
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// All ranges over the messages until the stream's end, which is not reported as an error, or until one is.
func (s *Stream) All(ctx context.Context) iter.Seq2[[]byte, error] { return all(ctx, s.Next) }

// all turns a Next method into a sequence; io.EOF ends it without an error.
func all[T any](ctx context.Context, next func(context.Context) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := next(ctx)
			if err == io.EOF {
				return
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the stream by commbus.Unsubscribe and waits for the server's confirmation, so that another stream may take its
// place; messages not yet taken are dropped. On a stream that has ended already it does nothing and returns nil.
func (s *Stream) Close() error {
	if !s.forget() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_, err := s.c.Call(ctx, busService, "Unsubscribe", unsubscribe(s.id))
	return err
}

// abandon is Close without waiting.
func (s *Stream) abandon() {
	if s.forget() {
		s.c.post(busService, "Unsubscribe", unsubscribe(s.id))
	}
}

// forget makes the connection drop whatever still comes for the stream and reports whether it was still open.
func (s *Stream) forget() (open bool) {
	open = s.discard()
	s.c.mu.Lock()
	delete(s.c.streams, s.id)
	s.c.mu.Unlock()
	return open
}

// unsubscribe returns the request body that ends the stream with an id.
func unsubscribe(id string) []byte {
	body, _ := (&Unsubscribe{StreamID: id}).MarshalMsg(nil) // a string cannot fail
	return body
}

// discard drops the queue and reports whether the stream was still open.
func (s *Stream) discard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.end == nil
	s.queue, s.bytes, s.end = nil, 0, ErrStreamClosed
	signal(s.news)
	signal(s.room)
	return open
}

// take is called by the reader with each frame of the stream.
func (s *Stream) take(m incoming) {
	switch m.kind {
	case frame.StreamChunk:
		s.push(m.body)
	case frame.Response:
		s.push(m.body)
		s.finish(io.EOF)
	case frame.StreamEnd:
		s.finish(io.EOF)
	case frame.Error:
		s.finish(m.err)
	}
}

// push waits for room; that is the back-pressure of the whole connection.
func (s *Stream) push(body []byte) {
	for !s.tryPush(body) {
		select {
		case <-s.room:
		case <-s.c.done:
			return
		}
	}
}

func (s *Stream) tryPush(body []byte) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return true
	}
	o := &s.c.opts
	if len(s.queue) > 0 && (len(s.queue) >= o.streamMessages || s.bytes+len(body) > o.streamBytes) {
		return false
	}
	s.queue = append(s.queue, body)
	s.bytes += len(body)
	signal(s.news)
	return true
}

func (s *Stream) pop() (body []byte, err error, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, s.end, s.end != nil
	}
	body = s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.bytes -= len(body)
	signal(s.room)
	return body, nil, true
}

// finish sets the first reason why nothing more will come.
func (s *Stream) finish(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = reason
	}
	signal(s.news)
}
