package rest

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/method"
)

const (
	// streamBytes is about how much a stream reads and writes at a time.
	streamBytes = 32 << 10
	// beatEvery is the time between two comments of a stream without messages (threads §4.12).
	beatEvery = 15 * time.Second
)

var (
	eventType = []string{"text/event-stream"}
	isNo      = []string{"no"}
	beat      = []byte(":\n\n")
)

// position is where a stream begins.
type position struct {
	all    bool
	thread []byte
	seq    uint64
	resume bool // a stream of all threads goes on behind a message
}

// positionOf reads the query of a stream and Last-Event-ID, which has precedence.
func positionOf(query url.Values, last string) (p position, f *method.Fault) {
	invalid := func(message string) (position, *method.Fault) {
		return p, &method.Fault{Condition: method.Invalid, Message: message}
	}
	ids, since := query["thread_id"], query["since_seq"]
	if len(ids) != 1 || ids[0] == "" || len(ids[0]) > 256 || len(since) > 1 {
		return invalid("a stream needs one thread_id, which is * for all threads, and at most one since_seq")
	}
	p.thread, p.all = []byte(ids[0]), ids[0] == "*"
	number := append(since, "0")[0]
	if last != "" {
		number = last
		if p.all {
			i := bytes.LastIndexByte([]byte(last), ':')
			if i <= 0 || i > 256 {
				return invalid("Last-Event-ID is none of a stream of all threads")
			}
			p.thread, number, p.resume = []byte(last[:i]), last[i+1:], true
		}
	}
	n, err := strconv.ParseUint(number, 10, 53)
	if err != nil {
		return invalid("since_seq or Last-Event-ID is not an integer from 0 to 9007199254740991")
	}
	p.seq = n
	return p, nil
}

// eventReader is who follows for a stream of server-sent events.
type eventReader struct {
	all   bool
	ready chan struct{}
}

// Ready implements follow.Reader.
func (r *eventReader) Ready() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Frame implements follow.Reader.
func (r *eventReader) Frame(thread string, whole bool) threadstore.Frame {
	head := append(jsonx.AppendString([]byte("event: message\ndata: {\"thread_id\":"), thread), `,"message":`...)
	return threadstore.Frame{
		Before: func(dst []byte, seq uint64) []byte {
			if !whole {
				return append(dst, head...) // to go on behind it would miss what is older
			}
			if dst = append(dst, "id: "...); r.all {
				dst = append(append(dst, thread...), ':')
			}
			return append(append(strconv.AppendUint(dst, seq, 10), '\n'), head...)
		},
		After: []byte("}\n\n"),
	}
}

// stream answers GET /v1/stream (threads §4.12).
func (x *exchange) stream() {
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		x.refuse(&method.Fault{Condition: method.Invalid, Message: "the query cannot be read"})
		return
	}
	p, f := positionOf(query, x.r.Header.Get("Last-Event-Id"))
	if f == nil && x.s.Draining.Load() {
		f = &method.Fault{Condition: method.Unavailable, Message: "the server is stopping"}
	}
	if f != nil {
		x.refuse(f)
		return
	}
	reader := &eventReader{all: p.all, ready: make(chan struct{}, 1)}
	var follower follow.Follower
	defer follower.Close()
	if p.all {
		f = follower.Begin(x.s.cfg.Follow, x.caller.Claims, nil, 0, reader)
		if f == nil && p.resume {
			f = follower.Resume(p.thread, p.seq)
		}
	} else {
		f = follower.Begin(x.s.cfg.Follow, x.caller.Claims, p.thread, p.seq, reader)
	}
	if f != nil {
		x.refuse(f)
		return
	}
	x.status = http.StatusOK
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h[headRequestID], h["X-Accel-Buffering"] = eventType, noStore, x.idValue, isNo
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead && x.send(beat) {
		x.events(&follower, reader)
	}
}

// send writes a part of a stream, and reports whether the peer is still there.
func (x *exchange) send(part []byte) bool {
	httpd.WriteWithin(x.w, x.s.limits.WriteTimeout)
	if _, err := x.w.Write(part); err != nil {
		return false
	}
	return http.NewResponseController(x.w).Flush() == nil
}

// events sends messages until the stream ends.
func (x *exchange) events(follower *follow.Follower, reader *eventReader) {
	void := make(chan *method.Fault, 1)
	lease := x.s.cfg.Follow.Hold(x.caller.Claims, x.bearer(), func(f *method.Fault) {
		if f != nil { // else it drains
			void <- f
		}
	})
	defer lease.Release()
	late := time.NewTimer(beatEvery)
	defer late.Stop()
	for more := true; ; {
		for more {
			var step follow.Step
			if x.out, step = follower.Next(x.out[:0], streamBytes, true); len(x.out) > 0 {
				if index := x.s.cfg.Follow.Confirm(); index > 0 && x.s.cfg.Dispatcher.Await(index) != nil {
					return
				}
				if !x.send(x.out) {
					return
				}
			}
			if step.Fault != nil {
				x.endEvents(step.Fault)
				return
			}
			if more = step.More; len(void) > 0 {
				break
			}
		}
		x.out = httpd.Keep(x.out)
		late.Reset(beatEvery)
		select {
		case <-reader.ready:
			more = true
		case <-late.C:
			if !x.send(beat) {
				return
			}
		case f := <-void:
			x.endEvents(f)
			return
		case <-x.s.cfg.Follow.Draining():
			x.endEvents(&method.Fault{Condition: method.Unavailable, Message: "the server is stopping"})
			return
		case <-x.r.Context().Done():
			return
		}
	}
}

// endEvents sends the event that ends a stream.
func (x *exchange) endEvents(f *method.Fault) {
	x.s.Count(f.Condition)
	x.out = method.AppendEnvelope(append(x.out[:0], "event: error\ndata: "...), f, x.caller.Dialect, x.id, x.s.cfg.Now())
	x.send(append(x.out, "\n\n"...))
}
