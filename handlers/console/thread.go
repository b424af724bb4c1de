package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ThreadReader is how far a participant of a thread has read.
type ThreadReader struct {
	Agent string `json:"agent_id"`
	// Read is the number of the last message that it acknowledged, Unread counts those behind it.
	Read   uint64 `json:"last_read_seq"`
	Unread uint64 `json:"unread"`
}

// ThreadJob is a trigger job of a thread.
type ThreadJob struct {
	ID      string    `json:"trigger_id"`
	Target  string    `json:"target_agent_id"`
	Status  string    `json:"job_status"`
	Code    string    `json:"last_error_code,omitempty"`
	Created time.Time `json:"created_at"`
}

// liveThread sends the messages of a thread behind a number, or behind Last-Event-ID.
func (c *Console) liveThread(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		answer(w, statusOf(err), failure{err.Error()})
		return
	}
	id, after := q.text("id"), q.number("after")
	if n, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = n
	}
	if _, err := c.cfg.Source.Thread(id, 0, 0); err != nil {
		answer(w, statusOf(err), failure{err.Error()})
		return
	}
	s, ctx, end := c.openStream(w, r)
	if s == nil {
		return
	}
	defer end()
	s.comment()
	if s.send() != nil {
		return
	}
	for {
		within, cancel := context.WithTimeout(ctx, heartbeatEvery)
		err := c.cfg.Source.FollowThread(within, id, after, func(list []Message) error {
			for i := range list {
				after = list[i].Seq
				s.add(strconv.FormatUint(after, 10), "message", &list[i])
			}
			return s.send()
		})
		late := within.Err() != nil
		cancel()
		if s.comment(); !late || ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) || s.send() != nil {
			return
		}
	}
}

// postMessage posts the message of an operator to a thread.
func (c *Console) postMessage(w http.ResponseWriter, r *http.Request) {
	c.act(w, r, "post_message", "id", "thread", func(ctx context.Context, id, _ string) error {
		return c.cfg.Source.PostMessage(ctx, id, r.PostForm.Get("body"))
	}, root+"thread?id=")
}

// closeThread closes a thread.
func (c *Console) closeThread(w http.ResponseWriter, r *http.Request) {
	c.act(w, r, "close_thread", "id", "thread", c.cfg.Source.CloseThread, root+"thread?id=")
}

// liveThreadPath returns where a page goes on behind a message.
func liveThreadPath(id string, after uint64) string {
	return root + "thread/live?" + url.Values{"id": {id}, "after": {strconv.FormatUint(after, 10)}}.Encode()
}
