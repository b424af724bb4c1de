package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trunkline/codec/jsonx"
)

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
