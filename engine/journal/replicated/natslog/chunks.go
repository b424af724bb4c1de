package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// chunkHeader holds the number of a chunk in its set.
const chunkHeader = "Chunk"

// Put implements replicated.Chunks. The client may send a chunk again: the servers know it by its
// id.
func (l *Log) Put(ctx context.Context, set string, n uint32, chunk []byte) error {
	m := nats.NewMsg(l.root + setSubject + set)
	m.Header.Set(chunkHeader, strconv.FormatUint(uint64(n), 10))
	m.Data = chunk
	_, err := l.js.PublishMsg(ctx, m, jetstream.WithMsgID(fmt.Sprintf("%s.%d", set, n)))
	return err
}

// Get implements replicated.Chunks. What the replica that shows the set has lost is asked for from
// the leader, one by one.
func (l *Log) Get(ctx context.Context, set string, n uint32, f func(chunk []byte) error) error {
	if n == 0 {
		return nil
	}
	subject := l.root + setSubject + set
	m, err := l.chunks.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && number(m.Header) < int(n)-1 {
		return fmt.Errorf("set %s has fewer than %d chunks", set, n)
	}
	if err != nil {
		return err
	}
	next, after := 0, uint64(0) // the number of the next chunk, and the sequence of the last one
	var failed error
	// An error of the consumer leaves the rest to the leader.
	_ = l.each(ctx, subject, false, func(seq uint64, m *nats.Msg) (bool, error) {
		if number(m.Header) != next {
			return true, nil
		}
		failed = f(m.Data)
		next, after = next+1, seq
		return next == int(n), failed
	}, nats.BindStream(l.chunksConfig().Name), nats.DeliverAll())
	if failed != nil {
		return failed
	}
	for ; next < int(n); next++ {
		m, err := l.chunks.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(subject))
		if err != nil {
			return fmt.Errorf("chunk %d of set %s: %w", next, set, err)
		}
		if number(m.Header) != next {
			return fmt.Errorf("chunk %d of set %s is missing", next, set)
		}
		if err := f(m.Data); err != nil {
			return err
		}
		after = m.Sequence
	}
	return nil
}

// number returns the number of a chunk, -1 for none.
func number(h nats.Header) int {
	n, err := strconv.ParseUint(h.Get(chunkHeader), 10, 32)
	if err != nil {
		return -1
	}
	return int(n)
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
