package scale

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	eventType = "scale.tick"
	// eventText is the text of an event: with its quotes about 100 bytes of JSON.
	eventText = 98
	// mostSubscribers is the largest crowd, evaluatedCrowd the one that the goal is about.
	mostSubscribers, evaluatedCrowd = 1000, 100
	// settle is how long a server may take to put away what it needed to greet a crowd.
	settle = 300 * time.Millisecond
	// idleRounds is how often a crowd is measured at the most: each time needs a new server.
	idleRounds = 3
)

// idle measures what a server holds for connections over TCP that asked once and are silent since.
// What the kernel holds for a socket is no memory of the process and is not in it.
func idle(r *part.Run) error {
	memory := goal.Chart{Name: "idle", Title: "Resident memory of an idle TCP connection, without what the kernel holds", X: "connections", Y: "bytes/connection"}
	g := goal.Goal{ID: "G10", What: "resident bytes per idle connection", Must: 3072, Moonshot: 2048}
	for _, n := range tens(min(1000, r.Many), r.Many) {
		var each []float64
		for range min(r.Options.Rounds, idleRounds) {
			v, err := silent(r, n)
			if err != nil {
				return err
			}
			each = append(each, v)
		}
		memory.Add("RSS", float64(n), goal.Median(each))
		g.Add(count(n)+" connections", goal.Median(each))
	}
	r.Report.Chart(memory)
	r.Report.Goal(g)
	return nil
}

// silent opens n connections to a server of its own, one after the other, and returns by how many
// bytes each made it grow. The first connection is not counted: with it comes what a server makes
// once.
func silent(r *part.Run, n int) (each float64, err error) {
	s, err := way{}.start(r, 0, fmt.Sprintf("kernel.max_connections=%d", n+spareConns), "kernel.read_timeout_secs=0")
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	var before load.Memory
	for i := range n + 1 {
		c, err := load.Dial(s.Addr)
		if err != nil {
			return 0, err
		}
		defer c.Conn.Close() // without keeping the client's buffers
		if _, _, err := c.Call("idle", "kernel", "GetProcessCounts"); err != nil {
			return 0, fmt.Errorf("cannot use connection %d of %d: %w", i, n, err)
		}
		if i == 0 {
			time.Sleep(settle)
			if before, err = s.Memory(); err != nil {
				return 0, err
			}
		}
	}
	time.Sleep(settle)
	after, err := s.Memory()
	return float64(after.RSS-before.RSS) / float64(n), err
}

// crowd is a server with subscribers that take every event as fast as they can.
type crowd struct {
	*server
	size    int
	readers *load.Session
}

// subscribe starts a server and its subscribers, one to a connection, and waits until the server
// counts them all.
func subscribe(r *part.Run, n int) (c *crowd, err error) {
	c = &crowd{size: n}
	if c.server, err = (way{name: fmt.Sprintf("%d subscribers", n)}).start(r, 0, fmt.Sprintf("kernel.max_connections=%d", n+spareConns)); err != nil {
		return nil, err
	}
	var tapes []*load.Tape
	for range n {
		tapes = append(tapes, tapeOf(load.CountedRequest(0, "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}})))
	}
	// The one request of a connection is never answered: what comes are the chunks of its stream.
	if c.readers, err = load.Start(load.Config{Addr: c.Addr, Tapes: tapes, Depth: 1}); err != nil {
		return nil, err
	}
	return c, until("all subscribers are there", func() bool {
		m, err := c.Metrics()
		return err == nil && int(m["trunkline_bus_subscribers"]) == n
	})
}

func (c *crowd) cell(depth int) goal.Cell {
	return goal.Cell{Server: c.name, Method: "Publish", Conns: 1, Depth: depth}
}

// deliver is the step that publishes over one connection and counts what reaches the subscribers: a
// request of its sample is an event delivered, and its CPU has the publisher's request in it.
func (c *crowd) deliver(r *part.Run, depth int) goal.Step {
	tape := tapeOf(publishRequest(eventText))
	return goal.One(c.cell(depth), func() (s goal.Sample, err error) {
		session, err := load.Start(load.Config{Addr: c.Addr, Tapes: []*load.Tape{tape}, Depth: depth})
		if err != nil {
			return s, err
		}
		time.Sleep(r.Warmup)
		before := c.readers.Chunks()
		w, err := load.OpenWindow(c.PID(), before)
		if err == nil {
			time.Sleep(r.Window)
			err = until("an event is delivered", func() bool { return c.readers.Chunks() > before })
		}
		if err == nil {
			s, err = w.Close(c.readers.Chunks())
		}
		_, stopErr := session.Stop()
		return s, errors.Join(err, stopErr)
	})
}

// publishRequest publishes n bytes of text.
func publishRequest(n int) []byte {
	return load.CountedRequest(0, "commbus", "Publish", load.Field{Key: "event_type", Value: eventType},
		load.Field{Key: "payload", Value: strconv.Quote(strings.Repeat("x", n))}, load.Field{Key: "source", Value: "scale"})
}

// subscribers measures crowds of all sizes in turns. With one event in flight every delivery is a
// write to a socket of its own, which the kernel's price bounds: it is reported, and the goal is
// about a pipelined publisher.
func subscribers(r *part.Run) error {
	var steps []goal.Step
	var all []*crowd
	for _, n := range tens(1, min(mostSubscribers, r.Many)) {
		c, err := subscribe(r, n)
		if err != nil {
			return err
		}
		defer func() {
			c.Stop()
			_, _ = c.readers.Stop() // they complain that no request was answered
		}()
		all, steps = append(all, c), append(steps, c.deliver(r, depth), c.deliver(r, 1))
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	chart := goal.Chart{Name: "subscribers", Title: "What an event costs as subscribers grow", X: "subscribers", Y: "server CPU µs/event delivered"}
	lost := goal.Grid{Title: "Events dropped because a subscriber was behind", Head: []string{"subscribers", "dropped", "of"}}
	g := goal.Goal{ID: "G9", What: "server CPU µs per event delivered", Must: 0.2, Moonshot: 0.1}
	for _, c := range all {
		for _, d := range []int{depth, 1} {
			chart.Add(fmt.Sprintf("%d in flight", d), float64(c.size), r.Report.Median(c.cell(d), micros))
		}
		if c.size == evaluatedCrowd {
			g.Add(fmt.Sprintf("%s, %d in flight", c.name, depth), r.Report.Median(c.cell(depth), micros))
		}
		m, err := c.Metrics()
		if err != nil {
			return err
		}
		lost.Add(c.size, int(m["trunkline_bus_events_dropped_total"]), int(m["trunkline_bus_events_published_total"])*c.size)
	}
	r.Report.Chart(chart)
	r.Report.Table(lost)
	r.Report.Goal(g)
	return nil
}
