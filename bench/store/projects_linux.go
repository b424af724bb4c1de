package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
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
			p := &projects{bench: bench{Run: r}, watching: map[string]*load.Session{}}
			err := p.measure(projectGoals, p.start, p.watch, p.addCells)
			r.StopAll()
			for _, s := range p.watching {
				_, _ = s.Stop() // the server ended before it
			}
			return err
		},
	})
}

// Servers and methods as they stand in the table.
const (
	projectServer = "projects"
	busServer     = "bus"
	pauseIdle     = "Pause, refused"
	delivered     = "events delivered"
	subscribers   = 100
)

// pace is the time between two events of a cell that asks for one at a time.
const pace = time.Millisecond

// What is published on the bus: a chunk has about as many bytes then as the event of a project.
const (
	eventType = "store.tick"
	eventText = 352
)

// How the messages of a server of projects begin.
const (
	projectAnswer = `{"ipc_version":"1.0","type":"response",`
	projectEvent  = `{"ipc_version":"1.0","type":"event",`
	projectAck    = `{"ipc_version":"1.0","type":"ack",`
)

// projects is the server of projects, of tools, and of the bus, and its one project.
type projects struct {
	bench
	server           *load.Server
	lines, tools, id string
	watching         map[string]*load.Session // the subscribers, by server
	made             int                      // publishers so far
}

// start starts the server, opens the project, and has a look at what a cell is answered.
func (p *projects) start() error {
	more := []string{"exacta.listen_addr=127.0.0.1:0", "exacta.loops=" + strconv.Itoa(p.Loops), "exacta.debug_commands=on"}
	s, at, err := startMore(p.Run, projectServer, memory, more, "exacta", "toolhost")
	if err != nil {
		return err
	}
	p.server, p.lines, p.tools = s, at[0], at[1]
	root := filepath.Join(p.Rig.Dir, "project")
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(filepath.Join(root, "go.mod"), []byte("module bench\n"), 0o600)); err != nil {
		return err
	}
	once := func(n int, command, payload string) []byte {
		return []byte(strings.ReplaceAll(request(0, n, command, payload), load.ShortPlaceholder, "000000000000"))
	}
	if p.id, err = ask(p.lines, once(1, "OpenProject", fmt.Sprintf(`{"path":%q}`, root)), `"project_id":"([^"]+)"`); err != nil {
		return fmt.Errorf("cannot open a project: %w", err)
	}
	if _, err = ask(p.lines, once(2, "Pause", p.pausePayload()), `"code":"(ST-001)"`); err != nil {
		return fmt.Errorf("cannot measure a refusal: %w", err)
	}
	return nil
}

// request is one request; cell and conn keep its request_id apart from those of others.
func request(cell, conn int, command, payload string) string {
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"request","request_id":"%08x-%04x-4000-8000-%s","sent_at":"2026-01-15T00:00:00.000Z","command":%q,"payload":%s}`+"\n",
		cell, conn, load.ShortPlaceholder, command, payload)
}

func (p *projects) pausePayload() string {
	return fmt.Sprintf(`{"project_id":%q,"execution_id":"00000000-0000-4000-8000-000000000001"}`, p.id)
}

// watch connects the subscribers, and waits until all get an event.
func (p *projects) watch() error {
	subscribe := fmt.Sprintf(`{"ipc_version":"1.0","type":"subscribe","request_id":"00000000-0000-4000-8000-000000000002","sent_at":"2026-01-15T00:00:00.000Z","project_id":%q}`+"\n", p.id)
	silent := fmt.Sprintf(`{"ipc_version":"1.0","type":"ack","project_id":%q,"stream_seq":0}`+"\n", p.id) // it is never answered
	constant := func(s string) func(int) string { return func(int) string { return s } }
	ours := p.Config(p.lines, load.Answers, each(subscribers, constant(subscribe), constant(silent)), 1)
	ours.Good, ours.Greeted, ours.Event = projectAnswer, projectAck, projectEvent
	onBus := load.AppendRequest(nil, "sub", "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}})
	for server, cfg := range map[string]load.Config{projectServer: ours,
		busServer: p.Config(p.server.Addr, load.Kernel, each(subscribers, nil, constant(string(onBus))), 1)} {
		s, err := load.Start(cfg)
		if err != nil {
			return err
		}
		p.watching[server] = s
		if err := p.await(server, s); err != nil {
			return err
		}
	}
	return nil
}

// await publishes single events until all subscribers get one.
func (p *projects) await(server string, s *load.Session) error {
	once := p.publisher(server, 1)
	once.Once = true
	for end := time.Now().Add(askTimeout); time.Now().Before(end); {
		before := s.Chunks()
		publisher, err := load.Start(once)
		if err != nil {
			return err
		}
		if _, err := publisher.Wait(); err != nil {
			return err
		}
		for i := 0; i < 10 && s.Chunks() < before+subscribers; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		if s.Chunks() == before+subscribers {
			return nil
		}
	}
	return fmt.Errorf("cannot reach all subscribers of %s with an event", server)
}

// event is what has an event made, and where: a set of diffs that is none, which is refused with an
// event and touches no file, or a message. That of a project holds a placeholder.
func (p *projects) event(server string) (addr, frame string) {
	if server == projectServer {
		p.made++
		return p.lines, request(p.made, 0, "ApplyDiffSet", fmt.Sprintf(`{"project_id":%q,"diffs":["x"]}`, p.id))
	}
	return p.server.Addr, string(load.CountedRequest(0, "commbus", "Publish", text("event_type", eventType),
		text("payload", strconv.Quote(strings.Repeat("x", eventText))), text("source", "store")))
}

// publisher has events made as fast as they can be, so many at a time.
func (p *projects) publisher(server string, depth int) load.Config {
	addr, frame := p.event(server)
	cfg := p.Config(addr, load.Kernel, each(1, nil, func(int) string { return frame }), depth)
	if server == projectServer {
		cfg.Protocol, cfg.Good, cfg.Event = load.Answers, projectAnswer, projectEvent
	}
	return cfg
}

// publish has events made: one each pace for a depth of 1, and so many at a time otherwise. stop
// ends it, and returns what went wrong.
func (p *projects) publish(server string, depth int) (stop func() error, err error) {
	if depth > 1 {
		session, err := load.Start(p.publisher(server, depth))
		return func() error { _, err := session.Stop(); return err }, err
	}
	addr, frame := p.event(server)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	ended, done := make(chan struct{}), make(chan error)
	go func() { _, _ = io.Copy(io.Discard, c) }() // it ends with the connection
	go func() { done <- keepPace(c, []byte(frame), ended) }()
	return func() error {
		close(ended)
		return errors.Join(<-done, c.Close())
	}, nil
}

// keepPace writes a frame each pace until ended is closed.
func keepPace(w io.Writer, frame []byte, ended <-chan struct{}) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ended:
			return nil
		case <-tick.C:
			if _, err := w.Write(bytes.Replace(frame, []byte(load.ShortPlaceholder), fmt.Appendf(nil, "%012x", n), 1)); err != nil {
				<-ended
				return err
			}
		}
	}
}

// deliver measures what an event delivered costs: a request of the sample is one.
func (p *projects) deliver(c goal.Cell) goal.Step {
	return goal.One(c, func() (goal.Sample, error) {
		stop, err := p.publish(c.Server, c.Depth)
		if err != nil {
			return goal.Sample{}, err
		}
		s, err := p.window(p.watching[c.Server])
		return s, errors.Join(err, stop())
	})
}

func (p *projects) window(readers *load.Session) (goal.Sample, error) {
	time.Sleep(p.Warmup)
	w, err := load.OpenWindow(p.server.PID(), readers.Chunks())
	if err != nil {
		return goal.Sample{}, err
	}
	time.Sleep(p.Window)
	return w.Close(readers.Chunks())
}

// controlSizes are those of the goal about commands, and eventDepths how many events are asked for
// at a time. The goal is about one each pace: those of a project come one by one, each from some
// work that was done, while the bus publishes what it has read together and sends it with one
// write.
var (
	controlSizes = []size{{1, 64}, polled}
	eventDepths  = []int{1, polled.depth}
)

func deliveries(server string, depth int) goal.Cell {
	return over(viaLines, server, delivered, size{subscribers, depth})
}

// addCells adds the cells of one round: what is compared stands side by side.
func (p *projects) addCells() error {
	for i, at := range controlSizes {
		p.addNoop(p.server, p.tools, at)
		pause := each(at.conns, nil, func(conn int) string { return request(1<<16+i, conn, "Pause", p.pausePayload()) })
		p.add(over(viaLines, projectServer, pauseIdle, at), p.server, answers(p.Run, p.lines, pause, at.depth, projectAnswer), "")
	}
	for _, depth := range eventDepths {
		p.steps = append(p.steps, p.deliver(deliveries(projectServer, depth)), p.deliver(deliveries(busServer, depth)))
	}
	return nil
}

// projectGoals compare commands with a trivial tool, and events with those of the bus.
func projectGoals(all []goal.Sample) []goal.Goal {
	control := goal.Goal{What: "projects: commands / a trivial tool", Must: 0.3, AtLeast: true}
	for _, at := range controlSizes {
		ours, theirs := over(viaLines, projectServer, pauseIdle, at), over(viaLines, toolServer, noopTool, at)
		control.AddCPU(at.String(), goal.Ratio(all, ours, theirs, goal.Rate), goal.Ratio(all, theirs, ours, goal.CPU))
	}
	list := []goal.Goal{control}
	for i, depth := range eventDepths {
		events := goal.Goal{What: fmt.Sprintf("projects: CPU per event / bus, %d at a time", depth), Must: []float64{1.5, 0}[i]}
		events.Add(strconv.Itoa(subscribers)+" subscribers", goal.Ratio(all, deliveries(projectServer, depth), deliveries(busServer, depth), goal.CPU))
		list = append(list, events)
	}
	return list
}
