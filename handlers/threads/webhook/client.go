// Package webhook delivers the messages of agent threads to URLs of operators, in the form of
// Standard Webhooks. What is delivered, in which order and how often, engine/threadstore decides. A
// Client has the targets, connections and limits of a server; a Sender delivers for one engine
// while its node is the leader.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"code.dny.dev/ssrf"

	"trunkline/engine/obs"
	"trunkline/engine/threadstore"
)

// Bounds of requests.
const (
	maxRequests        = 16 // at a time, of a server
	maxTargetRequests  = 2  // of them to one target, 1 while its last attempt has failed
	requestWithin      = 15 * time.Second
	maxAnswerBytes     = 4 << 10 // that are read of a body
	maxAnswerHeadBytes = 16 << 10
	idleAfter          = 30 * time.Second // connections that are not used
	closeWithin        = 2 * time.Second  // requests, when a sender is closed
	lookEvery          = time.Minute      // for what is due, at the latest: the clock may be set
)

// Target is where a webhook leads. Private allows private addresses.
type Target struct {
	threadstore.Webhook
	URL     string
	Secret  []byte
	Private bool
}

// target is a Target and what has come of it, guarded by Client.mu but for name.
type target struct {
	Target
	name     string
	requests int
	state    obs.Webhook
}

// Client sends the deliveries of all engines of a server.
type Client struct {
	log             *slog.Logger
	public, private *http.Client

	replacing sync.Mutex            // before mu; held by Replace and Start
	hooks     []threadstore.Webhook // guarded by replacing
	mu        sync.Mutex
	targets   []*target
	requests  int
	senders   []*Sender
}

// NewClient returns a Client without targets.
func NewClient(log *slog.Logger) *Client {
	// Control gets the address that is dialled: what a name resolves to before does not matter.
	return &Client{log: log, public: newHTTP(&net.Dialer{Timeout: requestWithin, Control: ssrf.New(ssrf.WithAnyPort()).Safe}),
		private: newHTTP(&net.Dialer{Timeout: requestWithin})}
}

// newHTTP returns a client without a proxy, which would hide the address, and without redirects.
func newHTTP(d *net.Dialer) *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: d.DialContext, TLSHandshakeTimeout: requestWithin, DisableCompression: true,
			MaxConnsPerHost: maxRequests, MaxIdleConns: maxRequests, MaxIdleConnsPerHost: maxTargetRequests,
			IdleConnTimeout: idleAfter, MaxResponseHeaderBytes: maxAnswerHeadBytes},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Replace replaces the targets, and enables those that are disabled.
func (c *Client) Replace(list []Target) {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	c.mu.Lock()
	old, senders := c.targets, slices.Clone(c.senders)
	c.hooks, c.targets = nil, nil
	for _, t := range list {
		next := &target{name: t.Name}
		if i := slices.IndexFunc(old, func(have *target) bool { return have.name == t.Name }); i >= 0 {
			next = old[i]
		}
		u, _ := url.Parse(t.URL) // the settings have checked it
		next.Target, next.state.Name, next.state.Host, next.state.Disabled = t, t.Name, u.Host, false
		c.hooks, c.targets = append(c.hooks, t.Webhook), append(c.targets, next)
	}
	c.mu.Unlock()
	for _, s := range senders {
		s.engine.SetWebhooks(c.hooks)
		s.engine.WakeDeliveries()
	}
}

// States returns the targets and what has come of them.
func (c *Client) States() (list []obs.Webhook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.targets {
		list = append(list, t.state)
	}
	return list
}

// Close closes idle connections. All senders are closed.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

// admits reports whether n more requests to t may begin, and counts them; end must follow for each.
func (c *Client) admits(t *target, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := maxTargetRequests
	if t.state.LastStatus/100 != 2 && t.state.Delivered+t.state.Failed > 0 {
		most = 1
	}
	if t.state.Disabled || t.requests >= most || c.requests >= maxRequests {
		return false
	}
	c.requests, t.requests = c.requests+n, t.requests+n
	return true
}

func (c *Client) end(t *target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, t.requests = c.requests-1, t.requests-1
	for _, s := range c.senders {
		s.engine.WakeDeliveries()
	}
}

// send makes an attempt, and returns the status for FinishDelivery.
func (c *Client) send(ctx context.Context, t *target, d *threadstore.Delivery) (status int) {
	c.mu.Lock()
	to := t.Target
	c.mu.Unlock()
	status, err := c.post(ctx, &to, d)
	if err == nil && status/100 != 2 {
		err = errors.New("status " + strconv.Itoa(status))
	} else if err != nil && ctx.Err() != nil {
		return threadstore.Unattempted
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st, was := &t.state, t.state.LastError
	st.LastStatus, st.LastError = status, ""
	if err == nil {
		st.Delivered++
		return status
	}
	st.Failed++
	if st.LastError = err.Error(); was != st.LastError {
		c.log.Warn("webhook failed", "webhook", t.name, "error", err)
	}
	if status == http.StatusGone && t.URL == to.URL {
		st.Disabled = true
		c.log.Warn("webhook disabled until the next reload", "webhook", t.name)
		return threadstore.Unattempted
	}
	return status
}

// post sends a delivery, and returns the status of the answer, 0 without one.
func (c *Client) post(ctx context.Context, t *Target, d *threadstore.Delivery) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "trunkline",
		"webhook-id": d.ID, "webhook-timestamp": at, "webhook-signature": sign(t.Secret, d.ID, at, d.Body)} {
		req.Header.Set(name, value)
	}
	client := c.public
	if t.Private {
		client = c.private
	}
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error // its text has the whole URL
		if errors.As(err, &of) {
			err = of.Err
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswerBytes) // so that the connection is used again
	return resp.StatusCode, nil
}

// sign returns the signature of Standard Webhooks.
func sign(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sender delivers what one engine has for webhooks. It has one goroutine, and one for each request.
type Sender struct {
	c        *Client
	engine   *threadstore.Engine
	turn     int
	stop     context.CancelFunc
	stopped  chan struct{}
	requests sync.WaitGroup
	cancel   context.CancelFunc
}

// Start has an engine's deliveries sent until Close; its node is the leader.
func (c *Client) Start(e *threadstore.Engine) *Sender {
	s := &Sender{c: c, engine: e, stopped: make(chan struct{})}
	sending, cancel := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(sending)
	s.stop, s.cancel = stop, cancel
	c.replacing.Lock()
	defer c.replacing.Unlock()
	c.mu.Lock()
	c.senders = append(c.senders, s)
	c.mu.Unlock()
	e.SetWebhooks(c.hooks)
	go s.run(ctx, sending)
	return s
}

// Close begins no more requests, and waits for those under way until ctx ends, at most closeWithin.
func (s *Sender) Close(ctx context.Context) {
	if s == nil {
		return
	}
	s.stop()
	<-s.stopped
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	context.AfterFunc(ctx, s.cancel)
	s.requests.Wait()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.senders = slices.DeleteFunc(s.c.senders, func(other *Sender) bool { return other == s })
}

func (s *Sender) run(ctx, sending context.Context) {
	defer close(s.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.engine.DeliveryWork():
		case <-timer.C:
		}
		if s.engine.AwaitDeliveries(ctx) != nil {
			return // ctx has ended, or the journal
		}
		timer.Reset(s.dispatch(sending))
	}
}

// dispatch begins the requests that are due and may begin, and returns when to look again.
func (s *Sender) dispatch(sending context.Context) time.Duration {
	s.c.mu.Lock()
	targets := slices.Clone(s.c.targets)
	s.c.mu.Unlock()
	next := lookEvery.Milliseconds()
	s.turn++ // so that all targets get their requests
	for i := range targets {
		t := targets[(s.turn+i)%len(targets)]
		for s.c.admits(t, 0) {
			d, wait, err := s.engine.TakeDelivery(t.name)
			if err != nil {
				s.c.log.Error("cannot read a message for a webhook", "webhook", t.name, "error", err)
			}
			if d == nil {
				next = min(next, wait)
				break
			}
			if !s.c.admits(t, 1) { // another sender was faster
				s.engine.FinishDelivery(d, threadstore.Unattempted)
				break
			}
			s.requests.Go(func() { s.deliver(sending, t, d) })
		}
	}
	return time.Duration(next) * time.Millisecond
}

func (s *Sender) deliver(ctx context.Context, t *target, d *threadstore.Delivery) {
	defer s.c.end(t)
	status := s.c.send(ctx, t, d)
	if s.engine.FinishDelivery(d, status) {
		s.c.log.Warn("webhook delivery given up", "webhook", t.name, "thread_id", d.Thread, "seq", d.Seq, "status", status)
	}
}
