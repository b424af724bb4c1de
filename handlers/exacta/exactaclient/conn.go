// Package exactaclient is the caller's side of projects over lines (exacta §2.1, §3): one
// connection over TCP or a unix socket, requests matched by id, and the events between their
// answers.
//
//	conn, err := client.Dial(ctx, "unix:///run/projects.sock", client.Options{})
//	if err != nil { … }
//	defer conn.Close()
//	answer, err := conn.Ask(ctx, "OpenProject", payload, func(m *client.Message) error { … })
//
// # What is refused
//
// The server is not trusted to keep the protocol (exacta §6.5). Another major version is IPC-002, a
// line that is no message is IPC-001, an answer with neither or both of result and error, or of no
// request, is IPC-005, a missing event is IPC-007. Each of these ends the connection. Events that
// are not in the catalogue and fields that are unknown are ignored.
//
// # Errors
//
// *Error has a code: of the server's answer, or one of the above. *ConnError means that there is no
// connection, or none any more. Others are those of the context, after which the connection can be
// used further.
//
// # Goroutines
//
// A Conn has none, and is for one goroutine. Memory is bounded by the longest line, maxLine.
package exactaclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
	"trunkline/engine/projects/codec"
)

// Limits of a connection.
const (
	// maxLine is the longest line that is taken, in bytes: that of a server's max_message_bytes and
	// room for what the server adds to it.
	maxLine = 9 << 20
	// maxPending bounds the requests without an answer: what a server takes by default.
	maxPending = 64
	readBytes  = 64 << 10
	dialWithin = 10 * time.Second
)

// Options are how a connection is made.
type Options struct {
	Token string // sent first on TCP; empty: none
}

// Conn is one connection to a server of projects. It is for one goroutine.
type Conn struct {
	addr    string
	nc      net.Conn
	ids     *codec.Scope
	decoder decoder
	order   order
	pending map[string]pending
	failed  error // the connection has ended

	in      []byte // read and not used; the line that was returned last is before used
	used    int
	scanned int
}

// pending is a request without an answer.
type pending struct {
	command string // empty: a subscribe
	project string
	after   *uint64
}

// Dial connects to addr, which is host:port, unix:///path or the path of a socket, and shows the
// token. ctx bounds both.
func Dial(ctx context.Context, addr string, o Options) (*Conn, error) {
	network, target, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialWithin}
	nc, err := d.DialContext(ctx, network, target)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &ConnError{Addr: addr, Err: err, dialling: true}
	}
	c := New(nc, addr)
	if o.Token != "" && network == "tcp" {
		if err := c.authenticate(ctx, o.Token); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// New returns a connection over nc, which it owns. addr is for errors.
func New(nc net.Conn, addr string) *Conn {
	return &Conn{addr: addr, nc: nc, ids: codec.NewScope("", "client"), pending: make(map[string]pending)}
}

func splitAddr(addr string) (network, target string, err error) {
	path, isUnix := strings.CutPrefix(addr, "unix://")
	if isUnix || strings.HasPrefix(addr, "/") {
		if !strings.HasPrefix(path, "/") {
			return "", "", fmt.Errorf("cannot use address %q: the path of a socket must be absolute", addr)
		}
		return "unix", path, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return "", "", fmt.Errorf("cannot use address %q: want host:port or unix:///path", addr)
	}
	return "tcp", addr, nil
}

// Close ends the connection. What runs at the server goes on (exacta §2.6).
func (c *Conn) Close() { _ = c.nc.Close() }

// authenticate shows the token and waits until it is taken (exacta §2.1).
func (c *Conn) authenticate(ctx context.Context, token string) error {
	c.pending[""] = pending{}
	line := append(codec.AppendText([]byte(`{"type":"auth","token":`), token), "}\n"...)
	if err := c.write(ctx, line); err != nil {
		return err
	}
	m, err := c.Next(ctx)
	switch {
	case err != nil:
		return err
	case m.Err != nil:
		return m.Err
	case m.Kind != Ack:
		return c.fail(local("IPC-005", "not the answer of an auth"))
	}
	delete(c.pending, "")
	return nil
}

// Send sends a request (exacta §3.2) and returns its id; payload is the text of an object.
func (c *Conn) Send(ctx context.Context, command string, payload []byte) (id string, err error) {
	b := c.envelope("request")
	b = jsonx.Builder(codec.AppendText(b.Name("command"), command))
	return c.send(ctx, b.Raw("payload", payload), pending{command: command, project: projectOf(payload)})
}

// Subscribe asks for all events of a project behind a stream_seq, or from now on if after is nil
// (exacta §3.5). An empty session is any.
func (c *Conn) Subscribe(ctx context.Context, project, session string, after *uint64) (id string, err error) {
	b := c.envelope("subscribe").Text("project_id", project)
	if session != "" {
		b = b.Text("session_id", session)
	}
	if after != nil {
		b = b.Int("after_stream_seq", int64(*after))
	}
	return c.send(ctx, b, pending{project: project, after: after})
}

// projectOf returns the project that a payload names.
func projectOf(payload []byte) string {
	if !jsonx.Check(payload, maxDepth).OK() {
		return ""
	}
	return strings.ToLower(Object(payload).Text("project_id"))
}

// envelope begins a message.
func (c *Conn) envelope(kind string) jsonx.Builder {
	return jsonx.Build(nil).Text("ipc_version", "1.0").Text("type", kind)
}

// send completes a message and sends it.
func (c *Conn) send(ctx context.Context, b jsonx.Builder, p pending) (id string, err error) {
	if len(c.pending) >= maxPending {
		return "", fmt.Errorf("cannot send: %d requests have no answer", maxPending)
	}
	id = c.ids.Next(codec.EventID).String()
	line := append(b.Text("request_id", id).Text("sent_at", codec.Clock{}.Text()).End(), '\n')
	c.pending[id] = p
	return id, c.write(ctx, line)
}

func (c *Conn) write(ctx context.Context, line []byte) error {
	if c.failed != nil {
		return c.failed
	}
	release := c.until(ctx)
	_, err := c.nc.Write(line)
	release()
	if err == nil {
		return nil
	}
	_ = c.fail(&ConnError{Addr: c.addr, Err: fmt.Errorf("cannot write: %w", err)}) // a part of the line may be on its way
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.failed
}

// until has reads and writes end with ctx, until the returned function is called.
func (c *Conn) until(ctx context.Context) (release func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = c.nc.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-ended
			_ = c.nc.SetDeadline(time.Time{})
		}
	}
}

// fail ends the connection with its first reason.
func (c *Conn) fail(err error) error {
	if c.failed == nil {
		c.failed = err
		_ = c.nc.Close()
	}
	return c.failed
}

// Ask sends a request and waits for its answer. Events that come before it are passed to event,
// which may be nil. An answer with an error is returned as an *Error.
func (c *Conn) Ask(ctx context.Context, command string, payload []byte, event func(*Message) error) (*Message, error) {
	id, err := c.Send(ctx, command, payload)
	if err != nil {
		return nil, err
	}
	return c.Await(ctx, id, event)
}

// Await waits for the answer of a request that was sent. Answers of others are dropped.
func (c *Conn) Await(ctx context.Context, id string, event func(*Message) error) (*Message, error) {
	for {
		m, err := c.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case m.Kind == Event && event != nil:
			if err := event(m); err != nil {
				return nil, err
			}
		case m.Kind != Event && (m.RequestID == id || m.RequestID == ""):
			if m.Err != nil {
				return m, m.Err
			}
			return m, nil
		}
	}
}

// Next returns the next message. Unknown events are dropped. After an error that is not that of
// ctx, the connection has ended.
func (c *Conn) Next(ctx context.Context) (*Message, error) {
	for {
		line, err := c.line(ctx)
		if err != nil {
			return nil, err
		}
		if len(bytes.Trim(line, " \t")) == 0 {
			continue
		}
		m, bad := c.decoder.decode(line)
		if bad == nil {
			bad = c.take(&m)
		}
		if bad != nil {
			return nil, c.fail(bad)
		}
		if m.known() {
			return &m, nil
		}
	}
}

// take checks a message against what came and what was asked before.
func (c *Conn) take(m *Message) *Error {
	if m.Kind == Event {
		return c.order.check(m)
	}
	if m.RequestID == "" {
		if _, auth := c.pending[""]; len(c.pending) == 0 || m.OK && (!auth || m.Kind != Ack) {
			return local("IPC-005", "an answer without a request")
		}
		return nil // of an auth, or of a message that the server could not read
	}
	p, asked := c.pending[m.RequestID]
	if !asked || p.command != "" && m.Kind == Ack || p.command == "" && m.Kind == Response && m.OK {
		return local("IPC-005", "request_id: "+m.RequestID)
	}
	delete(c.pending, m.RequestID)
	if m.OK {
		c.follow(&p, m)
	}
	return nil
}

// follow notes from where on all events of a project come (exacta §2.4).
func (c *Conn) follow(p *pending, m *Message) {
	switch {
	case p.command == "OpenProject":
		c.order.follow(strings.ToLower(m.Result.Text("project_id")), uint64(m.Result.Int("stream_seq"))+1)
	case p.command == "CloseProject":
		c.order.forget(p.project)
	case p.command == "" && p.after != nil:
		c.order.follow(p.project, *p.after+1)
	case p.command == "":
		c.order.follow(p.project, uint64(m.Result.Int("last_stream_seq"))+1)
	}
}

// line returns the next line.
func (c *Conn) line(ctx context.Context) ([]byte, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	for {
		line, used, st, scanned := ndjson.Split(c.in[c.used:], c.scanned, maxLine)
		switch st {
		case ndjson.Line:
			c.used, c.scanned = c.used+used, 0
			return line, nil
		case ndjson.TooLong:
			return nil, c.fail(local("IPC-001", "message_too_large"))
		}
		c.scanned = scanned
		if err := c.read(ctx); err != nil {
			return nil, err
		}
	}
}

// read reads more.
func (c *Conn) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := copy(c.in, c.in[c.used:])
	c.in, c.used = c.in[:n], 0
	if cap(c.in)-n < readBytes {
		c.in = append(make([]byte, 0, 2*n+readBytes), c.in...)
	}
	release := c.until(ctx)
	got, err := c.nc.Read(c.in[n:cap(c.in)])
	release()
	c.in = c.in[:n+got]
	switch {
	case got > 0 || err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF) && n > 0:
		err = io.ErrUnexpectedEOF
	}
	return c.fail(&ConnError{Addr: c.addr, Err: err})
}
