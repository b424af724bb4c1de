package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// client is one connection with what it has learnt.
type client struct {
	checker
	*server
	*conn
	t       testing.TB
	number  int // of the connection
	asked   int // requests
	project string
	logs    bool // LogEntries are kept
	heard   func(line string)
}

// connect makes a connection to a server.
func (s *server) connect() *client {
	s.t.Helper()
	over := s.via.dial(s)
	s.t.Cleanup(over.shut)
	all, err := schemas()
	if err != nil {
		s.t.Fatal(err)
	}
	return &client{checker: checker{t: s.t, valid: all.Watch(), seqs: map[string]int{}, streams: map[string]int{}}, server: s, conn: over, t: s.t, number: s.dials}
}

// open starts a server, connects and opens its project. Files are pairs of a name and a content.
func open(t testing.TB, via *carrier, files ...string) *client {
	t.Helper()
	return openWith(t, via, nil, files...)
}

// openWith is open with flags.
func openWith(t testing.TB, via *carrier, flags []string, files ...string) *client {
	t.Helper()
	s := serve(t, via, flags...)
	for i := 0; i < len(files); i += 2 {
		s.write(files[i], files[i+1])
	}
	if len(files) == 0 {
		s.write("go.mod", "module x\n")
	}
	c := s.connect()
	c.opens(`"state":"Idle"`)
	return c
}

// opens opens the project of the server.
func (c *client) opens(part string) *reply {
	c.t.Helper()
	r := c.ask("OpenProject", `{"path":`+quote(c.dir())+`}`)
	var out struct {
		ID string `json:"project_id"`
	}
	_ = json.Unmarshal(r.end.Result, &out) // without a result it stays empty
	if c.project = out.ID; !r.end.OK || !strings.Contains(string(r.end.Result), part) {
		c.t.Fatalf("got %s", r.end.line)
	}
	return r
}

// quote returns text as JSON.
func quote(text string) string {
	b, _ := json.Marshal(text) // a string always can be
	return string(b)
}

// id returns a new request_id.
func (c *client) id() string {
	c.asked++
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", c.number, c.asked)
}

// line returns the line of a request. project_id is put into a payload that has none.
func (c *client) line(id, command, payload string) string {
	if payload == "" {
		payload = "{}"
	}
	if inside, ok := strings.CutPrefix(payload, "{"); ok && command != "OpenProject" && !strings.Contains(payload, `"project_id"`) {
		payload = `{"project_id":"` + c.project + `",` + inside
		if inside == "}" {
			payload = `{"project_id":"` + c.project + `"}`
		}
	}
	return `{"ipc_version":"1.0","type":"request","request_id":"` + id + `","sent_at":"2026-01-15T00:00:00Z","command":"` + command + `","payload":` + payload + "}"
}

// sends writes a message.
func (c *client) sends(message string) {
	c.t.Helper()
	c.valid.Asked([]byte(message))
	if err := c.conn.send(message); err != nil {
		c.t.Fatal(err)
	}
}

// begin sends a request and does not wait. It returns its id.
func (c *client) begin(command, payload string) string {
	c.t.Helper()
	id := c.id()
	c.sends(c.line(id, command, payload))
	return id
}

// next returns the next line that is no LogEntry, or any with logs.
func (c *client) next() *sent {
	c.t.Helper()
	timer := time.NewTimer(waitFor)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-c.conn.lines:
			if !ok {
				c.t.Fatalf("the connection has ended; log: %s", c.server.log)
			}
			if c.heard != nil {
				c.heard(line)
			}
			if m := c.parse(line); m.Event != "LogEntry" || c.logs {
				return m
			}
		case <-timer.C:
			c.t.Fatalf("nothing comes; log: %s", c.server.log)
		}
	}
}

// closes expects that nothing but what is named comes, and then the end of the connection.
func (c *client) closes(want ...string) {
	c.t.Helper()
	timer := time.NewTimer(waitFor)
	defer timer.Stop()
	for i := 0; ; i++ {
		select {
		case line, ok := <-c.conn.lines:
			switch {
			case !ok && i < len(want):
				c.t.Fatalf("the connection has ended before %s", want[i])
			case !ok:
				return
			case i >= len(want):
				c.t.Fatalf("more comes: %s", line)
			}
			if got := c.parse(line).short(); got != want[i] {
				c.t.Fatalf("got %s, want %s: %s", got, want[i], line)
			}
		case <-timer.C:
			c.t.Fatalf("the connection stays open; log: %s", c.server.log)
		}
	}
}

// reply is what came up to a response.
type reply struct {
	t      testing.TB
	events []*sent
	end    *sent
}

// ask sends a request and waits for its response.
func (c *client) ask(command, payload string) *reply {
	c.t.Helper()
	return c.await(c.begin(command, payload))
}

// message sends a message and waits for the next one that is no event.
func (c *client) message(message string) *reply {
	c.t.Helper()
	c.sends(message)
	r := &reply{t: c.t}
	for {
		m := c.next()
		if m.Type != "event" {
			r.end = m
			return r
		}
		r.events = append(r.events, m)
	}
}

// await waits for the response of a request.
func (c *client) await(id string) *reply {
	c.t.Helper()
	r := &reply{t: c.t}
	for {
		m := c.next()
		if m.Type != "event" && m.Request != nil && strings.EqualFold(*m.Request, id) {
			r.end = m
			return r
		}
		r.events = append(r.events, m)
	}
}

// until collects what comes up to a line that is this one in short.
func (c *client) until(short string) *reply {
	c.t.Helper()
	r := &reply{t: c.t}
	for {
		m := c.next()
		r.events = append(r.events, m)
		if m.short() == short {
			r.end = m
			return r
		}
	}
}

// shorts returns the events in short.
func (r *reply) shorts() string {
	var out []string
	for _, m := range r.events {
		out = append(out, m.short())
	}
	return strings.Join(out, "; ")
}

// outcome returns the result, or the code and the detail of the error.
func (r *reply) outcome() string {
	if r.end.OK {
		return string(r.end.Result)
	}
	return r.end.Error.Code + " " + r.end.Error.Detail
}

// want expects these events, and a result or an error.
func (r *reply) want(events, outcome string) *reply {
	r.t.Helper()
	if got := r.shorts(); !matches(events, got) || events == "" && got != "" {
		r.t.Errorf("events %s\nwant   %s", got, events)
	}
	return r.is(outcome)
}

// is expects a result or an error. Of an error, the detail may go on.
func (r *reply) is(outcome string) *reply {
	r.t.Helper()
	got := r.outcome()
	if want := outcome; !matches(want, got) && (r.end.OK || !matches(want+"…", got)) {
		r.t.Errorf("got  %s\nwant %s", got, outcome)
	}
	return r
}

// field returns a member of the result.
func (r *reply) field(name string) string {
	r.t.Helper()
	var all map[string]any
	if err := json.Unmarshal(r.end.Result, &all); err != nil {
		r.t.Fatalf("no result: %s", r.end.line)
	}
	if inside, ok := all["intent"].(map[string]any); ok {
		all = inside
	}
	text, ok := all[name].(string)
	if !ok {
		r.t.Fatalf("no %s: %s", name, r.end.line)
	}
	return text
}

// intent extracts an intent and returns its id.
func (c *client) intent(input string) string {
	c.t.Helper()
	return c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`).field("id")
}

// plan makes a plan of a request and returns its id.
func (c *client) plan(input string) string {
	c.t.Helper()
	return c.planOf(c.intent(input))
}

func (c *client) planOf(intent string) string {
	c.t.Helper()
	return c.ask("GeneratePlan", `{"intent_id":"`+intent+`"}`).field("plan_id")
}

// approved makes a plan of a request and approves it.
func (c *client) approved(input string) string {
	c.t.Helper()
	id := c.plan(input)
	c.ask("ApprovePlan", `{"plan_id":"`+id+`"}`).is(`{"plan_id":"` + id + `","status":"approved"}`)
	return id
}

// executes begins the execution of a request and returns its id.
func (c *client) executes(input string) string {
	c.t.Helper()
	return c.ask("ExecutePlan", `{"plan_id":"`+c.approved(input)+`"}`).field("execution_id")
}

// completes runs a request to its end.
func (c *client) completes(input string) {
	c.t.Helper()
	c.executes(input)
	c.until("Executing→Completed ExecutionComplete")
}
