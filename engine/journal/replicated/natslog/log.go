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
	partSubject    = "log.part"
	setSubject     = "set."
	noSubject      = "log.none" // no message has it
)

// Headers that hold a replicated.Message. Parts is left out where it is 0, and Sent where Owner is:
// it is Owner, a dot and Sent in nanoseconds.
const (
	firstHeader = "First"
	partsHeader = "Parts"
	sentHeader  = "Sent"
)

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
	// notAvailable is the answer while there is no leader.
	notAvailable = 10008
	// noPeers is the answer of a leader that does not see enough servers, as right after a start.
	noPeers = 10005
	// The answers of an account and of servers that may store no more, and of a store that failed.
	accountFull  = 10002
	serverFull   = 10023
	storageFull  = 10047
	storeFailing = 10077
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

// Close ends what waits for answers to appends. The connection stays.
func (l *Log) Close() { l.js.CleanupPublisher() }

// Append implements replicated.Stream. Several messages are a batch, which the server stores whole.
func (l *Log) Append(a *replicated.Append) (wait func() replicated.Outcome) {
	messages, err := l.messages(a)
	if err != nil {
		return always(fmt.Errorf("%w: %w", replicated.ErrNotStored, err))
	}
	head, last := messages[0], len(messages)-1
	head.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(a.After, 10))
	head.Header.Set(jetstream.MsgIDHeader, a.ID)
	if last > 0 {
		batch := nuid.Next()
		for i, m := range messages {
			m.Header.Set(batchID, batch)
			m.Header.Set(batchSeq, strconv.Itoa(i+1))
		}
		messages[last].Header.Set(batchCommit, "1")
	}
	for _, m := range messages[:last] {
		if err := l.cfg.Conn.PublishMsg(m); err != nil {
			return always(err)
		}
	}
	answer, err := l.js.PublishMsgAsync(messages[last], jetstream.WithRetryAttempts(0))
	if err != nil {
		return always(err)
	}
	seq := a.Last()
	return func() replicated.Outcome {
		select {
		case ack := <-answer.Ok():
			return replicated.Outcome{Seq: ack.Sequence}
		case err := <-answer.Err():
			return outcome(err, seq)
		}
	}
}

// messages returns the messages of an append, in order.
func (l *Log) messages(a *replicated.Append) (out []*nats.Msg, err error) {
	add := func(subject string, first uint64, data []byte) *nats.Msg {
		m := nats.NewMsg(l.root + subject)
		m.Header.Set(firstHeader, strconv.FormatUint(first, 10))
		if m.Data = data; len(data) > l.maxData() {
			err = fmt.Errorf("a message of %d bytes, and the servers take %d", len(data), l.maxData())
		}
		out = append(out, m)
		return m
	}
	for range a.Marks {
		add(markSubject, a.MarksFirst, nil)
	}
	subject := subjectOf(a.Kind)
	if subject == "" {
		return nil, fmt.Errorf("a message of kind %d", a.Kind)
	}
	m := add(subject, a.First, a.Data)
	if a.Parts > 0 {
		m.Header.Set(partsHeader, strconv.Itoa(a.Parts))
	}
	if a.Owner != 0 {
		m.Header.Set(sentHeader, strconv.FormatUint(a.Owner, 10)+"."+strconv.FormatInt(int64(a.Sent), 10))
	}
	for _, part := range a.Rest {
		add(partSubject, a.First, part)
	}
	return out, err
}

// subjectOf returns the subject of messages of a kind, behind the name of the log.
func subjectOf(k replicated.Kind) string {
	switch k {
	case replicated.KindBlock:
		return blockSubject
	case replicated.KindControl:
		return controlSubject
	case replicated.KindMark:
		return markSubject
	case replicated.KindPart:
		return partSubject
	}
	return ""
}

// maxData returns how long the data of a message may be.
func (l *Log) maxData() int { return int(l.cfg.Conn.MaxPayload()) - maxHeader }

// maxHeader bounds the headers of a message.
const maxHeader = 512

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
		case accountFull, serverFull, storageFull, storeFailing:
			err = fmt.Errorf("%w: %w", replicated.ErrNoRoom, err)
		}
	}
	return replicated.Outcome{Err: err}
}

// decode makes a message of what a server gave.
func (l *Log) decode(seq uint64, subject string, header nats.Header, data []byte) (*replicated.Message, error) {
	m := &replicated.Message{Seq: seq, Data: data}
	for k := replicated.KindBlock; k <= replicated.KindPart; k++ {
		if subject == l.root+subjectOf(k) {
			m.Kind = k
		}
	}
	var err, failed error
	m.First, err = strconv.ParseUint(header.Get(firstHeader), 10, 64)
	if parts := header.Get(partsHeader); parts != "" {
		m.Parts, failed = strconv.Atoi(parts)
	}
	m.Owner, m.Sent = sentOf(header.Get(sentHeader))
	if m.Kind == 0 || err != nil || failed != nil || m.Parts < 0 {
		return nil, fmt.Errorf("message %d of stream %s is not of a journal: subject %q, headers %v", seq, l.cfg.Name, subject, header)
	}
	return m, nil
}

// sentOf parses a Sent header. What is none counts as not known.
func sentOf(text string) (owner uint64, sent time.Duration) {
	fence, ns, _ := strings.Cut(text, ".")
	owner, err := strconv.ParseUint(fence, 10, 64)
	n, failed := strconv.ParseInt(ns, 10, 64)
	if err != nil || failed != nil {
		return 0, 0
	}
	return owner, time.Duration(n)
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
		m, err := askLarge(ctx, l.cfg.AnswerWithin, func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return l.log.GetMsg(ctx, seq) }, l.askSmall)
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
	// Servers answer an end of it only while they have a leader, and forget an idle one themselves:
	// a node that is to take the log over does not wait for that.
	defer func() { go func() { _ = sub.Unsubscribe() }() }()
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
	info, err := ask(ctx, l.cfg.AnswerWithin, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		info, err := l.log.Info(ctx)
		if err == nil && info.Cluster != nil && info.Cluster.Leader == "" {
			err = errLeaderless
		}
		return info, err
	})
	if err != nil {
		return replicated.State{}, err
	}
	st := replicated.State{First: max(info.State.FirstSeq, 1), Last: info.State.LastSeq, Deleted: info.State.NumDeleted, MaxData: l.maxData()}
	m, err := ask(ctx, l.cfg.AnswerWithin, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return l.log.GetLastMsgForSubject(ctx, l.root+controlSubject)
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return st, nil
	}
	if err == nil {
		st.Control, err = l.decode(m.Sequence, m.Subject, m.Header, m.Data)
	}
	return st, err
}
