package natslog

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Put implements replicated.Chunks. The client may send a chunk again: the servers know it by its
// id.
func (l *Log) Put(ctx context.Context, set string, chunk []byte) error {
	_, err := l.js.Publish(ctx, l.root+setSubject+set, chunk, jetstream.WithMsgID(nuid.Next()))
	return err
}

// Get implements replicated.Chunks.
func (l *Log) Get(ctx context.Context, set string, n uint32, f func(chunk []byte) error) error {
	if n == 0 {
		return nil
	}
	seen := uint32(0)
	err := l.each(ctx, l.root+setSubject+set, false, func(_ uint64, m *nats.Msg) (bool, error) {
		seen++
		return seen == n, f(m.Data)
	}, nats.BindStream(l.chunksConfig().Name), nats.DeliverAll())
	if err != nil && seen < n {
		return fmt.Errorf("after %d of %d chunks of set %s: %w", seen, n, set, err)
	}
	return err
}

// Sets implements replicated.Chunks.
func (l *Log) Sets(ctx context.Context) ([]string, error) {
	info, err := l.chunks.Info(ctx, jetstream.WithSubjectFilter(l.root+setSubject+"*"))
	if err != nil {
		return nil, err
	}
	sets := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		sets = append(sets, strings.TrimPrefix(subject, l.root+setSubject))
	}
	return sets, nil
}

// Drop implements replicated.Chunks.
func (l *Log) Drop(ctx context.Context, set string) error {
	return l.chunks.Purge(ctx, jetstream.WithPurgeSubject(l.root+setSubject+set))
}
