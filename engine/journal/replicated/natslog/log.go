package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"trunkline/engine/journal/replicated"
)

// Subjects, behind the name of the log. The last word of a message of the log is its kind.
const (
	logSubjects    = "log.*"
	blockSubject   = "log.block"
	controlSubject = "log.control"
	markSubject    = "log.mark"
	setSubject     = "set."
)

// firstHeader holds replicated.Message.First.
const firstHeader = "First"

// Headers that tie messages together, and that the client has no names for.
const (
	batchID     = "Nats-Batch-Id"
	batchSeq    = "Nats-Batch-Sequence"
	batchCommit = "Nats-Batch-Commit"
)

// Codes of errors of the server.
const (
	// wrongLastSequence is the only one that leaves no doubt.
	wrongLastSequence = 10071
	// containsDuplicate is the answer to a batch that was stored before.
	containsDuplicate = 10201
)

const (
	// fewMessages are read one by one, from the leader: that needs no other node, which a node that
	// takes the log over may have to wait for.
	fewMessages = 64
	// heartbeat is how often a server that has nothing to show shows that it is there. A read goes
	// on with another server when it misses two.
	heartbeat = time.Second
)

// Log is a replicated.Stream and a replicated.Chunks on two streams of JetStream.
type Log struct {
	cfg    Config
	root   string
	js     jetstream.JetStream
	push   nats.JetStreamContext
	log    jetstream.Stream
	chunks jetstream.Stream
}

// Append implements replicated.Stream.
func (l *Log) Append(a *replicated.Append) (wait func() replicated.Outcome) {
	if size, most := int64(len(a.Data)+maxHeader), l.cfg.Conn.MaxPayload(); size > most {
		return always(fmt.Errorf("%w: it has %d bytes, and the servers take %d", replicated.ErrNotStored, size, most))
	}
	subject, err := l.subject(a.Kind)
	if err != nil {
		return always(fmt.Errorf("%w: %w", replicated.ErrNotStored, err))
	}
	m := message(subject, a.First, a.Data)
	if a.Marks > 0 {
		batch := nuid.Next()
		m.Header.Set(batchID, batch)
		m.Header.Set(batchSeq, strconv.Itoa(a.Marks+1))
		m.Header.Set(batchCommit, "1")
		for i := range a.Marks {
			mark := message(l.root+markSubject, a.MarksFirst, nil)
			mark.Header.Set(batchID, batch)
			mark.Header.Set(batchSeq, strconv.Itoa(i+1))
			if i == 0 {
				condition(mark, a)
			}
			if err := l.cfg.Conn.PublishMsg(mark); err != nil {
				return always(err)
			}
		}
	} else {
		condition(m, a)
	}
	answer, err := l.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return always(err)
	}
	seq := a.After + uint64(a.Marks) + 1
	return func() replicated.Outcome {
		select {
		case ack := <-answer.Ok():
			return replicated.Outcome{Seq: ack.Sequence}
		case err := <-answer.Err():
			return outcome(err, seq)
		}
	}
}

// maxHeader bounds the headers of a message.
const maxHeader = 512

func message(subject string, first uint64, data []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set(firstHeader, strconv.FormatUint(first, 10))
	m.Data = data
	return m
}

// condition ties a message, with all that are stored together with it, to the end of the stream.
func condition(m *nats.Msg, a *replicated.Append) {
	m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(a.After, 10))
	m.Header.Set(jetstream.MsgIDHeader, a.ID)
}

// always returns the answer of a message that was not sent.
func always(err error) func() replicated.Outcome {
	return func() replicated.Outcome { return replicated.Outcome{Err: err} }
}

// outcome returns what an error of the server stands for; seq is where the message would be.
func outcome(err error, seq uint64) replicated.Outcome {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode {
		case wrongLastSequence:
			err = fmt.Errorf("%w: %w", replicated.ErrNotStored, err)
		case containsDuplicate: // an id is only ever sent with one sequence
			return replicated.Outcome{Seq: seq}
		}
	}
	return replicated.Outcome{Err: err}
}

func (l *Log) subject(k replicated.Kind) (string, error) {
	switch k {
	case replicated.KindBlock:
		return l.root + blockSubject, nil
	case replicated.KindControl:
		return l.root + controlSubject, nil
	case replicated.KindMark:
		return l.root + markSubject, nil
	}
	return "", fmt.Errorf("a message of kind %d", k)
}

// decode makes a message of what a server gave.
func (l *Log) decode(seq uint64, subject string, header nats.Header, data []byte) (*replicated.Message, error) {
	m := &replicated.Message{Seq: seq, Data: data}
	switch strings.TrimPrefix(subject, l.root) {
	case blockSubject:
		m.Kind = replicated.KindBlock
	case controlSubject:
		m.Kind = replicated.KindControl
	case markSubject:
		m.Kind = replicated.KindMark
	}
	first, err := strconv.ParseUint(header.Get(firstHeader), 10, 64)
	if m.Kind == 0 || err != nil {
		return nil, fmt.Errorf("message %d of stream %s is not of a journal: subject %q, first index %q", seq, l.cfg.Name, subject, header.Get(firstHeader))
	}
	m.First = first
	return m, nil
}

// Read implements replicated.Stream.
func (l *Log) Read(ctx context.Context, from, to uint64, f func(m *replicated.Message) error) error {
	if to-from >= fewMessages {
		return l.each(ctx, "", to == replicated.Forever, func(seq uint64, m *nats.Msg) (bool, error) {
			if seq > to {
				return true, nil
			}
			d, err := l.decode(seq, m.Subject, m.Header, m.Data)
			if err == nil {
				err = f(d)
			}
			return seq == to, err
		}, nats.BindStream(l.cfg.Name), nats.StartSequence(from))
	}
	for seq := from; seq <= to; seq++ {
		m, err := l.log.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		d, err := l.decode(m.Sequence, m.Subject, m.Header, m.Data)
		if err != nil {
			return err
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with messages of a stream, until it reports that it has seen the last one. Without
// forever it waits for each message as long as an answer may take. The consumer is one that the
// server pushes to: one that is asked loses the first question where its node does not know it yet.
func (l *Log) each(ctx context.Context, subject string, forever bool, f func(seq uint64, m *nats.Msg) (last bool, err error), opts ...nats.SubOpt) error {
	sub, err := l.push.SubscribeSync(subject, append(opts, nats.OrderedConsumer(), nats.IdleHeartbeat(heartbeat), nats.Context(ctx))...)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()             // the server forgets the consumer at the latest when it is idle
	if err := sub.SetPendingLimits(-1, -1); err != nil { // the server sends no more than was taken
		return err
	}
	for {
		wait, cancel := ctx, func() {}
		if !forever {
			wait, cancel = context.WithTimeout(ctx, l.cfg.AnswerWithin)
		}
		m, err := sub.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if last, err := f(meta.Sequence.Stream, m); last || err != nil {
			return err
		}
	}
}

// Purge implements replicated.Stream.
func (l *Log) Purge(ctx context.Context, below uint64) error {
	return l.log.Purge(ctx, jetstream.WithPurgeSequence(below))
}

// State implements replicated.Stream. It asks for the end of the stream first: the control message
// may be behind that, and is not before it.
func (l *Log) State(ctx context.Context) (replicated.State, error) {
	info, err := l.log.Info(ctx)
	if err != nil {
		return replicated.State{}, err
	}
	st := replicated.State{First: max(info.State.FirstSeq, 1), Last: info.State.LastSeq, Deleted: info.State.NumDeleted}
	m, err := l.log.GetLastMsgForSubject(ctx, l.root+controlSubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return st, nil
	}
	if err == nil {
		st.Control, err = l.decode(m.Sequence, m.Subject, m.Header, m.Data)
	}
	return st, err
}
