package exactaclient

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Pauses between attempts to connect again: they double from the first to the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// Follower gets all events of a project, over as many connections as that takes (exacta §2.5). It
// is for one goroutine.
type Follower struct {
	Dial    func(context.Context) (*Conn, error)
	Project string
	Session string        // of the server; another one has other events
	After   uint64        // stream_seq of the last event that is known
	Within  time.Duration // how long connecting again may take
	Lost    func(error)   // called when a connection is lost; may be nil

	// Reopen opens the project in a server of another session, and sets Project, Session and After.
	// Nil: that session is an error.
	Reopen func(context.Context, *Conn) error

	Conn *Conn // to begin with, all events behind After follow on it; nil: one is made
}

// Close ends the connection, if there is one.
func (f *Follower) Close() {
	if f.Conn != nil {
		f.Conn.Close()
	}
	f.Conn = nil
}

// Next returns the next event: each one once, and none is left out. A lost connection is made
// again, for at most Within; its loss is the error then. All other errors are final: a server that
// does not have the events any more is IPC-007, one that was restarted, without Reopen,
// or does not have the project open is ST-003.
func (f *Follower) Next(ctx context.Context) (*Message, error) {
	for {
		m, err := f.event(ctx)
		if err == nil {
			f.After = max(f.After, m.StreamSeq)
			return m, nil
		}
		if !isLost(err) {
			return nil, err
		}
		f.Close()
		if f.Lost != nil {
			f.Lost(err)
		}
		if err := f.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// isLost reports whether connecting again may help.
func isLost(err error) bool {
	var conn *ConnError
	var answer *Error
	return errors.As(err, &conn) || errors.As(err, &answer) && answer.Code == "RES-004"
}

// event returns the next event of the connection, which is made if there is none.
func (f *Follower) event(ctx context.Context) (*Message, error) {
	if f.Conn == nil {
		if err := f.connect(ctx); err != nil {
			return nil, err
		}
	}
	for {
		m, err := f.Conn.Next(ctx)
		if err != nil || m.Kind == Event && m.Project == f.Project {
			return m, err
		}
	}
}

// again makes a connection in the place of one that was lost.
func (f *Follower) again(ctx context.Context, lost error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.Within, lost)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.connect(ctx); !isLost(err) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
}

// connect connects and subscribes.
func (f *Follower) connect(ctx context.Context) error {
	conn, err := f.Dial(ctx)
	if err != nil {
		return err
	}
	err = f.subscribe(ctx, conn)
	if gone := (*Error)(nil); f.Reopen != nil && errors.As(err, &gone) && gone.Code == "ST-003" && strings.HasPrefix(gone.Detail, "session_id") {
		if err = f.Reopen(ctx, conn); err == nil {
			err = f.subscribe(ctx, conn)
		}
	}
	if err != nil {
		conn.Close()
		return err
	}
	f.Conn = conn
	return nil
}

func (f *Follower) subscribe(ctx context.Context, conn *Conn) error {
	id, err := conn.Subscribe(ctx, f.Project, f.Session, &f.After)
	if err == nil {
		_, err = conn.Await(ctx, id, nil)
	}
	return err
}

// Limits of an order. More projects than a server opens by default are not looked after, and
// correlations beyond the last ones are forgotten.
const (
	maxProjects     = 32
	maxCorrelations = 256
)

// order finds missing events (exacta §3.4).
type order struct {
	next map[string]uint64 // of a project whose events all come: the next stream_seq
	last map[string]uint64 // of a correlation: the last seq
	ring [maxCorrelations]string
	at   int
}

// follow notes that all events of a project come from a stream_seq on. They may be ones that came
// before.
func (o *order) follow(project string, next uint64) {
	if o.next == nil {
		o.next = make(map[string]uint64)
	}
	if _, known := o.next[project]; known || len(o.next) < maxProjects {
		o.next[project] = next
	}
	clear(o.last)
	o.ring, o.at = [maxCorrelations]string{}, 0
}

// forget notes that a project was closed.
func (o *order) forget(project string) { delete(o.next, project) }

// check takes an event: IPC-007 if one is missing before it, or if it comes again. The events of a
// project that is not followed may have gaps.
func (o *order) check(m *Message) *Error {
	next, followed := o.next[m.Project]
	if followed && m.StreamSeq != 0 {
		if m.StreamSeq != next {
			return gap("stream_seq", m.StreamSeq, next)
		}
		o.next[m.Project]++
	}
	if m.Seq == 0 || m.Correlation == "" {
		return nil
	}
	last, known := o.last[m.Correlation]
	if known && (m.Seq <= last || followed && m.Seq != last+1) {
		return gap("seq", m.Seq, last+1)
	}
	if !known {
		o.remember(m.Correlation)
	}
	o.last[m.Correlation] = m.Seq
	return nil
}

// remember makes room for a correlation in the place of the oldest one.
func (o *order) remember(correlation string) {
	if o.last == nil {
		o.last = make(map[string]uint64)
	}
	delete(o.last, o.ring[o.at])
	o.ring[o.at] = correlation
	o.at = (o.at + 1) % maxCorrelations
}

func gap(what string, got, want uint64) *Error {
	return local("IPC-007", what+" "+strconv.FormatUint(got, 10)+" in the place of "+strconv.FormatUint(want, 10))
}
