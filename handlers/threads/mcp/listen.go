package mcp

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

const (
	// maxListened is how many resources one stream of subscriptions/listen has at most.
	maxListened = 256
	// beatEvery is the time between two comments of a stream without notifications.
	beatEvery = 15 * time.Second
	// listenMethod is the method of the newest revision that subscribes to resources.
	listenMethod = "subscriptions/listen"
)

var (
	eventType = []string{"text/event-stream"}
	errListen = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidParams, "notifications is no object with at most 256 resourceSubscriptions, each a thread://<thread_id>"}
)

// listens reports whether a text is a request for a stream of subscriptions, and reads it.
func (x *exchange) listens(text []byte) bool {
	if len(x.version) != 1 || x.version[0] != newEra || x.h.cfg.Follow == nil {
		return false
	}
	e := x.m.scan(jsonx.TrimBOM(text), &x.strict)
	return e == nil && string(x.m.method.Raw) == listenMethod && x.m.id.Kind != jsonx.Absent
}

// listener is one stream of subscriptions.
type listener struct {
	mu    sync.Mutex
	ready map[string]bool // threads that have changed since the last notification
	wake  chan struct{}
}

// listened is a resource of a stream.
type listened struct {
	l     *listener
	watch threadstore.Watch
}

// Changed implements threadstore.Watcher.
func (w *listened) Changed(thread string, _, _ uint64) {
	w.l.mu.Lock()
	w.l.ready[thread] = true
	w.l.mu.Unlock()
	select {
	case w.l.wake <- struct{}{}:
	default:
	}
}

// listen answers subscriptions/listen: an acknowledgement, then a notification for each change of a
// thread, gathered while the client does not read.
func (x *exchange) listen(w http.ResponseWriter) {
	s := x.h.cfg.Follow
	l := &listener{ready: map[string]bool{}, wake: make(chan struct{}, 1)}
	x.revise()
	x.out = x.out[:0]
	threads, ok := x.listenedThreads()
	if !ok {
		x.reply(w, x.refuseMessage(errListen))
		return
	}
	who := caller{x.caller.Claims.Workspace, x.caller.Claims.Agent}
	if !x.h.listening.enter(who) {
		x.refuse(w, &method.Fault{Condition: method.RateLimited, Message: "the agent has too many streams"})
		return
	}
	defer x.h.listening.leave(who)
	x.release()
	ack := jsonx.Build(nil)
	uris := []string{}
	for _, id := range threads {
		one := &listened{l: l}
		if s.Watch(x.caller.Claims, []byte(id), one, &one.watch) != nil {
			continue // what the client may not read is not acknowledged
		}
		defer s.Unwatch(&one.watch)
		uris = append(uris, threadScheme+id)
	}
	if len(uris) > 0 {
		ack = ack.Texts("resourceSubscriptions", uris)
	}
	head := w.Header()
	head["Content-Type"], head["Cache-Control"], head["X-Accel-Buffering"] = eventType, noCaching, []string{"no"}
	w.WriteHeader(http.StatusOK)
	if !x.notify(w, "notifications/subscriptions/acknowledged", "notifications", ack.End()) {
		return
	}
	if len(uris) > 0 {
		e, gone := x.updates(w, l)
		if gone {
			return
		}
		if e != nil {
			x.out = append(appendError(append(x.out[:0], "event: message\ndata: "...), &x.m, e), "\n\n"...)
			x.write(w)
			return
		}
	}
	x.out = append(appendStart(append(x.out[:0], "event: message\ndata: "...), &x.m), `"result":{`+serverMeta...)
	x.out = append(x.out[:len(x.out)-2], `,"io.modelcontextprotocol/subscriptionId":`...)
	x.out = append(appendMember(x.out, &x.m.id), `},"resultType":"complete"}}`+"\n\n"...)
	x.write(w)
}

// listenedThreads returns the threads that a request names.
func (x *exchange) listenedThreads() (ids []string, ok bool) {
	var m, n [1]jsonx.Value
	jsonx.Pick(x.m.params.Raw, []string{"notifications"}, m[:])
	if m[0].Kind != jsonx.ObjectStart {
		return nil, false
	}
	jsonx.Pick(m[0].Raw, []string{"resourceSubscriptions"}, n[:])
	if n[0].Kind != jsonx.ArrayStart {
		return nil, n[0].Kind == jsonx.Absent || n[0].Kind == jsonx.Null
	}
	for list := jsonx.OpenArray(n[0].Raw); ; {
		v, more := list.Next()
		if !more {
			return ids, true
		}
		uri := textOf(&v)
		if len(uri) <= len(threadScheme) || uri[:len(threadScheme)] != threadScheme || len(ids) == maxListened {
			return nil, false
		}
		if id := uri[len(threadScheme):]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
}

// notify sends a notification with one member of params, and the stream's id in _meta.
func (x *exchange) notify(w http.ResponseWriter, name, member string, value []byte) bool {
	meta := appendMember([]byte(`{"io.modelcontextprotocol/subscriptionId":`), &x.m.id)
	params := jsonx.Build(nil).Raw("_meta", append(meta, '}')).Raw(member, value).End()
	x.out = append(append(x.out[:0], `event: message`+"\n"+`data: {"jsonrpc":"2.0","method":"`...), name...)
	x.out = append(append(append(x.out, `","params":`...), params...), "}\n\n"...)
	return x.write(w)
}

// write sends x.out, and reports whether the client is still there.
func (x *exchange) write(w http.ResponseWriter) bool {
	httpd.WriteWithin(w, 30*time.Second)
	if _, err := w.Write(x.out); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// updates sends notifications until the stream ends: because the client is gone, or with an error,
// or because the server drains.
func (x *exchange) updates(w http.ResponseWriter, l *listener) (e *rpcError, gone bool) {
	s := x.h.cfg.Follow
	void := make(chan *method.Fault, 1)
	defer s.Hold(x.caller.Claims, x.bearer, func(f *method.Fault) {
		if f != nil { // else it drains
			void <- f
		}
	}).Release()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-l.wake:
			l.mu.Lock()
			ready := l.ready
			l.ready = map[string]bool{}
			l.mu.Unlock()
			for id := range ready {
				uri := jsonx.AppendString(nil, threadScheme+id)
				if !s.MayRead(x.caller.Claims, []byte(id)) {
					return &rpcError{code: jsonrpc.CodeInvalidRequest, message: "the caller may not read " + threadScheme + id + " any more"}, false
				}
				if !x.notify(w, "notifications/resources/updated", "uri", uri) {
					return nil, true
				}
			}
		case <-beat.C:
			if x.out = append(x.out[:0], ":\n\n"...); !x.write(w) {
				return nil, true
			}
		case f := <-void:
			return &rpcError{code: jsonrpc.CodeInvalidRequest, message: f.Message}, false
		case <-s.Draining():
			return nil, false
		case <-x.ctx.Done():
			return nil, true
		}
	}
}
