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
	"time"

	"trunkline/codec/jsonx"
)

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

// closeThreads closes the threads of the run. It does what it can.
func (g *generator) closeThreads(ctx context.Context) {
	_ = g.callLines(ctx, "update_thread_status", len(g.threads), func(i int, _ *answered) ([]byte, error) {
		params := jsonx.Build(nil).Text("thread_id", g.threads[i]).Text("status", "closed").Text("reason", "end of a measurement").End()
		return encodeCall("update_thread_status", params)
	}, func(*answered) error { return nil })
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
