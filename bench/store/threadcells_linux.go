package store

import (
	"fmt"
	"regexp"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// Servers of the part as they stand in the table, with kernel for mode always.
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
	postOwn    = "post_message"
	postOne    = "post_message, one thread"
	pollLast   = "read_messages, empty"
	readBody   = "read a body"
	callTool   = "tools/call read_messages"
	noopTool   = "AID.NOOP.v1"
	viaLines   = "lines"
	viaHTTP    = "http"
	viaNothing = "handler alone"
)

// crowd is the size of the posts over HTTP: so many wait for one write to the disk together. polled
// is that of the cells that wait for no disk: of the tool server's own benchmark.
var crowd, polled = size{256, 1}, size{64, 64}

// How lines begin that answer a greeting, and a request.
const (
	lineGreeted = `{"id":0,"ok":true,`
	lineGood    = `{"id":1,"ok":true,`
)

// over is a cell with how the requests get there.
func over(via, server, method string, at size) goal.Cell {
	c := cell(server, method, at)
	c.Via = via
	return c
}

// answers is a load of lines whose replies begin with good. It polls where no disk is waited for.
func answers(r *part.Run, addr string, tapes []*load.Tape, depth int, good string) load.Config {
	cfg := r.Config(addr, load.Answers, tapes, depth)
	cfg.Good, cfg.Spin = good, cfg.Spin || depth == polled.depth
	return cfg
}

// addNoop adds the tool that does nothing.
func (b *bench) addNoop(s *load.Server, addr string, at size) {
	tapes := each(at.conns, nil, func(int) string { return `{"aid":"` + noopTool + `"}` + "\n" })
	b.add(over(viaLines, toolServer, noopTool, at), s, answers(b.Run, addr, tapes, at.depth, `{"ok":true,`), "")
}

// postBody is a message with a key that the tape counts up. Cells that write to one thread for one
// agent need names of their own.
func postBody(thread, cell string) string {
	return fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"hello","idempotency_key":"%s-%s"}`, thread, cell, load.Placeholder)
}

// pollBody asks for what comes behind every message.
func pollBody(thread string) string {
	return fmt.Sprintf(`{"thread_id":%q,"since_seq":9007199254740991,"limit":50}`, thread)
}

// lineTapes begin with the tokens of their agents.
func (t *talk) lineTapes(conns int, method string, params func(conn int) string) []*load.Tape {
	return each(conns, func(conn int) string {
		return fmt.Sprintf(`{"id":0,"method":"auth","params":{"protocol":"threads/1","token":%q}}`+"\n", t.tokens[conn])
	}, func(conn int) string {
		return fmt.Sprintf(`{"id":1,"method":%q,"params":%s}`+"\n", method, params(conn))
	})
}

// addLines adds a cell over lines.
func (t *talk) addLines(profile, method, call string, at size, params func(conn int) string) {
	cfg := answers(t.Run, t.lines, t.lineTapes(at.conns, call, params), at.depth, lineGood)
	cfg.Greeted = lineGreeted
	t.add(over(viaLines, threadServer, method, at), t.threads, cfg, profile)
}

// overHTTP is a cell over HTTP: what is asked by a connection, and what the reply holds.
type overHTTP struct {
	server, method string
	at             size
	s              *load.Server
	addr, want     string
	request        func(conn int) string
}

// post and call are requests over HTTP.
func (t *talk) post(conn int) string {
	return string(load.AppendPost(nil, "/v1/post_message", []byte(postBody(t.own[conn], "web")), bearer(t.tokens[conn])))
}

func (t *talk) call(id string) func(conn int) string {
	return func(conn int) string {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"read_messages","arguments":%s}}`, id, pollBody(t.own[conn]))
		return string(load.AppendPost(nil, "/mcp", body, bearer(t.tokens[conn]), "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2025-11-25"))
	}
}

// addCells adds the cells of one round: what is compared stands close together. Every one has tapes
// of its own, which count on from round to round. Rows of posts are merged for a while: what waits
// for no disk comes before them.
func (t *talk) addCells() error {
	t.addNoop(t.threads, t.tools, polled)
	t.addLines("threads-polls", pollLast, "read_messages", polled, func(conn int) string { return pollBody(t.own[conn]) })
	usage := t.Config(t.kernel.Addr, load.Kernel, tapesOf(recordUsage, span{0, t.Rows}, fewDeep.conns, nil), fewDeep.depth)
	t.add(cell(kernelServer, recordUsage, fewDeep), t.kernel, usage, "")
	t.addLines("threads-own", postOwn, "post_message", fewDeep, func(conn int) string { return postBody(t.own[conn], "own") })
	t.addLines("threads-one", postOne, "post_message", fewDeep, func(int) string { return postBody(t.own[len(t.tokens)], "one") })
	const posted, empty = `"message_id":"msg_`, `"structuredContent":{"messages":[],`
	list := []overHTTP{
		{threadServer, postOwn, crowd, t.threads, t.web, posted, t.post},
		{bareHandler, readBody, crowd, t.bare, t.bare.Addr, posted, t.post},
		{threadServer, callTool, few, t.threads, t.web, empty, t.call("7")},
		// The server's own path takes an id of at most 15 digits. With 16, and nothing else
		// changed, the handler of the SDK answers the call.
		{goSDK, callTool, few, t.threads, t.web, empty, t.call("1000000000000007")},
	}
	if t.node != nil {
		list = append(list, overHTTP{nodeSDK, callTool, few, t.node, t.node.Addr, empty, t.call("7")})
	}
	for _, c := range list {
		// A load looks at the status of a reply only.
		if _, err := ask(c.addr, []byte(c.request(0)), "("+regexp.QuoteMeta(c.want)+")"); err != nil {
			return fmt.Errorf("cannot measure %s of %s: %w", c.method, c.server, err)
		}
		t.add(over(viaHTTP, c.server, c.method, c.at), c.s, t.Config(c.addr, load.HTTP, each(c.at.conns, nil, c.request), c.at.depth), "")
	}
	return t.addHandlers()
}

// threadGoals compare requests/s of agent threads with what the same load gets elsewhere. What the
// SDK in Go reaches over HTTP is reported: most of our side of it is net/http.
func threadGoals(all []goal.Sample) (list []goal.Goal) {
	add := func(what string, must float64, ours, theirs goal.Cell) {
		g := goal.Goal{What: fmt.Sprintf("threads: %s, %d×%d", what, ours.Conns, ours.Depth), Must: must, AtLeast: true}
		g.AddCPU("requests/s", goal.Ratio(all, ours, theirs, goal.Rate), goal.Ratio(all, theirs, ours, goal.CPU))
		list = append(list, g)
	}
	lines := func(method string, at size) goal.Cell { return over(viaLines, threadServer, method, at) }
	web := func(server, method string, at size) goal.Cell { return over(viaHTTP, server, method, at) }
	usage := cell(kernelServer, recordUsage, fewDeep)
	add("posts to 64 threads / RecordUsage", 0.5, lines(postOwn, fewDeep), usage)
	add("posts to one thread / RecordUsage", 0.25, lines(postOne, fewDeep), usage)
	add("empty polls / a trivial tool", 0.6, lines(pollLast, polled), over(viaLines, toolServer, noopTool, polled))
	add("posts over HTTP / a bare net/http handler", 0.5, web(threadServer, postOwn, crowd), web(bareHandler, readBody, crowd))
	add("MCP calls / Go SDK, over HTTP", 0, web(threadServer, callTool, few), web(goSDK, callTool, few))
	add("MCP calls / TypeScript SDK on node", 5, web(threadServer, callTool, few), web(nodeSDK, callTool, few))
	g := goal.Goal{What: "threads: MCP / Go SDK, handler alone", Must: 10, AtLeast: true}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		g.Add(revision, goal.Ratio(all, handlerCell(threadServer, revision), handlerCell(goSDK, revision), goal.Rate))
	}
	return append(list, g)
}
