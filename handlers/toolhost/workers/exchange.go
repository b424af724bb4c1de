package workers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepBuffer is the most that a worker keeps of each of its buffers between calls.
	keepBuffer = 64 << 10
	firstRead  = 4 << 10
	// atOnce is the longest request that is written before the reply is read: every pipe holds it,
	// so that a worker that writes before it has read everything does not stop both sides.
	atOnce = 4 << 10
)

type fault uint8

const (
	fine    fault = iota
	unfit         // it was not fit to get the request, and did not
	strayed       // it wrote before it took the request: that is no answer
	late          // the deadline passed
	ended         // the process exited or closed its stdout
	tooLong       // the reply is over the limit
)

// turn is what is known of one request to a worker.
type turn struct {
	sent   bool
	took   bool   // the worker took it, or a part of it, from the pipe
	stray  bool   // something came before that
	f      fault  // what began ended with
	looked bool   // what follows the reply was looked for
	after  string // why there must be no further request: what followed the reply, or ""
	spoilt bool   // the deadline came with the reply: the pipes are of no more use
	rest   chan error
}

// ask sends w.req and returns the reply line, which is lent until the worker is given back.
//
// A line is a reply only if the worker wrote it, and nothing else, after it took the request. Else
// one stray line would give every later caller the answer of the one before (toolhost §4.9).
func (w *worker) ask(ctx context.Context) (line []byte, f fault) {
	w.turn, w.buf = turn{}, w.buf[:0]
	stop := context.AfterFunc(ctx, w.interrupt)
	w.room()
	if err := w.raw.Read(w.step); err != nil {
		f = w.faultOf(err)
	} else {
		f = w.turn.f
	}
	if f == fine {
		line, f = w.readLine()
	}
	w.endSend()
	if f == fine && w.turn.after == "" {
		w.lookBehind()
	}
	if !stop() {
		w.turn.spoilt = true
	}
	return line, f
}

// untouched reports whether an ended worker certainly did not take the request.
func (w *worker) untouched() bool { return w.watch != nil && !w.turn.took && !w.fresh() }

func (w *worker) lookBehind() {
	if !w.turn.looked && w.raw.Read(w.peek) != nil {
		w.turn.spoilt = true
		return
	}
	w.turn.after = w.seen()
}

// stepAt is done when a reply begins in w.buf, or there will be none. The poller calls it.
func (w *worker) stepAt(fd uintptr) (done bool) {
	t := &w.turn
	if !t.sent {
		t.sent = true
		t.f = w.begin(fd)
		return t.f != fine
	}
	if t.rest != nil && !ready(fd, unix.POLLIN) {
		return false // a look now would miss the taking if the pipe is full again
	}
	took, spoke, first := w.watch.look()
	t.stray = t.stray || spoke && !t.took && (first || !took)
	t.took = t.took || took
	if !spoke {
		return false
	}
	n, err := syscall.Read(int(fd), w.buf[:cap(w.buf)])
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != nil || n == 0:
		t.f = ended
	case t.stray:
		t.f = strayed
	}
	w.buf = w.buf[:max(n, 0)]
	if n > 0 && w.buf[n-1] == '\n' { // nearly always the whole reply
		t.looked = true
		w.peekAt(fd)
	}
	return true
}

func (w *worker) begin(fd uintptr) fault {
	w.peeked, w.peekErr = -1, syscall.EAGAIN
	if _, spoke, _ := w.watch.look(); spoke {
		w.peekAt(fd)
	}
	if w.turn.after = w.seen(); w.turn.after != "" {
		return unfit
	}
	if len(w.req) <= atOnce {
		if err := w.send(false); err != nil {
			return w.faultOf(err)
		}
		return fine
	}
	w.sendBeside(&w.turn, false)
	return fine
}

// askOnce sends w.req and the end of the input, and returns everything the process writes.
func (w *worker) askOnce(ctx context.Context) (text []byte, f fault) {
	stop := context.AfterFunc(ctx, w.interrupt)
	defer stop()
	w.turn = turn{}
	if len(w.req) <= atOnce {
		_ = w.send(true) // the end of the output shows it
	} else {
		w.sendBeside(&w.turn, true)
	}
	text, f = w.readAll()
	w.endSend()
	return text, f
}

func (w *worker) sendBeside(t *turn, once bool) {
	t.rest = make(chan error, 1)
	go func(sent chan<- error) { sent <- w.send(once) }(t.rest)
}

func (w *worker) send(once bool) error {
	req := w.req
	if len(req) > atOnce && w.watch != nil {
		if _, err := w.in.Write(req[:atOnce]); err != nil {
			return err
		}
		if err := w.watch.widen(w.in); err != nil {
			return err
		}
		req = req[atOnce:]
	}
	_, err := w.in.Write(req)
	if once {
		return errors.Join(err, w.in.Close())
	}
	return err
}

// endSend waits for sendBeside. A worker that replied before it had read everything is spoilt.
func (w *worker) endSend() {
	if w.turn.rest == nil {
		return
	}
	_ = w.in.SetWriteDeadline(time.Unix(1, 0)) // fails only if closed
	if <-w.turn.rest != nil || w.in.SetWriteDeadline(time.Time{}) != nil || w.watch.narrow(w.in) != nil {
		w.turn.spoilt = true
	}
}

// readLine reads up to a line's end, from w.buf on. The line is without "\n" and one "\r".
func (w *worker) readLine() (line []byte, f fault) {
	var err error
	for scanned := 0; ; err = w.read() {
		if i := bytes.IndexByte(w.buf[scanned:], '\n'); i >= 0 {
			end := scanned + i
			if end+1 < len(w.buf) {
				w.turn.after = reasonUnsolicited
			}
			line = bytes.TrimSuffix(w.buf[:end], []byte{'\r'})
			if len(line) > maxReply {
				return nil, tooLong
			}
			return line, fine
		}
		if len(w.buf) > maxReply+1 {
			return nil, tooLong
		}
		if err != nil {
			return nil, w.faultOf(err)
		}
		scanned = len(w.buf)
	}
}

// readAll reads to the end of the output. The text is without one line's end.
func (w *worker) readAll() (text []byte, f fault) {
	w.buf = w.buf[:0]
	for {
		err := w.read()
		text = bytes.TrimSuffix(bytes.TrimSuffix(w.buf, []byte{'\n'}), []byte{'\r'})
		if len(text) > maxReply {
			return nil, tooLong
		}
		if err != nil {
			return text, w.faultOf(err)
		}
	}
}

func (w *worker) read() error {
	w.room()
	n, err := w.out.Read(w.buf[len(w.buf):cap(w.buf)])
	w.buf = w.buf[:len(w.buf)+n]
	return err
}

func (w *worker) room() {
	if len(w.buf) == cap(w.buf) {
		// Enough for a reply at the limit with its end, and one byte to see that it is over.
		grown := make([]byte, len(w.buf), min(max(2*cap(w.buf), firstRead), maxReply+3))
		copy(grown, w.buf)
		w.buf = grown
	}
}

func (w *worker) faultOf(err error) fault {
	if errors.Is(err, io.EOF) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return ended
	}
	select {
	case <-w.exited: // another process holds the pipe open
		return ended
	default:
		return late
	}
}

func (w *worker) shrink() {
	if cap(w.req) > keepBuffer {
		w.req = nil
	}
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
}

// When a worker that never stands still must.
const (
	// restCalls is how many calls, restEvery how long, a worker is used before it gets a pause.
	restCalls = 64
	restEvery = 50 * time.Millisecond
	maxRest   = time.Second
)

// rest returns how long the worker must be left alone before its next call, nearly always 0.
//
// A worker that takes requests ahead, or on a system that does not report when it takes them, may
// be one answer ahead after a stray line, as long as each request comes before the late answer. A
// pause of two calls' time shows that answer. So a worker without one for some time gets one, and
// ask looks for what came.
func (w *worker) rest(now time.Time) (pause time.Duration) {
	idle, enough := now.Sub(w.freeAt), time.Duration(0)
	if w.calls > 0 {
		enough = 2 * w.busy / time.Duration(w.calls)
	}
	switch {
	case idle >= enough:
	case w.calls < restCalls || now.Sub(w.quietAt) < restEvery:
		return 0
	default:
		pause = min(enough-idle, maxRest)
	}
	w.quietAt, w.calls, w.busy = now.Add(pause), 0, 0
	return pause
}

func (w *worker) asked(now time.Time) { w.askedAt = now }

// free takes note of a call's end, or that there was none.
func (w *worker) free(now time.Time) {
	w.freeAt = now
	if !w.askedAt.IsZero() {
		w.calls++
		w.busy += now.Sub(w.askedAt)
		w.askedAt = time.Time{}
	}
}
