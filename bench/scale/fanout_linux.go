package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	eventType = "scale.tick"
	// eventText is the text of an event: with its quotes about 100 bytes of JSON.
	eventText = 98
	// evaluatedSubscribers is the crowd that the goal is about.
	evaluatedSubscribers = 100
)

// crowd is a server with subscribers that take every event as fast as they can.
type crowd struct {
	*load.Server
	admin   string
	size    int
	readers *load.Session
}

// subscribe starts a server and its subscribers, one to a connection, and waits until the server
// counts them all.
func (b *bench) subscribe(n int) (*crowd, error) {
	s, err := b.start(fmt.Sprintf("kernel.max_connections=%d", n+spareConns))
	if err != nil {
		return nil, err
	}
	c := &crowd{Server: s, size: n}
	if c.admin, err = adminOf(s); err != nil {
		return nil, err
	}
	var tapes []*load.Tape
	for range n {
		tape := new(load.Tape)
		tape.Add(0, load.AppendRequest(nil, "sub", "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}}))
		tapes = append(tapes, tape)
	}
	// The one request of a connection is never answered: what comes are the chunks of its stream.
	if c.readers, err = load.Start(load.Config{Addr: s.Addr, Tapes: tapes, Depth: 1}); err != nil {
		return nil, err
	}
	return c, c.await()
}

func (c *crowd) await() error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		m, err := load.Metrics(c.admin)
		if err != nil {
			return err
		}
		if n := int(m["trunkline_bus_subscribers"]); n == c.size {
			return nil
		} else if time.Now().After(end) {
			return fmt.Errorf("cannot publish: %d of %d subscribers are there", n, c.size)
		}
	}
}

// stop ends the server, and with it the subscribers: they complain that no client answered, which
// was clear.
func (c *crowd) stop() {
	c.Stop()
	_, _ = c.readers.Stop()
}

// deliver is the step that publishes over one connection and counts what reaches the subscribers: a
// request of its sample is an event delivered.
func (b *bench) deliver(c *crowd, depth int, lost *lostEvents) goal.Step {
	tape := new(load.Tape)
	tape.Add(0, publishRequest(eventText))
	cfg := load.Config{Addr: c.Addr, Tapes: []*load.Tape{tape}, Depth: depth}
	return goal.One(fanCell(c.size, depth), func() (goal.Sample, error) {
		before, err := load.Metrics(c.admin)
		if err != nil {
			return goal.Sample{}, err
		}
		session, err := load.Start(cfg)
		if err != nil {
			return goal.Sample{}, err
		}
		s, err := b.window(c)
		_, stopErr := session.Stop()
		if err := errors.Join(err, stopErr); err != nil {
			return s, err
		}
		after, err := load.Metrics(c.admin)
		lost.add(before, after, c.size)
		return s, err
	})
}

func (b *bench) window(c *crowd) (goal.Sample, error) {
	time.Sleep(b.o.warmup)
	w, err := load.OpenWindow(c.PID(), c.readers.Chunks())
	if err != nil {
		return goal.Sample{}, err
	}
	time.Sleep(b.o.window)
	return w.Close(c.readers.Chunks())
}

// lostEvents adds up what the bus dropped because a subscriber was behind.
type lostEvents struct{ dropped, published float64 }

func (l *lostEvents) add(before, after map[string]float64, subscribers int) {
	change := func(name string) float64 { return after[name] - before[name] }
	l.dropped += change("trunkline_bus_events_dropped_total")
	l.published += change("trunkline_bus_events_published_total") * float64(subscribers)
}

// share is the part of all deliveries that was dropped.
func (l *lostEvents) share() float64 { return l.dropped / max(l.published, 1) }

// publishRequest publishes n bytes of text.
func publishRequest(n int) []byte {
	return load.CountedRequest(0, "commbus", "Publish", load.Field{Key: "event_type", Value: eventType},
		load.Field{Key: "payload", Value: strconv.Quote(strings.Repeat("x", n))}, load.Field{Key: "source", Value: "scale"})
}

func fanCell(subscribers, depth int) goal.Cell {
	return goal.Cell{Server: fmt.Sprintf("%d subscribers", subscribers), Method: "Publish", Conns: 1, Depth: depth}
}

// fanout measures crowds of all sizes in turns.
func (b *bench) fanout() error {
	sizes := tens(1, b.o.subscribers)
	var steps []goal.Step
	lost := make([]lostEvents, 2*len(sizes))
	for i, n := range sizes {
		c, err := b.subscribe(n)
		if err != nil {
			return err
		}
		defer c.stop()
		steps = append(steps, b.deliver(c, depth, &lost[2*i]), b.deliver(c, 1, &lost[2*i+1]))
	}
	samples, err := b.rounds(steps)
	if err != nil {
		return err
	}
	b.r.fanout(sizes, samples, lost)
	return nil
}

// fanout makes a chart, a table and the goal. With one event in flight every delivery is a write to
// a socket of its own, which the kernel's price bounds: it is reported, and the goal is about a
// pipelined publisher.
func (r *report) fanout(sizes []int, samples []goal.Sample, lost []lostEvents) {
	chart := goal.Chart{Name: "fanout", Title: "What an event costs as subscribers grow", X: "subscribers", Y: "server CPU µs/event delivered"}
	t := grid{Name: "fanout", Title: "Events delivered to subscribers of one publisher",
		Head: []string{"subscribers", "in flight", "events delivered/s", "server CPU µs/event", "dropped %"}}
	g := goal.Goal{ID: "G9", What: "server CPU µs per event delivered", Must: 0.5, Moonshot: 0.25}
	for i, n := range sizes {
		for k, d := range []int{depth, 1} {
			at := fanCell(n, d)
			cost := median(samples, at, micros)
			chart.Add(fmt.Sprintf("%d in flight", d), float64(n), cost)
			t.Rows = append(t.Rows, []string{fmt.Sprint(n), fmt.Sprint(d), figure(median(samples, at, goal.Rate)), figure(cost), figure(100 * lost[2*i+k].share())})
			if n == evaluatedSubscribers && d == depth {
				g.Add(fmt.Sprintf("%d subscribers, %d in flight", n, d), cost)
			}
		}
	}
	r.Charts, r.Tables = append(r.Charts, chart), append(r.Tables, t)
	r.evaluate(g)
}
