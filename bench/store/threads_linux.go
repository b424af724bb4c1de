package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/handlers/threads/token"
)

// talk is the servers of the part about agent threads, and who asks them: each connection is an
// agent of its own, because the calls of one agent over MCP are bounded.
type talk struct {
	*bench
	kernel, threads *load.Server
	bare, node      *load.Server // node is nil where it is not installed

	web, lines, tools string   // addresses of threads
	tokens            []string // by connection
	own               []string // a thread of each connection
	one               string   // a thread of all
	handlerTest       string   // the benchmark of the handlers of MCP, built
}

// threads starts the servers, has them take turns, and ends them.
func (b *bench) threads(r *report) error {
	t := &talk{bench: b}
	if err := t.start(); err != nil {
		return err
	}
	all, err := goal.Rounds(b.o.rounds, t.steps(), os.Stderr)
	r.samples = append(r.samples, all...)
	b.StopAll()
	return err
}

func (t *talk) start() (err error) {
	if t.kernel, err = t.trunkline(always, t.newStore()); err != nil {
		return err
	}
	if err = prepare(t.kernel.Addr, t.o.rows); err != nil {
		return err
	}
	if err = t.startThreads(); err != nil {
		return err
	}
	if err = t.createThreads(); err != nil {
		return err
	}
	if t.bare, err = t.Peer(bareHandler, "", "-peer", peerHTTP); err != nil {
		return err
	}
	if err = t.startNode(); err != nil {
		return err
	}
	if err = t.buildHandlers(); err != nil {
		return err
	}
	return t.probe()
}

const (
	workspace = "bench"
	issuer    = "trunkline-bench"
	audience  = "orkiva" // the default of threads.audience
	tokenLife = 24 * time.Hour
)

// adminListening is the last line of the banner, behind those of all addresses.
var adminListening = regexp.MustCompile(`^admin listening()`)

// listeners are the lines of the banner by which the addresses are known.
var listeners = regexp.MustCompile(`(?m)^(threads http|threads lines|toolhost) listening on (127\.0\.0\.1:\d+)`)

// startThreads starts the server in mode always, with a key of its own and the tool server beside
// agent threads.
func (t *talk) startThreads() error {
	private, public, err := token.NewKey()
	if err != nil {
		return err
	}
	key := filepath.Join(t.Dir, "threads.pub")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}
	loops := strconv.Itoa(t.o.loops)
	c := load.Trunkline(t.Binary, t.settings(always, t.newStore(), "threads.public_key_file="+key, "threads.issuer="+issuer, "threads.loops="+loops,
		"threads.listen_addr=127.0.0.1:0", "threads.lines_addr=127.0.0.1:0", "threads.supervisor_mode=off",
		"threads.rate_mcp_calls_per_agent_per_minute=1000000", "toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+loops)...)
	c.Name, c.Listening, c.Env = threadServer, adminListening, []string{"MACHINA_API_TOKEN="}
	if t.threads, err = t.Start(c); err != nil {
		return err
	}
	at := map[string]string{}
	for _, m := range listeners.FindAllStringSubmatch(t.threads.Output(), -1) {
		at[m[1]] = m[2]
	}
	if t.web, t.lines, t.tools = at["threads http"], at["threads lines"], at["toolhost"]; t.web == "" || t.lines == "" || t.tools == "" {
		return fmt.Errorf("cannot find where the server listens:\n%s", t.threads.Output())
	}
	now := float64(time.Now().Unix())
	for i := range crowd().conns {
		name := fmt.Sprintf("agent-%d", i)
		text, err := token.Sign(private, &token.Claims{Agent: name, Workspace: workspace, Session: name, ID: name, Role: token.Coordinator,
			Issued: now, Expires: now + tokenLife.Seconds()}, issuer, audience)
		if err != nil {
			return fmt.Errorf("cannot sign a token: %w", err)
		}
		t.tokens = append(t.tokens, text)
	}
	return nil
}

// createThreads creates a thread for each connection, and one for all.
func (t *talk) createThreads() error {
	for i := range len(t.tokens) + 1 {
		reply, err := send(t.web, load.AppendPost(nil, "/v1/create_thread", fmt.Appendf(nil,
			`{"workspace_id":%q,"title":"%d","type":"workflow","participants":["agent-0"]}`, workspace, i), bearer(t.tokens[0])))
		if err != nil {
			return fmt.Errorf("cannot create a thread: %w", err)
		}
		var thread struct {
			ID string `json:"thread_id"`
		}
		if err := json.Unmarshal(reply, &thread); err != nil || thread.ID == "" {
			return fmt.Errorf("cannot create a thread: %s", reply)
		}
		t.own = append(t.own, thread.ID)
	}
	t.one, t.own = t.own[len(t.tokens)], t.own[:len(t.tokens)]
	return nil
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// sendTimeout bounds one request beside a load.
const sendTimeout = 10 * time.Second

// send sends one request as tapes have it, and returns the body of its reply.
func send(addr string, request []byte) ([]byte, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(sendTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", r.StatusCode, body)
	}
	return body, err
}

// probe asks each server over HTTP once, and looks at the replies: a load only looks at their
// status.
func (t *talk) probe() error {
	for _, c := range t.overHTTP() {
		reply, err := send(c.addr, c.request(0))
		if err == nil && !bytes.Contains(reply, []byte(c.want)) {
			err = fmt.Errorf("no %s in %s", c.want, reply)
		}
		if err != nil {
			return fmt.Errorf("cannot measure %s of %s: %w", c.method, c.name, err)
		}
	}
	return nil
}
