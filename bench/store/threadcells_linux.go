package main

import (
	"fmt"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Servers of the part about agent threads as they stand in the table, with kernel for mode always.
const (
	kernelServer = "kernel"
	threadServer = "threads"
	toolServer   = "toolhost"
	bareHandler  = "net/http"
	goSDK        = "threads, go-sdk"
	nodeSDK      = "node"
)

// What they are asked, and how.
const (
	postOwn  = "post_message"
	postOne  = "post_message, one thread"
	pollLast = "read_messages, empty"
	readBody = "read a body"
	callTool = "tools/call read_messages"
	noopTool = "AID.NOOP.v1"
	viaLines = "lines"
	viaHTTP  = "http"
)

// crowd is the size of the posts over HTTP: so many wait for one write to the disk together.
func crowd() size { return size{256, 1} }

// polled is the size of the cells that wait for no disk: that of the tool server's own benchmark.
func polled() size { return size{64, 64} }

// How lines begin that answer a greeting, and a request.
const (
	lineGreeted = `{"id":0,"ok":true,`
	lineGood    = `{"id":1,"ok":true,`
	toolGood    = `{"ok":true,`
)

// postBody is a message with a key that the tape counts up. Cells that write to one thread for one
// agent need names of their own.
func postBody(thread, cell string) string {
	return fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"hello","idempotency_key":"%s-%s"}`, thread, cell, load.Placeholder)
}

// pollBody asks for what comes behind every message.
func pollBody(thread string) string {
	return fmt.Sprintf(`{"thread_id":%q,"since_seq":9007199254740991,"limit":50}`, thread)
}

// lineTapes encodes one method for every connection, over lines.
func (t *talk) lineTapes(method string, params func(conn int) string) (tapes []*load.Tape) {
	for i, token := range t.tokens[:min(len(t.tokens), few().conns)] {
		tape := &load.Tape{Hello: fmt.Appendf(nil, `{"id":0,"method":"auth","params":{"protocol":"threads/1","token":%q}}`+"\n", token)}
		tape.AddFresh(0, fmt.Appendf(nil, `{"id":1,"method":%q,"params":%s}`+"\n", method, params(i)))
		tapes = append(tapes, tape)
	}
	return tapes
}

// overHTTP is one cell over HTTP: who is asked what by a connection, and what its reply holds.
type overHTTP struct {
	name, method string
	at           size
	server       *load.Server
	addr         string
	request      func(conn int) []byte
	want         string
}

// overHTTP are the cells over HTTP: those that are compared stand beside each other.
func (t *talk) overHTTP() []overHTTP {
	post := func(conn int) []byte {
		return load.AppendPost(nil, "/v1/post_message", []byte(postBody(t.own[conn], "web")), bearer(t.tokens[conn]))
	}
	// The server's own path takes an id of at most 15 digits. With 16, and nothing else changed,
	// the handler of the SDK answers the call.
	call := func(id string) func(conn int) []byte {
		return func(conn int) []byte {
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"read_messages","arguments":%s}}`, id, pollBody(t.own[conn]))
			return load.AppendPost(nil, "/mcp", body, bearer(t.tokens[conn]), "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2025-11-25")
		}
	}
	const empty = `"structuredContent":{"messages":[],`
	list := []overHTTP{
		{threadServer, postOwn, crowd(), t.threads, t.web, post, `"message_id":"msg_`},
		{bareHandler, readBody, crowd(), t.bare, t.bare.Addr, post, `"message_id":"msg_`},
		{threadServer, callTool, few(), t.threads, t.web, call("7"), empty},
		{goSDK, callTool, few(), t.threads, t.web, call("1000000000000007"), empty},
	}
	if t.node != nil {
		list = append(list, overHTTP{nodeSDK, callTool, few(), t.node, t.node.Addr, call("7"), empty})
	}
	return list
}

// overLines is one cell over lines.
type overLines struct {
	short, method string
	at            size
	cfg           load.Config
}

// overLines are the cells over lines of agent threads. Every one has tapes of its own, which count
// on from round to round.
func (t *talk) overLines() (list []overLines) {
	add := func(short, method, call string, at size, params func(conn int) string) {
		cfg := t.config(t.lines, load.Answers, t.lineTapes(call, params), at.depth)
		cfg.Good, cfg.Greeted, cfg.Spin = lineGood, lineGreeted, cfg.Spin || at == polled()
		list = append(list, overLines{short, method, at, cfg})
	}
	add("polls", pollLast, "read_messages", polled(), func(conn int) string { return pollBody(t.own[conn]) })
	add("own", postOwn, "post_message", fewDeep(), func(conn int) string { return postBody(t.own[conn], "own") })
	add("one", postOne, "post_message", fewDeep(), func(int) string { return postBody(t.one, "one") })
	return list
}

// steps lists the cells of one round: what is compared stands close together.
func (t *talk) steps() (steps []goal.Step) {
	add := func(c goal.Cell, s *load.Server, cfg load.Config) {
		steps = append(steps, goal.One(c, func() (goal.Sample, error) { return load.Measure(cfg, s, t.o.warmup, t.o.window) }))
	}
	noop := t.config(t.tools, load.Answers, noopTapes(polled().conns), polled().depth)
	noop.Good, noop.Spin = toolGood, true
	add(over(viaLines, toolServer, noopTool, polled()), t.threads, noop)
	lines, deep := t.overLines(), fewDeep()
	for i, c := range lines {
		if i == 1 { // rows of posts are merged for a while: what waits for no disk comes before them
			add(cell(kernelServer, recordUsage, deep), t.kernel, t.config(t.kernel.Addr, load.Kernel, tapesOf(recordUsage, span{0, t.o.rows}, deep.conns, nil), deep.depth))
		}
		add(over(viaLines, threadServer, c.method, c.at), t.threads, c.cfg)
	}
	for _, c := range t.overHTTP() {
		add(over(viaHTTP, c.name, c.method, c.at), c.server, t.config(c.addr, load.HTTP, t.webTapes(c), c.at.depth))
	}
	return append(steps, goal.Step{Name: "the handlers of MCP", Measure: t.handlers})
}

// webTapes encodes the requests of a cell over HTTP for every connection.
func (t *talk) webTapes(c overHTTP) (tapes []*load.Tape) {
	for conn := range min(len(t.tokens), c.at.conns) {
		tape := new(load.Tape)
		tape.AddFresh(0, c.request(conn))
		tapes = append(tapes, tape)
	}
	return tapes
}

// noopTapes encodes calls of the tool that does nothing.
func noopTapes(conns int) (tapes []*load.Tape) {
	for range conns {
		tape := new(load.Tape)
		tape.Add(0, []byte(`{"aid":"`+noopTool+`"}`+"\n"))
		tapes = append(tapes, tape)
	}
	return tapes
}

// over is a cell with how the requests get there.
func over(via, server, method string, at size) goal.Cell {
	c := cell(server, method, at)
	c.Via = via
	return c
}

// threadGoals compare requests/s of agent threads with what the same load gets elsewhere. What the
// SDK in Go reaches over HTTP is reported: most of our side of it is net/http.
func threadGoals(all []goal.Sample) (list []bounded) {
	add := func(what string, must float64, ours, theirs goal.Cell) {
		g := bounded{Goal: goal.Goal{What: fmt.Sprintf("threads: %s, %d×%d", what, ours.Conns, ours.Depth), Must: must, AtLeast: true}}
		g.AddCPU("requests/s", goal.Ratio(all, ours, theirs, goal.Rate), goal.Ratio(all, theirs, ours, goal.CPU))
		g.Evaluate()
		list = append(list, g)
	}
	lines := func(method string, at size) goal.Cell { return over(viaLines, threadServer, method, at) }
	web := func(server, method string, at size) goal.Cell { return over(viaHTTP, server, method, at) }
	usage := cell(kernelServer, recordUsage, fewDeep())
	add("posts to 64 threads / RecordUsage", 0.5, lines(postOwn, fewDeep()), usage)
	add("posts to one thread / RecordUsage", 0.25, lines(postOne, fewDeep()), usage)
	add("empty polls / a trivial tool", 0.6, lines(pollLast, polled()), over(viaLines, toolServer, noopTool, polled()))
	add("posts over HTTP / a bare net/http handler", 0.5, web(threadServer, postOwn, crowd()), web(bareHandler, readBody, crowd()))
	list = append(list, handlerGoal(all))
	add("MCP calls / Go SDK, over HTTP", 0, web(threadServer, callTool, few()), web(goSDK, callTool, few()))
	add("MCP calls / TypeScript SDK on node", 5, web(threadServer, callTool, few()), web(nodeSDK, callTool, few()))
	return list
}
