package client

import (
	"context"
	"errors"
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
