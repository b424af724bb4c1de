package ipcclient

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"trunkline/codec/frame"
)

// closeWithin bounds how long Stream.Close waits for the server's confirmation.
const closeWithin = 5 * time.Second

// Stream is the client's end of a server stream (kernel-ipc §3.6). One goroutine consumes it; any
// goroutine may close it.
type Stream struct {
	c  *Conn
	id string

	news chan struct{} // one slot, for the consumer: queue or end changed
	room chan struct{} // one slot, for the reader: the queue has room or the stream has ended

	mu    sync.Mutex // guards what follows
	queue [][]byte
	bytes int
	end   error // the reason for the end, once known
}

// Stream opens a stream. It returns once the request is queued, so a refused opening is an *Error
// of the first Next. The reply of a method that opens no stream is the only message.
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

// Next waits for the next message and returns its body, which belongs to the caller. After the last
// one it returns io.EOF when the server ended the stream, its *Error when it refused or evicted it,
// a *ConnError when the connection is gone, or ErrStreamClosed after Close. ctx bounds the wait.
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

// Close ends the stream by commbus.Unsubscribe and waits for the reply, so that another stream may
// take its place. Messages not yet taken are dropped. On a stream that has ended it does nothing.
func (s *Stream) Close() error {
	if !s.discard() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_, err := s.c.Call(ctx, busService, "Unsubscribe", unsubscribeBody(s.id))
	return err
}

// unsubscribeBody returns the request body that ends the stream with an id.
func unsubscribeBody(id string) []byte {
	body, _ := (&Unsubscribe{StreamID: id}).MarshalMsg(nil) // a string cannot fail
	return body
}

// discard drops the queue and further frames, and reports whether the stream was open.
func (s *Stream) discard() bool {
	s.c.forget(s.id)
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
	if m.body != nil {
		s.push(m.body)
	}
	switch m.kind {
	case frame.Response, frame.StreamEnd:
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

// finish sets the first reason for the end.
func (s *Stream) finish(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = cmp.Or(s.end, reason)
	signal(s.news)
}
