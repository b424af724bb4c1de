package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// ProjectsPart measures projects beside a trivial tool and the message bus.
func ProjectsPart() part.Part {
	return common(part.Part{
		Name: "projects", What: "projects: commands beside a trivial tool, events beside the message bus",
		Run: func(r *part.Run) error {
			p := &projects{bench: bench{Run: r}}
			err := p.measure(p.start, p.addCommands, p.addEvents)
			r.StopAll()
			for _, s := range p.watching {
				_, _ = s.Stop() // the server ended before it
			}
			return err
		},
	})
}

type projects struct {
	bench
	server           *load.Server
	lines, tools, id string
	watching         []*load.Session // the subscribers
	made             int             // publishers so far
}

func (p *projects) start() error {
	s, err := startMore(p.Run, memory, "exacta.listen_addr=127.0.0.1:0", "exacta.loops="+strconv.Itoa(p.Loops), "exacta.debug_commands=on")
	if err != nil {
		return err
	}
	p.server, p.lines, p.tools = s, s.Listener("exacta"), s.Listener("toolhost")
	root := filepath.Join(p.Rig.Dir, "project")
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(filepath.Join(root, "go.mod"), []byte("module bench\n"), 0o600)); err != nil {
		return err
	}
	if p.id, err = ask(p.lines, once("1", "OpenProject", fmt.Sprintf(`{"path":%q}`, root)), `"project_id":"([^"]+)"`); err != nil {
		return fmt.Errorf("cannot open a project: %w", err)
	}
	return nil
}

// request is one request; cell and conn keep its request_id apart from those of others.
func request(cell, conn int, command, payload string) string {
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"request","request_id":"%08x-%04x-4000-8000-%s","sent_at":"2026-01-15T00:00:00.000Z","command":%q,"payload":%s}`+"\n",
		cell, conn, load.Placeholder, command, payload)
}

// once is a request that is sent once; n is a digit.
func once(n, command, payload string) string {
	return strings.Replace(request(0, 0, command, payload), load.Placeholder, strings.Repeat(n, len(load.Placeholder)), 1)
}

const (
	projectAnswer = `{"ipc_version":"1.0","type":"response",`
	projectEvent  = `{"ipc_version":"1.0","type":"event",`
	projectAck    = `{"ipc_version":"1.0","type":"ack",`
)

// addCommands adds commands that the project's state refuses, after a look at a refusal, beside the
// tool that does nothing.
func (p *projects) addCommands() error {
	payload := fmt.Sprintf(`{"project_id":%q,"execution_id":"00000000-0000-4000-8000-000000000001"}`, p.id)
	if _, err := ask(p.lines, once("2", "Pause", payload), `"code":"(ST-001)"`); err != nil {
		return fmt.Errorf("cannot measure a refusal: %w", err)
	}
	for i, at := range []size{{1, 64}, polled} {
		noop := p.addNoop(p.server, p.tools, at)
		tapes := each(at.conns, nil, func(conn int) string { return request(1<<16+i, conn, "Pause", payload) })
		pause := p.add("projects", "Pause, refused", p.server, answers(p.Run, p.lines, tapes, at.depth, projectAnswer))
		p.compare("commands / a trivial tool", 0.3, pause, noop)
	}
	return nil
}

const (
	subscribers  = 100
	eventsPerSec = 1000
	// What is published on the bus: a chunk has about as many bytes then as the event of a project.
	eventType = "store.tick"
	eventText = 352
)

// addEvents connects the subscribers and adds the cells of events: one each pace, which the goal is
// about, and as many as can be. Those of a project come one by one, each from some work that was
// done, while the bus publishes what it has read together and sends it with one write.
func (p *projects) addEvents() error {
	constant := func(s string) func(int) string { return func(int) string { return s } }
	subscribe := fmt.Sprintf(`{"ipc_version":"1.0","type":"subscribe","request_id":"00000000-0000-4000-8000-000000000002","sent_at":"2026-01-15T00:00:00.000Z","project_id":%q}`+"\n", p.id)
	silent := fmt.Sprintf(`{"ipc_version":"1.0","type":"ack","project_id":%q,"stream_seq":0}`+"\n", p.id) // it is never answered
	ours := answers(p.Run, p.lines, each(subscribers, constant(subscribe), constant(silent)), 1, projectAnswer)
	ours.Greeted, ours.Event = projectAck, projectEvent
	onBus := string(load.NewRequest("commbus", "Subscribe", "event_types", []string{eventType}))
	project, err := p.watch("projects", ours)
	if err != nil {
		return err
	}
	bus, err := p.watch("bus", p.Config(p.server.Addr, load.Kernel, each(subscribers, nil, constant(onBus)), 1))
	if err != nil {
		return err
	}
	for i, depth := range []int{1, polled.depth} {
		a, b := p.deliver("projects", project, depth), p.deliver("bus", bus, depth)
		p.after = append(p.after, func() error {
			g := goal.Goal{What: fmt.Sprintf("projects: CPU per event / bus, %d at a time", depth), Must: []float64{1.5, 0}[i]}
			g.Add(strconv.Itoa(subscribers)+" subscribers", p.Report.Ratio(a, b, goal.CPU))
			p.Report.Goal(g)
			return nil
		})
	}
	return nil
}

// watch connects the subscribers, and publishes single events until all get one.
func (p *projects) watch(server string, cfg load.Config) (*load.Session, error) {
	s, err := load.Start(cfg)
	if err != nil {
		return nil, err
	}
	p.watching = append(p.watching, s)
	single := p.publisher(server)
	single.Once = true
	for end := time.Now().Add(askTimeout); time.Now().Before(end); {
		before := s.Chunks()
		if _, err := load.RunToEnd(single); err != nil {
			return nil, err
		}
		if time.Sleep(100 * time.Millisecond); s.Chunks() == before+subscribers {
			return s, nil
		}
	}
	return nil, fmt.Errorf("cannot reach all subscribers of %s with an event", server)
}

// publisher has events made. A set of diffs that is none is refused with an event, and touches no
// file.
func (p *projects) publisher(server string) load.Config {
	event := string(load.Publish(eventType, eventText, "store"))
	cfg := p.Config(p.server.Addr, load.Kernel, nil, polled.depth)
	if server == "projects" {
		p.made++
		event = request(p.made, 0, "ApplyDiffSet", fmt.Sprintf(`{"project_id":%q,"diffs":["x"]}`, p.id))
		cfg.Addr, cfg.Protocol, cfg.Good, cfg.Event = p.lines, load.Lines, projectAnswer, projectEvent
	}
	cfg.Tapes = each(1, nil, func(int) string { return event })
	return cfg
}

// deliver adds the cell of what an event delivered costs: a request of the sample is one. They are
// made one at a time, or as fast as they can be with so many in flight.
func (p *projects) deliver(server string, readers *load.Session, depth int) goal.Cell {
	c := cell(server, "events delivered", size{subscribers, depth})
	p.steps = append(p.steps, goal.One(c, func() (s goal.Sample, err error) {
		cfg := p.publisher(server)
		if depth == 1 {
			cfg.PerSec = eventsPerSec
		}
		publisher, err := load.Start(cfg)
		if err != nil {
			return s, err
		}
		time.Sleep(p.Warmup)
		w, err := load.OpenWindow(p.server.PID(), readers.Chunks())
		if err == nil {
			time.Sleep(p.Window)
			s, err = w.Close(readers.Chunks())
		}
		_, stopErr := publisher.Stop()
		return s, errors.Join(err, stopErr)
	}))
	return c
}
