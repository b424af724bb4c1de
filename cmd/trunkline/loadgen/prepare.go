package loadgen

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// ErrPrepare is the error of processes, threads or projects that the mix works on and that are not
// created.
var ErrPrepare = errors.New("cannot create what the run works on")

const (
	// callers is how many calls of preparing and cleaning up are in flight.
	callers = 64
	// prepareTime bounds creating the processes or threads of a run, cleanUpTime ending them.
	prepareTime = 30 * time.Second
	cleanUpTime = 30 * time.Second
	// callTime bounds one of those calls: a server that takes longer for a process is not there to
	// be measured.
	callTime = 5 * time.Second
)

// ampleQuota is above what any run uses, because a process beyond its quota costs the server an
// event per look at it.
const ampleQuota = `"quota":{"max_llm_calls":2147483647,"max_tool_calls":2147483647,"max_agent_hops":2147483647,` +
	`"max_input_tokens":2147483647,"max_output_tokens":2147483647}`

// prepare creates what the methods of the mix need: the threads of the connections, a project, or
// one process per connection. Processes are not scheduled: the workers of the server must not get
// them. Each has a user of its own, so that no rate limit is met.
func (g *generator) prepare(ctx context.Context) (err error) {
	if !g.needsOwn() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	var conn *ipcclient.Conn
	switch g.plan.Target.Protocol {
	case ProtocolThreads:
		err = g.createThreads(limited)
	case ProtocolExacta:
		err = g.openProject(limited)
	default:
		if conn, err = g.caller(limited); err != nil {
			return err
		}
		defer conn.Close()
		err = callAll(limited, conn, "CreateProcess", int64(len(g.conns)), func(i int64) string {
			pid := g.pidOf(i)
			return `{"pid":"` + pid + `","user_id":"` + pid + `","schedule":false,` + ampleQuota + `}`
		}, wire.FailedPrecondition)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrPrepare, err)
		}
	}
	if err != nil {
		g.cleanUp(ctx, conn)
	}
	return err
}

func (g *generator) needsOwn() bool {
	return slices.ContainsFunc(g.messages, func(m *message) bool { return m.owned })
}

// pidOf is what {{pid}} means on a connection.
func (g *generator) pidOf(conn int64) string {
	return fmt.Sprintf("bench-%s-%0*d", g.run, connWidth, conn)
}

// cleanUp closes the threads or the project of the run, or terminates its processes and those that
// the built-in CreateProcess made. It does what it can: the server may be gone. After a failed
// preparation conn is the connection that created: requests of one connection take effect in the
// order sent, so those that were given up without a reply come before their end. It is nil
// otherwise.
func (g *generator) cleanUp(ctx context.Context, conn *ipcclient.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	switch g.plan.Target.Protocol {
	case ProtocolThreads:
		_ = g.callLines(ctx, "update_thread_status", len(g.threads), func(i int, _ *answered) ([]byte, error) {
			params := jsonx.Build(nil).Text("thread_id", g.threads[i]).Text("status", "closed").Text("reason", "end of a measurement").End()
			return encodeCall("update_thread_status", params)
		}, func(*answered) error { return nil })
		return
	case ProtocolExacta:
		g.closeProject(ctx)
		return
	}
	share := slices.IndexFunc(g.plan.Mix, func(s Share) bool { // that creates processes with the built-in body
		const name = "kernel.CreateProcess"
		return g.plan.Target.Protocol == ProtocolKernel && s.Name == name && string(s.Body) == kernelBodies[name]
	})
	if share < 0 && !g.needsOwn() {
		return
	}
	if conn == nil || conn.Err() != nil {
		var err error
		if conn, err = g.caller(ctx); err != nil {
			return
		}
		defer conn.Close()
	}
	terminate := func(pid string) string { return `{"pid":"` + pid + `","reason":"end of a measurement"}` }
	if g.needsOwn() {
		_ = callAll(ctx, conn, "TerminateProcess", int64(len(g.conns)), func(i int64) string { return terminate(g.pidOf(i)) }, wire.NotFound)
	}
	if share >= 0 {
		end := int64(0) // a number that no request sent has reached
		for _, c := range g.conns {
			if c.stamps > 0 {
				end = max(end, c.next)
			}
		}
		_ = callAll(ctx, conn, "TerminateProcess", end, func(k int64) string {
			if g.mix.pick(k) != share {
				return ""
			}
			return terminate(fmt.Sprintf("%s%s-%0*d", createdPrefix, g.run, seqWidth, k))
		}, wire.NotFound)
	}
}

// caller connects to the target for calls beside the load.
func (g *generator) caller(ctx context.Context) (*ipcclient.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := g.plan.Target.dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	return ipcclient.New(nc), nil
}

// callAll makes n calls of a kernel method; an empty body leaves one out, and errors of one code
// do not matter. The first other one ends it, and gives up the calls in flight: they may still take
// effect.
func callAll(ctx context.Context, conn *ipcclient.Conn, method string, n int64, body func(i int64) string, fine wire.Code) error {
	return each(ctx, callers, n, func(ctx context.Context, i int64) error {
		text := body(i)
		if text == "" {
			return nil
		}
		packed, err := transcode.EncodeJSON([]byte(text))
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		_, err = conn.Call(limited, "kernel", method, packed)
		said := (*ipcclient.Error)(nil)
		switch {
		case errors.As(err, &said) && said.Code == fine:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("no reply to %s: %w", method, err)
		}
		return err
	})
}

// threadsBodies are the built-in params of ProtocolThreads. What is read is what came since the
// last message of the thread: nothing, as most readers find. Methods that are missing need what
// only the user knows.
var threadsBodies = map[string]string{
	"post_message":     `{"thread_id":"{{thread}}","schema_version":1,"kind":"chat","body":"hello","idempotency_key":"{{uuid}}"}`,
	"read_messages":    `{"thread_id":"{{thread}}","since_seq":9007199254740991,"limit":50}`,
	"ack_read":         `{"thread_id":"{{thread}}","last_read_seq":0}`,
	"get_thread":       `{"thread_id":"{{thread}}"}`,
	"summarize_thread": `{"thread_id":"{{thread}}"}`,
	"ping":             `{}`,
}

// answered is an answer to a line beside the load.
type answered struct {
	OK     bool
	Type   string // of a message of projects
	Result struct {
		Agent     string `json:"agent_id"`
		Workspace string `json:"workspace_id"`
		Thread    string `json:"thread_id"`
		Project   string `json:"project_id"`
	}
	Error struct{ Code string }
}

// createThreads creates the threads that the connections share evenly, one for each unless the plan
// has fewer.
func (g *generator) createThreads(ctx context.Context) error {
	n := g.plan.Threads
	if n == 0 {
		n = len(g.conns)
	}
	err := g.callLines(ctx, "create_thread", n, func(i int, self *answered) ([]byte, error) {
		return encodeCall("create_thread", jsonx.Build(nil).Text("workspace_id", self.Result.Workspace).Text("title", fmt.Sprintf("trunkline bench %s-%d", g.run, i)).
			Text("type", "workflow").Texts("participants", []string{self.Result.Agent}).End())
	}, func(a *answered) error {
		if len(a.Result.Thread) != threadWidth {
			return fmt.Errorf("%w: the identifier %.64q has not %d bytes", ErrPrepare, a.Result.Thread, threadWidth)
		}
		g.threads = append(g.threads, a.Result.Thread)
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range g.conns {
		c.owned = g.threads[i%n]
	}
	return nil
}

// callLines makes n calls of a method over a connection of its own, pipelined. line makes a
// call, given the answer to the greeting; take gets the answers. All of them are looked at,
// because what was created has to be known; the first that is refused is the error.
func (g *generator) callLines(ctx context.Context, method string, n int, line func(i int, self *answered) ([]byte, error), take func(*answered) error) error {
	if n == 0 {
		return nil
	}
	nc, greeted, err := g.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	var self answered
	_ = json.Unmarshal(greeted, &self) // what it does not have is refused later
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	var out []byte
	for i := range n {
		line, err := line(i, &self)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPrepare, err)
		}
		out = append(out, line...)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = nc.Write(out) // a failure shows in the answers
	}()
	defer func() { nc.Close(); <-sent }()
	in := bufio.NewReaderSize(nc, keptBuffer)
	for range n {
		a, lost := nextAnswer(nc, in)
		if errors.Is(lost, os.ErrDeadlineExceeded) {
			lost = context.DeadlineExceeded
		}
		switch {
		case lost != nil:
			return fmt.Errorf("%w: no reply to %s: %w", ErrPrepare, method, cmp.Or(ctx.Err(), lost))
		case !a.OK:
			err = cmp.Or(err, fmt.Errorf("%w: %s: %s", ErrPrepare, method, clip([]byte(cmp.Or(a.Error.Code, string(unknownCode))))))
		default:
			err = cmp.Or(err, take(&a))
		}
	}
	return err
}

// nextAnswer reads up to the next answer. Events are none.
func nextAnswer(nc net.Conn, in *bufio.Reader) (a answered, err error) {
	for {
		if err := nc.SetReadDeadline(time.Now().Add(callTime)); err != nil {
			return a, err
		}
		line, err := in.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		a = answered{}
		if json.Unmarshal(line, &a) != nil {
			return a, errMalformed
		}
		if a.Type != "event" {
			return a, nil
		}
	}
}

// The request of ProtocolExacta (exacta §3.2). The last group of its request_id is the request's
// id, the second one the connection's number.
const (
	exactaHead   = `{"ipc_version":"1.0","type":"request","request_id":"`
	exactaTime   = `"2026-01-15T00:00:00.000Z"`
	exactaConn   = len(exactaHead) + len("00000000-")
	exactaID     = exactaConn + len("0000-4000-8000-")
	connInID     = 4 // digits: maxConns connections count from 0
	expectedCode = "ST-001"
)

// exactaBodies are the built-in payloads of ProtocolExacta: what controls a project in which
// nothing runs is refused by the queue of the project, and an open project may be opened again.
// Commands that are missing need what only the user knows.
var exactaBodies = map[string]string{
	"OpenProject":  `{"path":"{{root}}"}`,
	"Pause":        `{"project_id":"{{project}}","execution_id":"{{uuid}}"}`,
	"Resume":       `{"project_id":"{{project}}","execution_id":"{{uuid}}"}`,
	"Cancel":       `{"project_id":"{{project}}","execution_id":"{{uuid}}"}`,
	"ValidatePlan": `{"project_id":"{{project}}","plan_id":"{{uuid}}"}`,
}

// idInBody is the request_id of a message before its patches.
const idInBody = "{{run}}-0000-4000-8000-000000000000"

// wrap makes the whole line of a request of its payload.
func wrap(id, name, payload string) string {
	line := exactaHead + id + `","sent_at":` + exactaTime + `,"command":`
	return string(jsonx.AppendString([]byte(line), name)) + `,"payload":` + payload + `}`
}

// rootOf is the project of a run, on this machine.
func rootOf(run string) string { return filepath.Join(os.TempDir(), "trunkline-bench-"+run) }

// openProject makes the folder of a project and opens it. Its marker keeps the server from looking
// for a root above it.
func (g *generator) openProject(ctx context.Context) error {
	root := rootOf(g.run)
	err := os.Mkdir(root, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "go.mod"), []byte("module bench\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPrepare, err)
	}
	return g.command(ctx, 0, "OpenProject", jsonx.Build(nil).Text("path", root).End(), func(a *answered) error {
		for _, c := range g.conns {
			c.owned = a.Result.Project
		}
		return nil
	})
}

// closeProject closes the project of the run and removes its folder. It does what it can.
func (g *generator) closeProject(ctx context.Context) {
	root := rootOf(g.run)
	if _, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if id := g.conns[0].owned; id != "" {
		_ = g.command(ctx, 1, "CloseProject", jsonx.Build(nil).Text("project_id", id).End(), func(*answered) error { return nil })
	}
	_ = os.RemoveAll(root)
}

// command makes one request beside the load, the nth. Its request_id is that of no connection.
func (g *generator) command(ctx context.Context, n int, name string, payload []byte, take func(*answered) error) error {
	line := wrap(fmt.Sprintf("%s-ffff-4000-8000-%012d", g.run, n), name, string(payload)) + "\n"
	return g.callLines(ctx, name, 1, func(int, *answered) ([]byte, error) { return []byte(line), nil }, take)
}
