package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
)

// Local is what one process keeps of streams, whatever the others have.
type Local interface {
	// Held returns the first and the last sequence, and how many messages between them are not
	// there.
	Held(stream string) (first, last uint64, deleted int, err error)
	// Load returns one message, which the caller keeps.
	Load(stream string, seq uint64) (subject string, header, data []byte, err error)
}

// replica is a replicated.Replica.
type replica struct{ *Log }

// Replica returns what this process keeps of the log, nil where it keeps nothing.
func (l *Log) Replica() replicated.Replica {
	if l.cfg.Local == nil {
		return nil
	}
	return replica{l}
}

// Held implements replicated.Replica.
func (r replica) Held() (replicated.State, error) {
	first, last, deleted, err := r.cfg.Local.Held(r.cfg.Name)
	return replicated.State{First: max(first, 1), Last: last, Deleted: deleted}, err
}

// Load implements replicated.Replica.
func (r replica) Load(seq uint64, f func(m *replicated.Message) error) error {
	subject, text, data, err := r.cfg.Local.Load(r.cfg.Name, seq)
	if err != nil {
		return err
	}
	header, err := nats.DecodeHeadersMsg(text)
	if err != nil {
		return fmt.Errorf("cannot read the headers of message %d: %w", seq, err)
	}
	m, err := r.decode(seq, subject, header, data)
	if err != nil {
		return &journal.DamageError{Where: fmt.Sprintf("message %d of the stream", seq), Err: err}
	}
	return f(m)
}

// Keeper is a server that keeps the log.
type Keeper struct {
	Server string
	// Leads: it answers for the log, and for the chunks where it leads those.
	Leads bool
	// Current: it is there and has all messages of both streams.
	Current bool
}

// Keepers returns the servers that keep the log, as its leader sees them.
func (l *Log) Keepers(ctx context.Context) ([]Keeper, error) {
	log, err := l.log.Info(ctx)
	if err != nil {
		return nil, err
	}
	chunks, err := l.chunks.Info(ctx)
	if err != nil {
		return nil, err
	}
	if log.Cluster == nil || chunks.Cluster == nil || log.Cluster.Leader == "" {
		return nil, errors.New("the stream has no leader")
	}
	behind := make(map[string]bool)
	for _, r := range append(log.Cluster.Replicas, chunks.Cluster.Replicas...) {
		behind[r.Name] = behind[r.Name] || r.Offline || !r.Current
	}
	out := []Keeper{{Server: log.Cluster.Leader, Leads: true, Current: !behind[log.Cluster.Leader]}}
	for _, r := range log.Cluster.Replicas {
		out = append(out, Keeper{Server: r.Name, Current: !behind[r.Name]})
	}
	return out, nil
}

// Lead asks the leaders of both streams to step down in favour of a server, unless that one leads
// already. It returns when they have agreed, which is before that one leads.
func (l *Log) Lead(ctx context.Context, server string) error {
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": server}})
	if err != nil {
		return err
	}
	for _, s := range []jetstream.Stream{l.log, l.chunks} {
		info, err := s.Info(ctx)
		if err == nil && (info.Cluster == nil || info.Cluster.Leader != server) {
			err = l.stepDown(ctx, info.Config.Name, ask)
		}
		if err != nil {
			return fmt.Errorf("cannot have %s lead the streams: %w", server, err)
		}
	}
	return nil
}

// stepDown asks the leader of a stream to step down.
func (l *Log) stepDown(ctx context.Context, stream string, ask []byte) error {
	within, cancel := context.WithTimeout(ctx, l.cfg.AnswerWithin)
	defer cancel()
	m, err := l.cfg.Conn.RequestWithContext(within, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, ask)
	if err != nil {
		return err
	}
	var answer struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err = json.Unmarshal(m.Data, &answer); err == nil && answer.Error != nil {
		err = errors.New(answer.Error.Description)
	}
	return err
}
