package dispatch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// MaxReply is the longest reply line, its end included (toolhost §2.2).
const MaxReply = 1 << 20

// Conn is a connection to a tool server: one session, with a state of its own (toolhost §2.3). Calls are made one at a time, in any
// number of goroutines. After an error of the connection itself, a line that is no reply, and one that nobody asked for, it is closed,
// and every later call returns that error.
type Conn struct {
	nc   net.Conn
	in   *bufio.Reader
	turn chan struct{} // holds one value while nobody calls
	err  error         // owned by who has the turn
}

// Request is one tool call (toolhost §3.1). What is empty is not sent.
type Request struct {
	// AID is the tool.
	AID string
	// Inputs is what encoding/json makes a JSON object of; nil is the empty object.
	Inputs any
	// State is a snapshot or a delta for the session's state, to be applied before the tool runs (toolhost §3.6).
	State json.RawMessage
	// IdempotencyKey, at most 256 bytes, has the server run the call at most once in its window (toolhost §4.3).
	IdempotencyKey string
	// LeaseToken permits one call of a tool above tier 0, where the server asks for that (toolhost §4.4).
	LeaseToken string
	// RequestID, at most 128 bytes, is yours, for logs.
	RequestID string
}

// Reply is what a tool answered. Its bytes are the caller's.
type Reply struct {
	// Status is that of the ToolResult; OK if the call returned no error.
	Status tool.Status
	// Output is output_json: the text of a JSON object.
	Output string
	// Hit says that an earlier call with the same key was answered again, and nothing was run.
	Hit bool
	// State is the delta of the session's state that the tool made (toolhost §3.6).
	State json.RawMessage
}

// Refusal is a protocol error: the server ran nothing and changed nothing (toolhost §3.3).
type Refusal struct {
	// Text is the error member, for example "tool not found: AID.X.v1".
	Text string
	// Line is the whole reply, with the members that the text's kind brings along.
	Line []byte
}

// Error returns the sentence for a log.
func (r *Refusal) Error() string { return "cannot run the tool: " + r.Text }

// Dial connects to unix:///path or tcp://host:port. token, if not empty, is shown to the server first (toolhost §4.6).
func Dial(ctx context.Context, addr, token string) (*Conn, error) {
	network, address, ok := strings.Cut(addr, "://")
	if !ok || network != "unix" && network != "tcp" {
		return nil, fmt.Errorf("cannot dial %q: neither unix:///path nor tcp://host:port", addr)
	}
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &Conn{nc: nc, in: bufio.NewReader(nc), turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	if token == "" {
		return c, nil
	}
	line := jsonx.AppendString([]byte(`{"aid":"_auth","token":`), token)
	reply, err := c.Do(ctx, append(line, '}'))
	if err == nil {
		err = refused(reply)
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the session. A call that waits returns with an error; a tool that runs is not stopped by it.
func (c *Conn) Close() error { return c.nc.Close() }

// Run calls one tool. The error is a *ToolResult, with the reply all the same; a *Refusal; or what happened to the connection, and
// then nobody knows whether the tool ran: repeat the call under the same IdempotencyKey on a new connection.
func (c *Conn) Run(ctx context.Context, r Request) (Reply, error) {
	line, err := r.encode()
	if err != nil {
		return Reply{}, err
	}
	var m replyMembers
	answer, err := c.do(ctx, line, func(answer []byte) error {
		if !m.read(answer) || !m.wellTyped() {
			return broken(r.AID, tool.ParseError, tool.Detail(string(answer[:min(len(answer), 256)])))
		}
		return nil
	})
	if err != nil {
		return Reply{}, err
	}
	if m[memberStatus].Kind == jsonx.Absent {
		return Reply{}, &Refusal{Text: m.text(memberError), Line: answer}
	}
	result := m.result(r.AID)
	reply := Reply{Status: result.Status, Output: result.Output, Hit: m[memberHit].Kind == jsonx.True, State: json.RawMessage(m[memberState].Raw)}
	if result.Status != tool.OK {
		return reply, result
	}
	return reply, nil
}

// encode returns the request line, without its end.
func (r *Request) encode() ([]byte, error) {
	input, err := object(r.Inputs)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(struct {
		AID    string          `json:"aid"`
		Inputs json.RawMessage `json:"inputs"`
		State  json.RawMessage `json:"ds_state,omitempty"`
		Key    string          `json:"idempotency_key,omitempty"`
		Lease  string          `json:"_lease_token,omitempty"`
		ID     string          `json:"request_id,omitempty"`
	}{r.AID, input, r.State, r.IdempotencyKey, r.LeaseToken, r.RequestID})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// readable tells whether a line can be a reply at all: a JSON object.
func readable(line []byte) error {
	var m replyMembers
	if !m.read(line) {
		return fmt.Errorf("cannot read the reply %.100q", line)
	}
	return nil
}

// refused returns the protocol error that a reply is, if it is one.
func refused(line []byte) error {
	var m replyMembers
	if m.read(line) && m[memberError].Kind == jsonx.String && m[memberStatus].Kind == jsonx.Absent {
		return &Refusal{Text: m.text(memberError), Line: line}
	}
	return nil
}

var errLine = errors.New("cannot send the line: it is empty, or has an end in it")

// Do sends one line, without its end, and returns the line it is answered with, a JSON object: for operations such as _health
// (toolhost §4.5).
func (c *Conn) Do(ctx context.Context, line []byte) ([]byte, error) { return c.do(ctx, line, readable) }

// do is Do for replies that check judges, which returns an error for one that the server would not write.
func (c *Conn) do(ctx context.Context, line []byte, check func(reply []byte) error) ([]byte, error) {
	if len(bytes.TrimSuffix(line, []byte("\r"))) == 0 || bytes.IndexByte(line, '\n') >= 0 {
		return nil, errLine // the server would take it for the end, or for two
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	if c.err != nil {
		return nil, c.err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	reply, err := c.exchange(line)
	if !stop() && err != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err == nil {
		err = check(reply)
	}
	if err == nil && ctx.Err() == nil {
		return reply, nil
	}
	// A reply that comes later would be taken for the next one's, and after one that is none nobody knows where the next begins.
	if c.err = err; err == nil {
		c.err = context.Cause(ctx)
	}
	_ = c.nc.Close()
	if err != nil {
		return nil, err
	}
	return reply, nil
}
