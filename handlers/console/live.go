package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Bounds of live views.
const (
	maxStreams     = 16 // open at a time, of the connections of the listener
	heartbeatEvery = 15 * time.Second
	valuesEvery    = 2 * time.Second
	writeWithin    = 10 * time.Second // for one write; a peer that takes longer is gone
	// streamAge is how long a live view lasts. The browser opens the next one, which asks again who
	// looks.
	streamAge = 15 * time.Minute
)

// stream is a live view: a response that goes on, as server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

// openStream begins a live view, or answers the request. ctx ends with the view and with the
// request; the caller calls end.
func (c *Console) openStream(w http.ResponseWriter, r *http.Request) (s *stream, ctx context.Context, end func()) {
	if r.Method != http.MethodGet { // a HEAD would go on without a body
		w.Header().Set("Allow", http.MethodGet)
		answer(w, http.StatusMethodNotAllowed, failure{"a live view is asked for by GET"})
		return nil, nil, nil
	}
	select {
	case c.streams <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "5")
		answer(w, http.StatusServiceUnavailable, failure{fmt.Sprintf("%d live views are open, which is the limit; close one", maxStreams)})
		return nil, nil, nil
	}
	s = &stream{w: w, control: http.NewResponseController(w)}
	// The limits of the listener are for short answers. Where there are none, these calls fail.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	ctx, cancel := context.WithTimeout(r.Context(), streamAge)
	closed := context.AfterFunc(c.running, cancel)
	return s, ctx, func() {
		closed()
		cancel()
		<-c.streams
	}
}

// add puts an event into what is sent next. data becomes JSON, which is one line.
func (s *stream) add(id, event string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // no data of this room fails
	}
	if id != "" {
		s.buf = fmt.Appendf(s.buf, "id: %s\n", id)
	}
	s.buf = fmt.Appendf(s.buf, "event: %s\ndata: %s\n\n", event, text)
}

// comment adds a comment line, which clients ignore, to what is sent next.
func (s *stream) comment() { s.buf = append(s.buf, ":\n\n"...) }

// send sends what was added.
func (s *stream) send() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeWithin))
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	if err == nil {
		err = s.control.Flush()
	}
	return err
}

// liveValues answers with the texts of a page that have changed, over and over. read returns them
// by the ID of their place.
func (c *Console) liveValues(read func() map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, ctx, end := c.openStream(w, r)
		if s == nil {
			return
		}
		defer end()
		c.sendValues(ctx, s, read)
	}
}

// sendValues sends texts until the viewer or the console ends.
func (c *Console) sendValues(ctx context.Context, s *stream, read func() map[string]string) {
	tick := time.NewTicker(valuesEvery)
	defer tick.Stop()
	shown := map[string]string{}
	for {
		texts := read()
		if st := c.standing(); st != nil {
			texts["standby"] = mark(st)
		}
		changed := maps.Clone(texts)
		maps.DeleteFunc(changed, func(id, text string) bool {
			old, known := shown[id]
			return known && old == text
		})
		if shown = texts; len(changed) > 0 {
			s.add("", "values", changed)
		} else {
			s.comment()
		}
		if s.send() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// liveTopic sends the events of some types, from behind the one that Last-Event-ID names.
func (c *Console) liveTopic(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.RawQuery)
	var types []string
	if err == nil {
		types, err = q.types()
	}
	var one *tail
	if err == nil {
		one, err = c.tails.open(r.Context(), types)
	}
	if err != nil {
		answer(w, statusOf(err), failure{err.Error()})
		return
	}
	defer c.tails.leave(one)
	s, ctx, end := c.openStream(w, r)
	if s == nil {
		return
	}
	defer end()
	last := r.Header.Get("Last-Event-ID")
	last = cmp.Or(last, q.text("last_event_id"))
	after, ok := one.place(last)
	if !ok {
		after = 0
		if last != "" {
			s.add("", "gap", row{Gap: missing(0)})
		}
	}
	sendRows(ctx, s, one, after)
}

// sendRows sends the events of a tail behind a number until the viewer, the tail or the console
// ends. A viewer that is slower than the events misses some, which is marked.
func sendRows(ctx context.Context, s *stream, one *tail, after uint64) {
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	s.comment() // so that the viewer sees at once that it is connected
	for {
		rows, lost, news, err := one.since(after)
		if lost > 0 {
			s.add(one.id(after+lost), "gap", row{Gap: missing(lost)})
			after += lost
		}
		for i := range rows {
			name := "row"
			if rows[i].Gap != "" {
				name = "gap"
			}
			after = rows[i].Number
			s.add(one.id(after), name, &rows[i])
		}
		if len(s.buf) > 0 && s.send() != nil || err != nil {
			return
		}
		select {
		case <-news:
		case <-beat.C:
			s.comment()
		case <-ctx.Done():
			return
		}
	}
}
