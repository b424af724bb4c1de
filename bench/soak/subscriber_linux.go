package main

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"trunkline/bench/internal/load"
)

// subscriber takes every event of the soak as fast as it can.
type subscriber struct {
	client *load.Client
	events atomic.Uint64
	gaps   atomic.Uint64
	done   chan struct{}
}

// subscribe opens the stream; the first chunk (ack) proves that it is live.
func subscribe(addr string) (*subscriber, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return nil, err
	}
	request := load.AppendRequest(nil, "soak-sub", "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}},
		load.Field{Key: "ack", Value: true})
	typ, payload, err := c.Exchange(request)
	if err == nil && typ != load.Chunk {
		err = fmt.Errorf("cannot subscribe: frame 0x%02X %q", typ, payload)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &subscriber{client: c, done: make(chan struct{})}, nil
}

// run counts chunks until the connection is closed.
func (s *subscriber) run() {
	defer close(s.done)
	for {
		typ, payload, err := s.client.Next()
		if err != nil {
			return
		}
		if typ == load.Chunk && bytes.Contains(payload, []byte("commbus.gap")) {
			s.gaps.Add(1)
			continue
		}
		s.events.Add(1)
	}
}

// stop closes the connection and waits for run.
func (s *subscriber) stop() {
	s.client.Close()
	<-s.done
}
