// Package external asks the planners that the operator of the server enabled (exacta §4.20): a
// program that speaks lines of JSON, or a server with the interface of OpenAI.
//
//	Extract, Plan ─► input ─► secrets? ─► cache of the project ── hit ──► strict decoding
//	                                        miss │                              ▲
//	                                             └──► program or server ── answer ┘
//
// A line to a program and its answer:
//
//	{"protocol":"exacta-planner/1","id":"<uuid>","op":"extract_intent","input":{…}}
//	{"id":"<uuid>","ok":true,"result":{…}}
//	{"id":"<uuid>","ok":false,"error":{"code":"AI-003","message":"…"}}
//
// What a planner answers is not trusted: it goes the way of all plans, through the rules of plans
// and the approval, and names no path outside the project. A file of the cache is read the same
// way, since it lies in the project.
//
// A project sends what its own configuration selects, and nothing else: the input, the names and
// sizes of the files of its index, and the content of the files that the intent names. Paths that
// a rule denies, absolute paths and identifiers are never part of it.
//
// Out of scope: streaming, several choices, another provider when one fails.
package external

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

const (
	maxAnswer = 4 << 20       // bytes of an answer (exacta §4.20)
	maxInput  = 4<<20 - 1<<10 // bytes of an input: with what is around it, the line is no longer than that of an answer
	maxDepth  = 32            // of their nesting (exacta §3.1)
)

// Operations (exacta §4.20).
const (
	extractIntent = "extract_intent"
	generatePlan  = "generate_plan"
)

// query is one question.
type query struct {
	op     string
	model  string
	input  []byte
	within time.Duration // how long one answer may take
	tokens int           // of an answer, at most
}

// asker asks one kind of planner. What it returns is any text of at most maxAnswer bytes.
type asker interface {
	ask(ctx context.Context, q *query) (result []byte, f *errcode.Fault)
	close()
}

// Planner asks the external planner of a server. Its methods may be called from any goroutine.
type Planner struct {
	cfg   Config
	asker asker // nil if there is no external planner

	saving sync.Mutex // one answer at a time
}

// New returns the planner of a configuration that passed Check. It starts nothing.
func New(cfg Config) *Planner {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	p := &Planner{cfg: cfg}
	switch cfg.Kind {
	case Subprocess:
		p.asker = newPool(cfg.Command, cfg.Logger)
	case OpenAI:
		p.asker = newChat(&cfg)
	}
	return p
}

// Close ends what the planner runs. Questions that are asked afterwards fail.
func (p *Planner) Close() {
	if p.asker != nil {
		p.asker.close()
	}
}

// Ready returns why a project may not have what its configuration selects: CFG-003 (exacta §4.20),
// CFG-002 if it should name a model.
func (p *Planner) Ready(c *workspace.Config) *errcode.Fault {
	switch {
	case c.Provider == Builtin:
		return nil
	case p.asker == nil || c.Provider != p.cfg.Kind:
		return errcode.New("CFG-003", "ai.provider: not enabled", "ai.provider")
	case c.Provider == OpenAI && c.Endpoint != "" && c.Endpoint != p.cfg.URL:
		return errcode.New("CFG-003", "ai.endpoint: not that of the server", "ai.endpoint")
	case c.Provider == OpenAI && p.model(c) == "":
		return errcode.New("CFG-002", "ai.model: the server names none", "ai.model")
	}
	return nil
}

// model returns the model that a project uses: that of the operator, who may leave it to projects.
func (p *Planner) model(c *workspace.Config) string { return cmp.Or(p.cfg.Model, c.Model) }

// Project is what a planner may learn about a project.
type Project struct {
	Disk    *workspace.Project
	Config  *workspace.Config
	Tree    planner.Tree
	Size    func(path string) int64 // of a file of the index
	Planner *planner.Config
}

// Extract asks for the intent of an input (exacta §4.20). The fault is VAL-002 for constraints that
// contradict each other, else it is about the planner: AI-xxx, SEC-003, IPC-010.
func (p *Planner) Extract(ctx context.Context, pr *Project, input string) (in planner.Intent, f *errcode.Fault) {
	a, f := p.ask(ctx, pr, extractIntent, extractInput(pr, input), func(result []byte) (f *errcode.Fault) {
		in, f = decodeIntent(result)
		return f
	})
	if f != nil {
		return planner.Intent{}, f
	}
	in.RawInput = input
	if f := planner.Contradiction(in.Constraints); f != nil {
		return planner.Intent{}, f
	}
	p.Keep(pr, a)
	return in, nil
}

// Plan asks for the steps of an intent. feedback is what was wrong with the plan before, in the
// words of exacta §4.5. The answer is to be kept once the plan is valid. The fault is RES-001,
// SEC-003, AI-xxx or IPC-010.
func (p *Planner) Plan(ctx context.Context, pr *Project, in *planner.Intent, feedback []plan.Violation) (steps []Step, a *Answer, f *errcode.Fault) {
	input, f := planInput(pr, in, feedback)
	if f != nil {
		return nil, nil, f
	}
	a, f = p.ask(ctx, pr, generatePlan, input, func(result []byte) (f *errcode.Fault) {
		steps, f = decodeSteps(result)
		return f
	})
	return steps, a, f
}

// Answer is an answer that may be put into the cache.
type Answer struct {
	key    string
	result []byte // nil if the cache has it
}

// Keep puts answers into the cache of a project. A cache that cannot be written keeps none.
func (p *Planner) Keep(pr *Project, answers ...*Answer) {
	if p.cfg.Cache == ReadOnly || p.cfg.Cache == Off {
		return
	}
	p.saving.Lock()
	defer p.saving.Unlock()
	for _, a := range answers {
		if a.result == nil {
			continue
		}
		if f := pr.Disk.SaveAnswer(a.key, a.result); f != nil {
			p.cfg.Logger.Warn("cannot keep the answer of a planner", "error", f.Error())
		}
	}
}

// ask finds the answer to an input in the cache, or asks the planner, once more if what it answers
// cannot be understood (exacta §3.7, AI-005). accept decodes an answer.
func (p *Planner) ask(ctx context.Context, pr *Project, op string, input []byte, accept func([]byte) *errcode.Fault) (*Answer, *errcode.Fault) {
	if len(input) > maxInput {
		return nil, errcode.New("RES-001", "planner: its input would have more than 4 MiB")
	}
	if leaks(input) {
		return nil, errcode.New("SEC-003", "planner: in what would be sent")
	}
	model := p.model(pr.Config)
	a := &Answer{key: p.key(op, model, input)}
	if p.cfg.Cache != Off {
		if kept, ok := pr.Disk.LoadAnswer(a.key); ok && usable(kept, accept) == nil {
			return a, nil
		}
	}
	if p.cfg.Cache == ReadOnly {
		return nil, errcode.New("AI-003", "planner_cache: no such answer")
	}
	q := &query{op: op, model: model, input: input, within: time.Duration(pr.Config.AITimeout) * time.Second, tokens: pr.Config.MaxOutputTokens}
	for again := false; ; again = true {
		result, f := p.asker.ask(ctx, q)
		if f == nil {
			f = usable(result, accept)
		}
		switch {
		case ctx.Err() != nil:
			return nil, errcode.New("IPC-010", "")
		case f == nil:
			a.result = result
			return a, nil
		case f.Code != "AI-005" || again:
			return nil, f
		}
	}
}

// key returns the name of the answer to an input (exacta §4.20).
func (p *Planner) key(op, model string, input []byte) string {
	b := jsonx.Build(nil).Raw("input", input).Text("model", model).Text("op", op).Text("planner", p.cfg.Kind).Int("v", 1).End()
	return workspace.Sum(workspace.Canonical(nil, b))
}

// usable decodes an answer that has a legal form and no secret.
func usable(result []byte, accept func([]byte) *errcode.Fault) *errcode.Fault {
	if len(result) > maxAnswer {
		return tooLarge()
	}
	var strict jsonx.Strict
	if problem := strict.Check(result, maxDepth); !problem.OK() {
		return unclear(problem.String())
	}
	if leaks(result) {
		return errcode.New("SEC-003", "planner: in its answer")
	}
	return accept(result)
}

// leaks reports whether a text, or a string in it, has a secret of high confidence (exacta §6.6).
func leaks(text []byte) bool {
	if secret.Find(text) {
		return true
	}
	var w jsonx.Walker
	w.Start(text)
	var buf []byte
	for {
		switch kind, raw := w.Step(); kind {
		case jsonx.End:
			return false
		case jsonx.String, jsonx.Key:
			buf = jsonx.AppendUnescaped(buf[:0], raw)
			if secret.Find(buf) {
				return true
			}
		}
	}
}

func unclear(detail string) *errcode.Fault { return errcode.New("AI-005", "answer: "+detail) }

func tooLarge() *errcode.Fault { return errcode.New("AI-004", "answer: more than 4 MiB") }
