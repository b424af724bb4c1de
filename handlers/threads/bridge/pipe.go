package bridge

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"

	"trunkline/handlers/threads/mcp"
)

// Bounds of what a client sends.
const (
	// maxLine is a message of the largest size.
	maxLine = mcp.MaxMessage
	// maxPending is how many lines are worked on at a time. Further ones wait in the stream.
	maxPending = 64
	// maxID is how long the id of a line that is too long may be.
	maxID = 1 << 10
)

// line is a line of the client, or the end of its stream.
type line struct {
	text    []byte
	id      []byte // of a line that is too long, as far as it has one
	tooLong bool
	err     error
}

// serve answers each line of in, which is a message or a batch, with a line on out. At the end of
// in it waits for the answers that are due.
func serve(ctx context.Context, in io.Reader, out io.Writer, stream *mcp.Stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c, ok := in.(io.Closer); ok {
		defer c.Close() // so that its reader ends
	}
	lines, places := make(chan line), make(chan struct{}, maxPending)
	go scan(ctx, in, lines)
	var writing sync.Mutex
	write := func(answer []byte) {
		if len(answer) > 0 {
			writing.Lock()
			defer writing.Unlock()
			_, _ = out.Write(append(answer, '\n')) // a client that is gone ends in, too
		}
	}
	var calls sync.WaitGroup
	for {
		var l line
		select {
		case l = <-lines:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case l.tooLong:
			write(stream.TooLong(l.id))
		case len(bytes.TrimSpace(l.text)) > 0:
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			calls.Go(func() {
				defer func() { <-places }()
				write(stream.Answer(ctx, l.text))
			})
		}
		if l.err != nil {
			calls.Wait()
			if l.err == io.EOF {
				return nil
			}
			return l.err
		}
	}
}

// scan reads lines until the stream ends.
func scan(ctx context.Context, in io.Reader, lines chan<- line) {
	r := bufio.NewReader(in)
	for {
		l := readLine(r)
		select {
		case lines <- l:
		case <-ctx.Done():
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine returns the next line without its end, which the last one may not have. Of a long line
// the id is kept alone.
func readLine(r *bufio.Reader) (l line) {
	var id idScan
	for {
		part, err := r.ReadSlice('\n')
		if !l.tooLong && len(l.text)+len(bytes.TrimSuffix(part, lineEnd)) > maxLine {
			id.feed(l.text)
			l.text, l.tooLong = nil, true
		}
		if l.tooLong {
			id.feed(part)
		} else {
			l.text = append(l.text, part...)
		}
		if err != bufio.ErrBufferFull {
			l.text, l.id, l.err = bytes.TrimSuffix(l.text, lineEnd), id.id, err
			return l
		}
	}
}

var lineEnd = []byte("\n")

// idScan finds the id of a message that is read in parts and not kept.
type idScan struct {
	depth           int
	quoted, escaped bool
	token           []byte // the last one of the message itself, at most maxID bytes
	named           bool   // what follows is the value of id
	id              []byte
}

func (s *idScan) feed(part []byte) {
	for _, c := range part {
		if s.depth == 1 && len(s.token) <= maxID && (s.quoted || c > ' ' && c != ':' && c != ',' && c != '}') {
			s.token = append(s.token, c)
		}
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case s.depth == 1 && c == ':':
			s.named, s.token = string(s.token) == `"id"`, s.token[:0]
		case s.depth == 1 && (c == ',' || c == '}'):
			if s.named && len(s.token) <= maxID {
				s.id = append([]byte(nil), s.token...)
			}
			s.named, s.token = false, s.token[:0]
		}
		if !s.quoted && (c == '}' || c == ']') {
			s.depth--
		}
	}
}
