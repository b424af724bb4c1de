package storesocket

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrNoServer means that no server answers in the directory of a store.
var ErrNoServer = errors.New("no server answers there")

// errEnded is why the context of a Lease ends before Close.
var errEnded = errors.New("the server ended, or took its checkpoint back")

// maxAnswer bounds the line of a server: a path and an error.
const maxAnswer = 64 << 10

// removeWithin is how long the end of a Lease waits for the server.
const removeWithin = 10 * time.Second

// Lease is a checkpoint that is there until Close.
type Lease struct {
	Checkpoint
	conn   net.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// Ask has the server that has a store open make a checkpoint of it, and waits for that until ctx
// ends. It returns an error that is ErrNoServer where nothing answers.
func Ask(ctx context.Context, store string) (*Lease, error) {
	path, done, err := address(store)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the server of %s: %w: %w", store, ErrNoServer, err)
	}
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the server of %s: %w: %w", store, ErrNoServer, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	made, in, err := exchange(conn)
	if stop(); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("cannot get a checkpoint from the server of %s: %w", store, err)
	}
	l := &Lease{Checkpoint: made, conn: conn, ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(l.ended)
		_, _ = in.ReadByte() // the server writes no more: it ends, or Close does
		l.cancel(errEnded)
	}()
	return l, nil
}

func exchange(conn net.Conn) (c Checkpoint, in *bufio.Reader, err error) {
	// A server that has too many clients answers without reading: a write may fail then.
	_, unsent := io.WriteString(conn, request)
	in = bufio.NewReaderSize(conn, maxAnswer)
	text, err := in.ReadSlice('\n')
	if err != nil {
		return c, nil, fmt.Errorf("no answer: %w", cmp.Or(unsent, err))
	}
	var a answer
	if err = json.Unmarshal(text, &a); err != nil {
		return c, nil, fmt.Errorf("cannot read the answer: %w", err)
	}
	if a.Error != "" {
		return c, nil, errors.New(a.Error)
	}
	return a.Checkpoint, in, nil
}

// Context ends when the checkpoint does, for a cause that context.Cause returns.
func (l *Lease) Context() context.Context { return l.ctx }

// Close gives the checkpoint back and returns when the server has removed it, or does not answer.
func (l *Lease) Close() {
	l.cancel(nil)
	_ = l.conn.SetReadDeadline(time.Now().Add(removeWithin))
	_ = l.conn.(*net.UnixConn).CloseWrite()
	<-l.ended
	_ = l.conn.Close()
}
