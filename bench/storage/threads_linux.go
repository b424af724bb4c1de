package storage

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/handlers/threads/token"
)

// ThreadsPart measures agent threads beside the kernel protocol and peers.
func ThreadsPart() part.Part {
	return common(part.Part{
		Name: "threads", What: "agent threads beside the kernel, a trivial tool, net/http and the SDKs of MCP",
		Children: map[string]func([]string) error{childHandler: func([]string) error { return load.ServeHTTP(bare()) }},
		Run: func(r *part.Run) error {
			t := &talk{bench: bench{Run: r}}
			return t.measure(t.startThreads, t.startPeers, t.addLines, t.addHTTP, t.addHandlers)
		},
	})
}

// talk is the servers of the part about agent threads, and who asks them: each connection is an
// agent of its own, because the calls of one agent over MCP are bounded.
type talk struct {
	bench
	kernel, threads *load.Server
	bare, node      *load.Server // node is nil where it is not installed

	web, lines, tools string   // addresses of threads
	tokens            []string // by connection
	own               []string // a thread of each connection, and one more for all
}

// crowd is the size of the posts over HTTP: so many wait for one write to the disk together. polled
// is that of the cells that wait for no disk: of the tool server's own benchmark.
var crowd, polled = size{256, 1}, size{64, 64}

const (
	workspace = "bench"
	issuer    = "trunkline-bench"
	audience  = "orkiva" // the default of threads.audience
	tokenLife = 24 * time.Hour
)

// startThreads starts the servers in mode always, that of agent threads with a key of its own and
// the tool server beside it, signs the tokens of all agents and creates their threads.
func (t *talk) startThreads() (err error) {
	if t.kernel, err = t.Trunkline(settings(t.Run, always)...); err != nil {
		return err
	}
	private, public, err := token.NewKey()
	if err = errors.Join(err, prepare(t.kernel.Addr, t.Rows)); err != nil {
		return err
	}
	key := filepath.Join(t.Rig.Dir, "threads.pub")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}
	s, err := startMore(t.Run, always, "threads.public_key_file="+key, "threads.issuer="+issuer, "threads.loops="+strconv.Itoa(t.Loops),
		"threads.listen_addr=127.0.0.1:0", "threads.lines_addr=127.0.0.1:0", "threads.supervisor_mode=off", "threads.rate_mcp_calls_per_agent_per_minute=1000000")
	if err != nil {
		return err
	}
	t.threads, t.web, t.lines, t.tools = s, s.Listener("threads http"), s.Listener("threads lines"), s.Listener("toolhost")
	now := float64(time.Now().Unix())
	for i := range crowd.conns {
		name := fmt.Sprintf("agent-%d", i)
		text, err := token.Sign(private, &token.Claims{Agent: name, Workspace: workspace, Session: name, ID: name, Role: token.Coordinator,
			Issued: now, Expires: now + tokenLife.Seconds()}, issuer, audience)
		if err != nil {
			return fmt.Errorf("cannot sign a token: %w", err)
		}
		t.tokens = append(t.tokens, text)
	}
	for i := range len(t.tokens) + 1 {
		body := fmt.Sprintf(`{"workspace_id":%q,"title":"%d","type":"workflow","participants":["agent-0"]}`, workspace, i)
		id, err := ask(t.web, t.overHTTP(0, "/v1/create_thread", body), `"thread_id":"([^"]+)"`)
		if err != nil {
			return fmt.Errorf("cannot create a thread: %w", err)
		}
		t.own = append(t.own, id)
	}
	return nil
}

func (t *talk) overHTTP(conn int, path, body string, head ...string) string {
	return string(load.AppendPost(nil, path, []byte(body), append(head, "Authorization: Bearer "+t.tokens[conn])...))
}

// postBody is a message with a key that the tape counts up. Cells that write to one thread for one
// agent need names of their own.
func postBody(thread, cell string) string {
	return fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"hello","idempotency_key":"%s-0000%s"}`, thread, cell, load.Placeholder)
}

func (t *talk) pollBody(conn int) string {
	return fmt.Sprintf(`{"thread_id":%q,"since_seq":9007199254740991,"limit":50}`, t.own[conn])
}

const (
	lineGreeted = `{"id":0,"ok":true,`
	lineGood    = `{"id":1,"ok":true,`
)

func (t *talk) lineTapes(conns int, method string, params func(conn int) string) []*load.Tape {
	return each(conns, func(conn int) string {
		return fmt.Sprintf(`{"id":0,"method":"auth","params":{"protocol":"threads/1","token":%q}}`+"\n", t.tokens[conn])
	}, func(conn int) string {
		return fmt.Sprintf(`{"id":1,"method":%q,"params":%s}`+"\n", method, params(conn))
	})
}

// addLines adds the cells over lines. Every one has tapes of its own, which count on from round to
// round. Rows of posts are merged for a while: what waits for no disk comes before them.
func (t *talk) addLines() error {
	add := func(profile, name, method string, at size, params func(conn int) string) goal.Cell {
		cfg := answers(t.Run, t.lines, t.lineTapes(at.conns, method, params), at.depth, lineGood)
		cfg.Greeted = lineGreeted
		t.profile(profile, t.threads, cfg)
		return t.add("threads", name+", lines", t.threads, cfg)
	}
	noop := t.addNoop(t.threads, t.tools, polled)
	polls := add("threads-polls", "read_messages, empty", "read_messages", polled, t.pollBody)
	usage := t.add("kernel", recordUsage, t.kernel, t.Config(t.kernel.Addr, load.Kernel, tapesOf(recordUsage, span{0, t.Rows}, fewDeep.conns, nil), fewDeep.depth))
	own := add("threads-own", "post_message", "post_message", fewDeep, func(conn int) string { return postBody(t.own[conn], "own") })
	one := add("threads-one", "post_message, one thread", "post_message", fewDeep, func(int) string { return postBody(t.own[len(t.tokens)], "one") })
	t.compare("posts to 64 threads / RecordUsage", 0.5, own, usage)
	t.compare("posts to one thread / RecordUsage", 0.25, one, usage)
	t.compare("empty polls / a trivial tool", 0.6, polls, noop)
	return nil
}

func (t *talk) post(conn int) string {
	return t.overHTTP(conn, "/v1/post_message", postBody(t.own[conn], "web"))
}

// addHTTP adds the cells over HTTP. A load looks at the status of a reply only, so that each is
// asked once before.
func (t *talk) addHTTP() error {
	call := func(id string) func(conn int) string {
		return func(conn int) string {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"read_messages","arguments":%s}}`, id, t.pollBody(conn))
			return t.overHTTP(conn, "/mcp", body, "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2025-11-25")
		}
	}
	const posted, empty = `("message_id":"msg_)`, `("structuredContent":{"messages":\[\],)`
	var failed error
	add := func(server, method, want string, s *load.Server, addr string, at size, request func(conn int) string) goal.Cell {
		if _, err := ask(addr, request(0), want); err != nil && failed == nil {
			failed = fmt.Errorf("cannot measure %s of %s: %w", method, server, err)
		}
		return t.add(server, method, s, t.Config(addr, load.HTTP, each(at.conns, nil, request), at.depth))
	}
	posts := add("threads", "post_message, http", posted, t.threads, t.web, crowd, t.post)
	bare := add("net/http", "read a body", posted, t.bare, t.bare.Addr, crowd, t.post)
	calls := add("threads", "tools/call read_messages", empty, t.threads, t.web, few, call("7"))
	// The server's own path takes an id of at most 15 digits. With 16, and nothing else changed,
	// the handler of the SDK answers the call. Most of our side of that comparison is net/http.
	sdk := add("threads, go-sdk", "tools/call read_messages", empty, t.threads, t.web, few, call("1000000000000007"))
	node := cell("node", "tools/call read_messages", few)
	if t.node != nil {
		node = add("node", node.Method, empty, t.node, t.node.Addr, few, call("7"))
	}
	t.compare("posts over HTTP / a bare net/http handler", 0.5, posts, bare)
	t.compare("MCP calls / Go SDK, over HTTP", 0, calls, sdk)
	t.compare("MCP calls / TypeScript SDK on node", 5, calls, node)
	return failed
}

// addHandlers adds the handlers of MCP alone: no socket, no token, and a method that does nothing.
// Their benchmark has four rows, which take a window together.
func (t *talk) addHandlers() error {
	binary, err := gobench.Build(".", "handlers/threads/mcp", filepath.Join(t.Rig.Dir, "mcp.test"))
	if err != nil {
		return err
	}
	of := func(benchmark string) goal.Cell {
		handler, revision, _ := strings.Cut(benchmark, "/")
		return cell(map[string]string{"Front": "threads", "SDK": "threads, go-sdk"}[handler], "handler alone, "+revision, size{1, 1})
	}
	t.steps = append(t.steps, goal.Step{Name: "the handlers of MCP", Measure: func() (all []goal.Sample, err error) {
		results, err := binary.Run("^Benchmark(Front|SDK)$", t.Window/4, 1)
		for _, r := range results {
			all = append(all, goal.Sample{Cell: of(r.Name), Requests: uint64(r.N), PerSec: 1e9 / r.Values[gobench.Time]})
		}
		return all, err
	}})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.compare("MCP of "+revision+" / Go SDK, handler alone", 10, of("Front/"+revision), of("SDK/"+revision))
	}
	return nil
}

const childHandler = "net-http"

// bareReply is as long as the reply to a post.
const bareReply = `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","seq":27,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`

// bare is what net/http does for a handler that reads the body and answers a constant.
func bare() http.Handler {
	json := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an error is dropped, here and below: the peer is gone
		w.Header()["Content-Type"] = json
		_, _ = io.WriteString(w, bareReply)
	})
}

// nodeServer is a stateless server of the SDK in TypeScript, as its documentation has it.
//
//go:embed node.mjs
var nodeServer []byte

const nodePackage = "@modelcontextprotocol/sdk"

// startPeers starts the bare handler and, where node and the package are installed, the server of
// the SDK in TypeScript.
func (t *talk) startPeers() (err error) {
	if t.bare, err = t.Child("net/http", childHandler); err != nil {
		return err
	}
	clients := t.Clients
	if cache, err := os.UserCacheDir(); clients == "" && err == nil {
		clients = filepath.Join(cache, "trunkline", "mcp-clients")
	}
	packages := filepath.Join(clients, "node")
	_, missing := os.Stat(filepath.Join(packages, "node_modules", nodePackage, "package.json"))
	node, err := exec.LookPath("node")
	if err != nil || missing != nil {
		t.Report.Note("The server of %s was not measured: it is not installed, see handlers/threads/conformance/testdata/clients/install.sh.", nodePackage)
		return nil
	}
	script := filepath.Join(t.Rig.Dir, "node.mjs")
	if err := os.WriteFile(script, nodeServer, 0o600); err != nil {
		return fmt.Errorf("cannot write the server for node: %w", err)
	}
	t.node, err = t.Start(load.Command{Name: "node", Path: node, Args: []string{script, packages}, Listening: load.PeerListening})
	return err
}
