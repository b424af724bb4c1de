package scale

import (
	"fmt"
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
	s, err := way{}.start(r, fmt.Sprintf("kernel.max_connections=%d", n+spareConns), "kernel.read_timeout_secs=0")
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
		if _, _, err := c.Call("kernel", "GetProcessCounts"); err != nil {
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

// subscribe starts a server and subscribers that take every event as fast as they can, one to a
// connection.
func subscribe(r *part.Run, n int) (s *server, readers *load.Session, err error) {
	s, err = way{name: fmt.Sprintf("%d subscribers", n)}.start(r, fmt.Sprintf("kernel.max_connections=%d", n+spareConns))
	if err != nil {
		return nil, nil, err
	}
	readers, err = load.Subscribe(s.Addr, eventType, n)
	return s, readers, err
}

// subscribers measures a publisher beside crowds of all sizes in turns. An event costs what a
// request of the publisher does over the subscribers that it reaches. With one event in flight
// every delivery is a write to a socket of its own, which the kernel's price bounds: it is
// reported, and the goal is about a pipelined publisher.
func subscribers(r *part.Run) error {
	sizes, depths := tens(1, min(mostSubscribers, r.Many)), []int{depth, 1}
	var steps []goal.Step
	var all []*server
	var readers []*load.Session
	for _, n := range sizes {
		s, each, err := subscribe(r, n)
		if err != nil {
			return err
		}
		for _, d := range depths {
			cfg := load.Config{Addr: s.Addr, Tapes: []*load.Tape{load.TapeOf(load.Publish(eventType, eventText, "scale"))}, Depth: d, CPUs: s.cpus}
			steps = append(steps, r.Step(s.published(d), s.Server, cfg))
		}
		all, readers = append(all, s), append(readers, each)
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	chart := goal.Chart{Name: "subscribers", Title: "What an event costs as subscribers grow", X: "subscribers", Y: "server CPU µs/event delivered"}
	lost := goal.Grid{Title: "Events, and those dropped because a subscriber was behind", Head: []string{"subscribers", "delivered", "dropped"}}
	g := goal.Goal{ID: "G9", What: "server CPU µs per event delivered", Must: 0.2, Moonshot: 0.1}
	for i, n := range sizes {
		for _, d := range depths {
			cost := r.Report.Median(all[i].published(d), micros) / float64(n)
			chart.Add(fmt.Sprintf("%d in flight", d), float64(n), cost)
			if n == evaluatedCrowd && d == depth {
				g.Add(all[i].published(d).String(), cost)
			}
		}
		m, err := all[i].Metrics()
		if err != nil {
			return err
		}
		lost.Add(n, readers[i].Chunks()-uint64(n), int(m["trunkline_bus_events_dropped_total"]))
	}
	r.Report.Chart(chart)
	r.Report.Table(lost)
	r.Report.Goal(g)
	return nil
}

func (s *server) published(depth int) goal.Cell {
	return goal.Cell{Server: s.name, Method: "Publish", Conns: 1, Depth: depth}
}
