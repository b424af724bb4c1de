package workers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

const (
	// keepBuffer is the most that a worker keeps of each of its buffers between calls.
	keepBuffer = 64 << 10
	firstRead  = 4 << 10
	// atOnce is the longest request that is written before the reply is read: a pipe holds more, so that a worker that writes
	// before it has read everything does not stop both sides.
	atOnce = 16 << 10
)

// fault is how a call of a worker failed.
type fault uint8

const (
	fine    fault = iota
	late          // the deadline passed
	ended         // the process exited or closed its stdout
	tooLong       // the reply is over the limit
)

// ask sends w.req and returns the reply line, which is lent until the worker is given back. It returns soon after ctx is done.
func (w *worker) ask(ctx context.Context) (line []byte, f fault) {
	return w.exchange(ctx, false)
}

// askOnce sends w.req and then the end of the input, and returns everything the process writes.
func (w *worker) askOnce(ctx context.Context) (text []byte, f fault) {
	return w.exchange(ctx, true)
}

func (w *worker) exchange(ctx context.Context, once bool) (text []byte, f fault) {
	stop := context.AfterFunc(ctx, w.interrupt)
	var sent chan error
	if len(w.req) <= atOnce {
		_ = w.send(once) // the end of the output tells
	} else {
		sent = make(chan error, 1)
		go func() { sent <- w.send(once) }()
	}
	if once {
		text, f = w.readAll()
	} else {
		text, f = w.readLine()
	}
	if sent != nil {
		w.endSend(sent)
	}
	if !stop() {
		w.spoilt = true
	}
	return text, f
}

// send writes the request.
func (w *worker) send(once bool) error {
	_, err := w.in.Write(w.req)
	if once {
		return errors.Join(err, w.in.Close())
	}
	return err
}

// endSend waits for a request that was sent beside the reading. A worker that replied before it had read everything is of no more use.
func (w *worker) endSend(sent <-chan error) {
	_ = w.in.SetWriteDeadline(time.Unix(1, 0)) // fails only if closed; a write that is complete does not notice
	if err := <-sent; err != nil {
		w.spoilt = true
		return
	}
	if err := w.in.SetWriteDeadline(time.Time{}); err != nil {
		w.spoilt = true
	}
}

// readLine reads up to a line's end. The line is without it, and without one "\r" before it.
func (w *worker) readLine() (line []byte, f fault) {
	w.buf, w.extra = w.buf[:0], false
	for scanned := 0; ; scanned = len(w.buf) {
		err := w.read()
		if i := bytes.IndexByte(w.buf[scanned:], '\n'); i >= 0 {
			end := scanned + i
			w.extra = end+1 < len(w.buf)
			line = bytes.TrimSuffix(w.buf[:end], []byte{'\r'})
			if len(line) > MaxReply {
				return nil, tooLong
			}
			return line, fine
		}
		if len(w.buf) > MaxReply+1 {
			return nil, tooLong
		}
		if err != nil {
			return nil, w.faultOf(err)
		}
	}
}

// readAll reads to the end of the output. The text is without one line's end.
func (w *worker) readAll() (text []byte, f fault) {
	w.buf = w.buf[:0]
	for {
		err := w.read()
		text = bytes.TrimSuffix(bytes.TrimSuffix(w.buf, []byte{'\n'}), []byte{'\r'})
		if len(text) > MaxReply {
			return nil, tooLong
		}
		if err != nil {
			return text, w.faultOf(err)
		}
	}
}

// read reads what there is, once, behind what there is already.
func (w *worker) read() error {
	if len(w.buf) == cap(w.buf) {
		// Enough for a reply at the limit with its end, and one byte to see that it is over.
		grown := make([]byte, len(w.buf), min(max(2*cap(w.buf), firstRead), MaxReply+3))
		copy(grown, w.buf)
		w.buf = grown
	}
	n, err := w.out.Read(w.buf[len(w.buf):cap(w.buf)])
	w.buf = w.buf[:len(w.buf)+n]
	return err
}

// faultOf says what the end of a read means.
func (w *worker) faultOf(err error) fault {
	if errors.Is(err, io.EOF) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return ended
	}
	select {
	case <-w.exited: // somebody else holds the pipe open
		return ended
	default:
		return late
	}
}

// shrink gives back what one long call needed.
func (w *worker) shrink() {
	if cap(w.req) > keepBuffer {
		w.req = nil
	}
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
}
