package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a client sends.
const (
	// maxLine is a message with an input of the largest size.
	maxLine = 1<<20 + 16<<10
	// maxPending is how many calls are worked on at a time. Further ones wait in the stream.
	maxPending = 64
)

// pipe is the transport of the SDK over two streams: one message in each line. Unlike that of the
// SDK it answers a line that is no message, and goes on.
type pipe struct {
	in  io.Reader
	out io.Writer

	lines chan line
	ended chan struct{} // closed by Close
	once  sync.Once
	calls chan struct{} // has a value for each call without an answer

	mu      sync.Mutex          // of pending; never held while out is written to
	pending map[jsonrpc.ID]bool // the ids of the calls without an answer

	writing sync.Mutex // of out
}

// line is a line of the client, or the end of its stream.
type line struct {
	text []byte
	err  error
}

// errLong is the end of a line that is too long.
var errLong = errors.New("the line is too long")

// Connect implements mcp.Transport.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) {
	p.lines, p.ended, p.calls = make(chan line), make(chan struct{}), make(chan struct{}, maxPending)
	p.pending = map[jsonrpc.ID]bool{}
	go p.scan()
	return p, nil
}

// scan reads lines until the stream ends.
func (p *pipe) scan() {
	r := bufio.NewReader(p.in)
	for {
		text, err := readLine(r)
		select {
		case p.lines <- line{text, err}:
		case <-p.ended:
			return
		}
		if err != nil && err != errLong {
			return
		}
	}
}

// readLine returns the next line without its end. A last line without an end is dropped. What is
// behind the limit of a long line is dropped, too.
func readLine(r *bufio.Reader) (text []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(text)+len(part) > maxLine+1 {
			text = text[:0]
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
			if err == nil {
				err = errLong
			}
			return nil, err
		}
		text = append(text, part...)
		switch {
		case err == nil:
			return text[:len(text)-1], nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// Read implements mcp.Connection. At the end of the stream it waits for the answers that are due.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-p.lines:
		case <-p.ended:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case l.err == errLong:
			p.refuse(jsonrpc.CodeInvalidRequest, errLong.Error())
			continue
		case l.err != nil:
			return nil, p.drain(ctx, l.err)
		case len(trimmed(l.text)) == 0:
			continue
		}
		if !json.Valid(l.text) {
			p.refuse(jsonrpc.CodeParseError, "the line is not one JSON value")
			continue
		}
		m, err := jsonrpc.DecodeMessage(l.text)
		if err != nil { // so is a batch, which the current revisions do not have
			p.refuse(jsonrpc.CodeInvalidRequest, "the line is not one message")
			continue
		}
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			if !p.begin(ctx) {
				return nil, io.EOF
			}
			if !p.take(r.ID) {
				<-p.calls
				p.refuse(jsonrpc.CodeInvalidRequest, "a call with this id has no answer yet")
				continue
			}
		}
		return m, nil
	}
}

// trimmed returns a line without the space around it.
func trimmed(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// begin counts a call, once there is room for it.
func (p *pipe) begin(ctx context.Context) bool {
	select {
	case p.calls <- struct{}{}:
		return true
	case <-p.ended:
	case <-ctx.Done():
	}
	return false
}

// take notes a call, unless there is one with its id. The SDK would not answer the second one.
func (p *pipe) take(id jsonrpc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[id] {
		return false
	}
	p.pending[id] = true
	return true
}

// drain waits until no call is without an answer, and returns err.
func (p *pipe) drain(ctx context.Context, err error) error {
	for range maxPending {
		if !p.begin(ctx) {
			break
		}
	}
	return err
}

// refuse answers a line that is no message.
func (p *pipe) refuse(code int64, why string) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": &jsonrpc.Error{Code: code, Message: why}})
	if err == nil {
		_ = p.write(text)
	}
}

// Write implements mcp.Connection. The id of a call is free before its answer is written: a client
// may use it again as soon as it read the answer. The SDK forgets it before it calls Write.
func (p *pipe) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok && p.release(r.ID) {
		defer func() { <-p.calls }() // a drain waits for the write
	}
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.write(text)
}

// release forgets a call, and reports whether it was noted.
func (p *pipe) release(id jsonrpc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := p.pending[id]
	delete(p.pending, id)
	return noted
}

func (p *pipe) write(text []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.out.Write(append(text, '\n'))
	return err
}

// Close implements mcp.Connection. A stream that can be closed is, so that its reader ends.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.ended) })
	if c, ok := p.in.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// SessionID implements mcp.Connection.
func (p *pipe) SessionID() string { return "" }
