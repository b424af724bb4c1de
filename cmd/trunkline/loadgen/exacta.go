package loadgen

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
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

// wrap makes the whole line of a request, placeholders included, of its payload.
func wrap(name, payload string) string {
	line := exactaHead + `{{run}}-0000-4000-8000-000000000000","sent_at":` + exactaTime + `,"command":`
	return string(jsonx.AppendString([]byte(line), name)) + `,"payload":` + payload + `}`
}

// rootOf is the project of a run, on this machine.
func rootOf(id identity) string { return filepath.Join(os.TempDir(), "trunkline-bench-"+id.String()) }

// openProject makes the folder of a project and opens it. Its marker keeps the server from looking
// for a root above it.
func (g *generator) openProject(ctx context.Context) error {
	root := rootOf(g.identity())
	err := os.Mkdir(root, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "go.mod"), []byte("module bench\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPrepare, err)
	}
	id, err := g.askProject(ctx, "OpenProject", jsonx.Build(nil).Text("path", root).End())
	if err != nil {
		return err
	}
	for _, c := range g.conns {
		c.owned = id
	}
	return nil
}

// closeProject closes the project of the run and removes its folder. It does what it can.
func (g *generator) closeProject(ctx context.Context) {
	root := rootOf(g.identity())
	if _, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if id := g.conns[0].owned; id != "" {
		_, _ = g.askProject(ctx, "CloseProject", jsonx.Build(nil).Text("project_id", id).End())
	}
	_ = os.RemoveAll(root)
}

// askProject makes one request over a connection of its own, and returns the project_id of its
// result, if that has one.
func (g *generator) askProject(ctx context.Context, command string, payload []byte) (project string, err error) {
	nc, err := g.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	m, err := compile(&g.plan.Target, &Share{Name: command, Body: payload}, g.identity())
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPrepare, err)
	}
	project, code, err := g.exchange(nc, m)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: no reply to %s: %w", ErrPrepare, command, cmp.Or(ctx.Err(), err))
	case code != "":
		return "", fmt.Errorf("%w: %s: %s", ErrPrepare, command, code)
	}
	return project, nil
}

// exchange sends a request and reads up to its response. Its number is that of no connection of the
// run.
func (g *generator) exchange(nc net.Conn, m *message) (project, code string, err error) {
	id := uint64(g.now())<<idPlaceBits | 1
	if _, err := nc.Write(m.append(nil, &request{id: id & (1<<idBits - 1), conn: 9999})); err != nil {
		return "", "", err
	}
	in := bufio.NewReaderSize(nc, keptBuffer)
	for {
		a, err := nextAnswer(nc, in)
		switch {
		case err != nil:
			return "", "", err
		case a.Type == "event": // it has no answer
		case a.OK:
			return a.Result.Project, "", nil
		default:
			return "", string(clip([]byte(cmp.Or(a.Error.Code, string(unknownCode))))), nil
		}
	}
}

// envelopes reads the messages of exacta §3. A command that an idle project refuses because of its
// state reached the queue of the project, and is answered well.
type envelopes struct {
	lines
}

func newEnvelopes() *envelopes {
	return &envelopes{lines{names: jsonx.NewNames("ok", "type", "error", "request_id"), fault: jsonx.NewNames("code")}}
}

// How servers begin their messages, and what follows an id in a response.
const (
	responseHead = `{"ipc_version":"1.0","type":"response","request_id":"`
	eventHead    = `{"ipc_version":"1.0","type":"event",`
	behindID     = `","correlation_id":"00000000-0000-0000-0000-000000000000","sent_at":"2026-01-15T00:00:00.000Z",`
	goodResponse = `"ok":true,`
	expected     = `"ok":false,"result":null,"error":{"code":"` + expectedCode + `"`
)

func (e *envelopes) next(in []byte, r *reply) (n, need int, err error) {
	line, n, need, err := e.split(in)
	if n > 0 {
		err = e.read(line, r)
	}
	return n, need, err
}

func (e *envelopes) read(line []byte, r *reply) error {
	*r = reply{}
	if begins(line, eventHead) {
		r.none = true
		return nil
	}
	if begins(line, responseHead) && len(line) > len(responseHead)+uuidWidth+len(behindID) {
		at := len(responseHead) + uuidWidth
		r.id, r.hasID = hexID(line[at-idWidth : at])
		rest := line[at+len(behindID):]
		if r.ok = r.hasID && (begins(rest, goodResponse) || begins(rest, expected)); r.ok {
			return nil
		}
	}
	return e.readWhole(line, r)
}

// readWhole reads a message whatever its form.
func (e *envelopes) readWhole(line []byte, r *reply) error {
	if res, _ := e.names.Scan(line, jsonx.MaxDepth, e.members[:]); res != jsonx.ScanOK {
		return errMalformed
	}
	kind := e.members[1]
	if r.none = kind.Kind == jsonx.String && string(kind.Raw) == "event"; r.none {
		return nil
	}
	if id := e.members[3]; id.Kind == jsonx.String && len(id.Raw) == uuidWidth {
		r.id, r.hasID = hexID(id.Raw[uuidWidth-idWidth:])
	}
	r.stray = !r.hasID
	e.readCode(r)
	r.ok = r.ok || string(r.code) == expectedCode
	return nil
}

func (*envelopes) end([]byte, *reply) bool { return false }

func begins(line []byte, head string) bool {
	return len(line) >= len(head) && string(line[:len(head)]) == head
}
