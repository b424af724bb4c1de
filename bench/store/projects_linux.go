package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// The part about projects: servers and methods as they stand in the table.
const (
	projectServer = "projects"
	busServer     = "bus"
	pauseIdle     = "Pause, refused"
	delivered     = "events delivered"
	subscribers   = 100
)

// eventText is the text of an event of the bus: its chunk has about as many bytes then as the event
// of a project.
const eventText = 352

// How the messages of a server of projects begin.
const (
	projectAnswer = `{"ipc_version":"1.0","type":"response",`
	projectEvent  = `{"ipc_version":"1.0","type":"event",`
	projectAck    = `{"ipc_version":"1.0","type":"ack",`
)

// projects is the server of projects, of tools, and of the bus, and its one project.
type projects struct {
	*bench
	server       *load.Server
	lines, tools string
	root, id     string
	watching     map[string]*load.Session // the subscribers, by server
}

// projects starts the server, has the cells take turns, and ends it.
func (b *bench) projects(r *report) error {
	p := &projects{bench: b, watching: make(map[string]*load.Session)}
	if err := p.start(); err != nil {
		return err
	}
	all, err := goal.Rounds(b.o.rounds, p.steps(), os.Stderr)
	r.samples = append(r.samples, all...)
	b.StopAll()
	for _, s := range p.watching {
		_, _ = s.Stop() // the server ended before it
	}
	return err
}

// projectListeners are the lines of the banner by which the addresses are known.
var projectListeners = regexp.MustCompile(`(?m)^(exacta|toolhost) listening on (127\.0\.0\.1:\d+)`)

func (p *projects) start() (err error) {
	loops := strconv.Itoa(p.o.loops)
	c := load.Trunkline(p.Binary, p.settings(memory, p.newStore(), "exacta.listen_addr=127.0.0.1:0", "exacta.loops="+loops, "exacta.debug_commands=on",
		"toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+loops)...)
	c.Name, c.Env = projectServer, []string{"MACHINA_API_TOKEN="}
	if p.server, err = p.Start(c); err != nil {
		return err
	}
	at := map[string]string{}
	for end := time.Now().Add(sendTimeout); len(at) < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, m := range projectListeners.FindAllStringSubmatch(p.server.Output(), -1) {
			at[m[1]] = m[2]
		}
	}
	if p.lines, p.tools = at["exacta"], at["toolhost"]; p.lines == "" || p.tools == "" {
		return fmt.Errorf("cannot find where the server listens:\n%s", p.server.Output())
	}
	p.root = filepath.Join(p.Dir, "project")
	if err := os.Mkdir(p.root, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.root, "go.mod"), []byte("module bench\n"), 0o600); err != nil {
		return err
	}
	if err := p.open(); err != nil {
		return err
	}
	return p.watch()
}

// request is one request; cell and conn keep its request_id apart from those of others.
func request(cell, conn int, command, payload string) []byte {
	return fmt.Appendf(nil, `{"ipc_version":"1.0","type":"request","request_id":"%08x-%04x-4000-8000-%s","sent_at":"2026-01-15T00:00:00.000Z","command":%q,"payload":%s}`+"\n",
		cell, conn, load.ShortPlaceholder, command, payload)
}

func (p *projects) openPayload() string { return fmt.Sprintf(`{"path":%q}`, p.root) }

func (p *projects) pausePayload() string {
	return fmt.Sprintf(`{"project_id":%q,"execution_id":"00000000-0000-4000-8000-000000000001"}`, p.id)
}

// badSet is a set of diffs that is none: it is refused with an event, and touches no file.
func (p *projects) badSet() string { return fmt.Sprintf(`{"project_id":%q,"diffs":["x"]}`, p.id) }

// open opens the project, and has a look at what a cell is answered.
func (p *projects) open() error {
	reply, err := p.ask("OpenProject", p.openPayload())
	if err != nil {
		return err
	}
	var opened struct {
		Result struct {
			ID string `json:"project_id"`
		}
	}
	if err := json.Unmarshal(reply, &opened); err != nil || opened.Result.ID == "" {
		return fmt.Errorf("cannot open a project: %s", reply)
	}
	p.id = opened.Result.ID
	if reply, err = p.ask("Pause", p.pausePayload()); err == nil && !bytes.Contains(reply, []byte(`"code":"ST-001"`)) {
		err = fmt.Errorf("cannot measure a refusal: %s", reply)
	}
	return err
}

// ask makes one request, and returns its response.
func (p *projects) ask(command, payload string) ([]byte, error) {
	c, err := load.Dial(p.lines)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(sendTimeout)); err != nil {
		return nil, err
	}
	id := []byte(strings.Repeat("0", len(load.ShortPlaceholder)))
	if _, err := c.Write(bytes.Replace(request(1, len(command), command, payload), []byte(load.ShortPlaceholder), id, 1)); err != nil {
		return nil, err
	}
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadBytes('\n')
		if err != nil || bytes.HasPrefix(line, []byte(projectAnswer)) {
			return line, err
		}
	}
}

// watch connects the subscribers, and waits until all get an event.
func (p *projects) watch() error {
	subscribe := fmt.Appendf(nil, `{"ipc_version":"1.0","type":"subscribe","request_id":"00000000-0000-4000-8000-000000000002","sent_at":"2026-01-15T00:00:00.000Z","project_id":%q}`+"\n", p.id)
	silent := fmt.Appendf(nil, `{"ipc_version":"1.0","type":"ack","project_id":%q,"stream_seq":0}`+"\n", p.id)
	ours := p.config(p.lines, load.Answers, nil, 1)
	ours.Good, ours.Greeted, ours.Event = projectAnswer, projectAck, projectEvent
	bus := p.config(p.server.Addr, load.Kernel, nil, 1)
	for range subscribers {
		tape := &load.Tape{Hello: subscribe}
		tape.Add(0, silent) // it is never answered
		ours.Tapes = append(ours.Tapes, tape)
		tape = new(load.Tape)
		tape.Add(0, load.AppendRequest(nil, "sub", "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}}))
		bus.Tapes = append(bus.Tapes, tape)
	}
	for server, cfg := range map[string]load.Config{projectServer: ours, busServer: bus} {
		s, err := load.Start(cfg)
		if err != nil {
			return err
		}
		p.watching[server] = s
		if err := p.await(s, p.publisher(server, 1)); err != nil {
			return fmt.Errorf("%s: %w", server, err)
		}
	}
	return nil
}

const eventType = "store.tick"

// publisher has events made, so many at a time.
func (p *projects) publisher(server string, depth int) load.Config {
	p.files++
	tape := new(load.Tape)
	if server == projectServer {
		tape.AddFresh(0, request(p.files, 0, "ApplyDiffSet", p.badSet()))
		cfg := p.config(p.lines, load.Answers, []*load.Tape{tape}, depth)
		cfg.Good, cfg.Event = projectAnswer, projectEvent
		return cfg
	}
	tape.Add(0, load.CountedRequest(0, "commbus", "Publish", load.Field{Key: "event_type", Value: eventType},
		load.Field{Key: "payload", Value: strconv.Quote(strings.Repeat("x", eventText))}, load.Field{Key: "source", Value: "store"}))
	return p.config(p.server.Addr, load.Kernel, []*load.Tape{tape}, depth)
}

// await publishes single events until all subscribers get them.
func (p *projects) await(s *load.Session, cfg load.Config) error {
	cfg.Once = true
	for end := time.Now().Add(sendTimeout); time.Now().Before(end); {
		before := s.Chunks()
		one, err := load.Start(cfg)
		if err != nil {
			return err
		}
		if _, err := one.Wait(); err != nil {
			return err
		}
		for i := 0; i < 10 && s.Chunks() < before+subscribers; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		if s.Chunks() == before+subscribers {
			return nil
		}
	}
	return errors.New("cannot reach all subscribers with an event")
}

// deliver measures what an event delivered costs: a request of the sample is one.
func (p *projects) deliver(c goal.Cell) goal.Step {
	cfg := p.publisher(c.Server, c.Depth)
	return goal.One(c, func() (goal.Sample, error) {
		session, err := load.Start(cfg)
		if err != nil {
			return goal.Sample{}, err
		}
		readers := p.watching[c.Server]
		readers.Spin(true) // the server is not to pay for waking them
		s, err := p.window(readers)
		readers.Spin(false)
		_, stopErr := session.Stop()
		return s, errors.Join(err, stopErr)
	})
}

func (p *projects) window(readers *load.Session) (goal.Sample, error) {
	time.Sleep(p.o.warmup)
	w, err := load.OpenWindow(p.server.PID(), readers.Chunks())
	if err != nil {
		return goal.Sample{}, err
	}
	time.Sleep(p.o.window)
	return w.Close(readers.Chunks())
}

// controlSizes are those of the goal about commands.
func controlSizes() []size { return []size{{1, 64}, polled()} }

// steps lists the cells of one round: what is compared stands side by side.
func (p *projects) steps() (steps []goal.Step) {
	add := func(c goal.Cell, cfg load.Config) {
		steps = append(steps, goal.One(c, func() (goal.Sample, error) { return load.Measure(cfg, p.server, p.o.warmup, p.o.window) }))
	}
	for i, at := range controlSizes() {
		noop := p.config(p.tools, load.Answers, noopTapes(at.conns), at.depth)
		noop.Good, noop.Spin = toolGood, true
		add(over(viaLines, toolServer, noopTool, at), noop)
		var tapes []*load.Tape
		for conn := range at.conns {
			tape := new(load.Tape)
			tape.AddFresh(0, request(1<<16+i, conn, "Pause", p.pausePayload()))
			tapes = append(tapes, tape)
		}
		pause := p.config(p.lines, load.Answers, tapes, at.depth)
		pause.Good, pause.Spin = projectAnswer, true
		add(over(viaLines, projectServer, pauseIdle, at), pause)
	}
	for _, depth := range eventDepths() {
		steps = append(steps, p.deliver(deliveries(projectServer, depth)), p.deliver(deliveries(busServer, depth)))
	}
	return steps
}

// eventDepths are how many events are asked for at a time. The goal is about one: those of a
// project come one by one, each from some work that was done, while the bus publishes what it has
// read together and sends it with one write.
func eventDepths() []int { return []int{1, polled().depth} }

func deliveries(server string, depth int) goal.Cell {
	return over(viaLines, server, delivered, size{subscribers, depth})
}

// projectGoals compare commands with a trivial tool, and events with those of the bus.
func projectGoals(all []goal.Sample) (list []bounded) {
	control := bounded{Goal: goal.Goal{What: "projects: commands / a trivial tool", Must: 0.3, AtLeast: true}}
	for _, at := range controlSizes() {
		ours, theirs := over(viaLines, projectServer, pauseIdle, at), over(viaLines, toolServer, noopTool, at)
		control.AddCPU(fmt.Sprintf("%d×%d", at.conns, at.depth), goal.Ratio(all, ours, theirs, goal.Rate), goal.Ratio(all, theirs, ours, goal.CPU))
	}
	control.Evaluate()
	list = append(list, control)
	for i, depth := range eventDepths() {
		events := bounded{Goal: goal.Goal{What: fmt.Sprintf("projects: CPU per event / bus, %d at a time", depth)}}
		if i == 0 {
			events.Must = 1.5
		}
		events.Add(strconv.Itoa(subscribers)+" subscribers", goal.Ratio(all, deliveries(projectServer, depth), deliveries(busServer, depth), goal.CPU))
		events.Evaluate()
		list = append(list, events)
	}
	return list
}
