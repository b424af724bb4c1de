package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of what is followed.
const (
	maxTails     = 16  // lists of types that are followed at a time
	maxTailTypes = 16  // types of one list
	tailEvents   = 256 // events kept of each
	// lingerFor is how long events are kept for without a viewer, so that one that lost its
	// connection misses nothing.
	lingerFor = 30 * time.Second
)

// errTails is returned while maxTails lists of types have viewers.
var errTails = fmt.Errorf("%d lists of types are followed already; close one and try again", maxTails)

// errClosed is returned once the console is closed.
var errClosed = errors.New("the server stops")

// tails are the lists of types that are followed. Viewers of the same list share one subscription.
type tails struct {
	running   context.Context
	subscribe func(ctx context.Context, types []string) (Subscription, error)
	linger    time.Duration

	mu     sync.Mutex
	byName map[string]*tail
	ended  bool
	loops  sync.WaitGroup // Add only under mu while not ended
}

// tail is the last events of a list of types.
type tail struct {
	name string
	// epoch begins the ids of its events: those of another tail mean nothing to it.
	epoch  string
	cancel context.CancelFunc
	live   chan struct{} // closed once the subscription is there, or err is set

	viewers int         // guarded by tails.mu
	idle    *time.Timer // guarded by tails.mu; ends it when no viewer comes

	mu     sync.Mutex
	events []row // oldest first, at most tailEvents
	last   uint64
	err    error
	news   chan struct{} // closed when something was added
}

// row is an event as pages and live views show it. Its number is its place in the tail.
type row struct {
	Number  uint64    `json:"number"`
	At      time.Time `json:"at"`
	Clock   string    `json:"clock"`
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	Payload string    `json:"payload"`
	// Gap describes events that are missing at this place; empty: none are.
	Gap string `json:"gap,omitempty"`
}

func (t *tails) init(running context.Context, subscribe func(ctx context.Context, types []string) (Subscription, error)) {
	t.running, t.subscribe, t.linger, t.byName = running, subscribe, lingerFor, map[string]*tail{}
}

// open returns the tail of some types for one viewer, who calls leave in the end. A new one is live
// when open returns.
func (t *tails) open(ctx context.Context, types []string) (*tail, error) {
	one, err := t.join(types)
	if err != nil {
		return nil, err
	}
	select {
	case <-one.live:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		one.mu.Lock()
		err = one.err
		one.mu.Unlock()
	}
	if err != nil {
		t.leave(one)
		return nil, err
	}
	return one, nil
}

// join adds a viewer to a tail, which it starts if need be.
func (t *tails) join(types []string) (*tail, error) {
	name := strings.Join(types, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errClosed
	}
	one := t.byName[name]
	if one == nil {
		if len(t.byName) >= maxTails && !t.evict() {
			return nil, errTails
		}
		ctx, cancel := context.WithCancel(t.running)
		one = &tail{name: name, epoch: rand.Text()[:8], cancel: cancel, live: make(chan struct{}), news: make(chan struct{})}
		t.byName[name] = one
		t.loops.Go(func() { t.follow(ctx, one, types) })
	}
	one.viewers++
	if one.idle != nil {
		one.idle.Stop()
		one.idle = nil
	}
	return one, nil
}

// evict ends a tail without a viewer. Caller holds mu.
func (t *tails) evict() bool {
	for _, one := range t.byName {
		if one.viewers == 0 {
			t.drop(one)
			return true
		}
	}
	return false
}

// drop ends a tail. Caller holds mu.
func (t *tails) drop(one *tail) {
	if t.byName[one.name] == one {
		delete(t.byName, one.name)
	}
	if one.idle != nil {
		one.idle.Stop()
	}
	one.cancel()
}

// leave takes a viewer off a tail, which ends if none comes for a while.
func (t *tails) leave(one *tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.viewers--
	if one.viewers > 0 || t.ended {
		return
	}
	one.idle = time.AfterFunc(t.linger, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.viewers == 0 {
			t.drop(one)
		}
	})
}

// close ends all tails and waits for them.
func (t *tails) close() {
	t.mu.Lock()
	t.ended = true
	for _, one := range t.byName {
		t.drop(one)
	}
	t.mu.Unlock()
	t.loops.Wait()
}

// follow adds the events of a subscription to a tail until it ends. The next viewer of the same
// types gets a new tail.
func (t *tails) follow(ctx context.Context, one *tail, types []string) {
	started, cancel := context.WithTimeout(ctx, callWithin)
	sub, err := t.subscribe(started, types)
	cancel()
	if err != nil {
		one.end(err)
		close(one.live)
	} else {
		close(one.live)
		for {
			e, err := sub.Next(ctx)
			if err != nil {
				one.end(err)
				break
			}
			one.add(&e)
		}
		sub.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(one)
}

// end has the viewers of a tail leave it.
func (one *tail) end(err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.err = err
	close(one.news)
	one.news = nil
}

// add adds an event.
func (one *tail) add(e *Event) {
	r := row{At: e.At, Clock: e.At.UTC().Format("15:04:05.000"), Type: e.Type, Source: e.Source, Payload: clip(e.Payload)}
	if e.Gap {
		r.Gap = missing(uint64(max(e.Dropped, 0)))
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.last++
	r.Number = one.last
	if len(one.events) == tailEvents {
		one.events = append(one.events[:0], one.events[1:]...)
	}
	one.events = append(one.events, r)
	close(one.news)
	one.news = make(chan struct{})
}

// missing describes a number of events that are not shown.
func missing(n uint64) string {
	switch n {
	case 0:
		return "events are missing here"
	case 1:
		return "1 event is missing here"
	}
	return group(strconv.FormatUint(n, 10)) + " events are missing here"
}

// since returns the events behind a number, how many of them are not kept any more, and what is
// closed when there are further ones. err is why there will be none.
func (one *tail) since(after uint64) (rows []row, lost uint64, news <-chan struct{}, err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	first := one.last - uint64(len(one.events)) + 1
	if after+1 < first {
		lost, after = first-1-after, first-1
	}
	if after < one.last {
		rows = slices.Clone(one.events[after+1-first:])
	}
	return rows, lost, one.news, one.err
}

// id returns the id of an event.
func (one *tail) id(number uint64) string { return one.epoch + "-" + strconv.FormatUint(number, 10) }

// place returns the number of the event of an id. ok is false for that of another tail.
func (one *tail) place(id string) (number uint64, ok bool) {
	text, ok := strings.CutPrefix(id, one.epoch+"-")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(text, 10, 64)
	one.mu.Lock()
	defer one.mu.Unlock()
	return number, err == nil && number <= one.last
}

// types returns the list of types that a request asks for, sorted.
func (q *query) types() ([]string, error) {
	list := strings.Fields(q.text("type"))
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 0 || len(list) > maxTailTypes {
		return nil, badf("type names 1 to %d types of events, separated by spaces", maxTailTypes)
	}
	return list, nil
}

// topicView is the events of a list of types that are kept, newest first.
type topicView struct {
	Types  []string `json:"types"`
	Events []row    `json:"events"`
	// Live is the path of what follows.
	Live string `json:"live"`
	Max  int    `json:"-"`
}

func loadTopic(c *Console, r *http.Request, q *query) (any, error) {
	types, err := q.types()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), callWithin)
	defer cancel()
	one, err := c.tails.open(ctx, types)
	if err != nil {
		return nil, err
	}
	defer c.tails.leave(one)
	rows, _, _, _ := one.since(0)
	last := uint64(0)
	if len(rows) > 0 {
		last = rows[len(rows)-1].Number
	}
	slices.Reverse(rows)
	if rows == nil {
		rows = []row{}
	}
	own := query{values: url.Values{"type": {strings.Join(types, " ")}}}
	return &topicView{Types: types, Events: rows, Live: own.with(root+"topic/live", "last_event_id", one.id(last)), Max: tailEvents}, nil
}
