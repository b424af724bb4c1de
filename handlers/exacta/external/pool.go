package external

import (
	"context"
	"log/slog"
	"sync"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// maxProcesses is how many planners of one command run: as many projects are planned for at a time.
// A process takes one line at a time.
const maxProcesses = 4

// pool has the processes of one command. They are started when they are needed, and kept.
type pool struct {
	command []string
	logger  *slog.Logger
	ids     *codec.Scope
	places  chan struct{} // one for each process that answers

	mu     sync.Mutex
	idle   []*process // the last one is taken first, so that one is enough for one project
	closed bool
	busy   sync.WaitGroup // processes until they are reaped
}

func newPool(command []string, logger *slog.Logger) *pool {
	return &pool{command: command, logger: logger, ids: codec.NewScope("", ""), places: make(chan struct{}, maxProcesses)}
}

// ask gives a line to a process and returns the result in its answer (exacta §4.20). A process that
// did not answer as it should is ended, and the next question starts another one.
func (p *pool) ask(ctx context.Context, q *query) ([]byte, *errcode.Fault) {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return nil, errcode.New("IPC-010", "")
	}
	proc, f := p.take()
	if f != nil {
		return nil, f
	}
	id := p.ids.Next(codec.Plan).String()
	line := jsonx.Build(nil).Text("protocol", "exacta-planner/1").Text("id", id).Text("op", q.op).Raw("input", q.input).End()
	ctx, cancel := context.WithTimeout(ctx, q.within)
	defer cancel()
	answer, f := proc.exchange(ctx, append(line, '\n'))
	var result []byte
	var kept bool
	if f == nil {
		result, kept, f = decodeLine(answer, id)
	}
	if !kept {
		proc.end()
		return result, f
	}
	p.put(proc)
	return result, f
}

// take returns a process that waits for a line.
func (p *pool) take() (*process, *errcode.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errcode.New("AI-003", "planner: the server stops")
	}
	for len(p.idle) > 0 {
		proc := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !proc.ended() {
			return proc, nil
		}
		proc.end() // it has no descendants to look for any more
	}
	p.busy.Add(1)
	proc, err := start(p.command, p.logger, p.busy.Done)
	if err != nil {
		p.logger.Warn("cannot start planner", "error", err)
		return nil, errcode.New("AI-003", "planner: cannot be started")
	}
	return proc, nil
}

// put takes a process back.
func (p *pool) put(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		proc.end()
		return
	}
	p.idle = append(p.idle, proc)
}

// close ends the processes that wait; those that answer are ended once they have. It returns when
// all have ended.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, proc := range idle {
		proc.end()
	}
	p.busy.Wait()
}

// decodeLine reads the answer of a process to the line with an id. kept is set if the process can
// go on: it answered what it was asked.
func decodeLine(line []byte, id string) (result []byte, kept bool, f *errcode.Fault) {
	line = jsonx.TrimBOM(line)
	var strict jsonx.Strict
	if problem := strict.Check(line, maxDepth); !problem.OK() {
		return nil, false, unclear(problem.String())
	}
	r := &reader{left: maxAnswer}
	m := r.members("line", jsonx.ValueOf(line), "id", "ok", "result", "error")
	if r.text("id", m[0], 0) != id {
		r.bad("id: another one")
	}
	if r.f == nil && m[1].Kind == jsonx.True {
		if m[2].Kind != jsonx.ObjectStart {
			return nil, true, unclear("result: no object")
		}
		return m[2].Raw, true, nil
	}
	if m[1].Kind != jsonx.False {
		r.bad("ok: neither true nor false")
	}
	e := r.members("error", m[3], "code", "message")
	code, message := r.text("error.code", e[0], 0), r.text("error.message", e[1], 0)
	if row := errcode.Lookup(code); r.f == nil && (row == nil || row.Category != "AI") {
		r.bad("error.code: not one of planners")
	}
	if r.f != nil {
		return nil, false, r.f
	}
	return nil, true, errcode.New(code, "planner: "+message)
}
