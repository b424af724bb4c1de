package toolhost

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// Exit codes of the single-shot modes (toolhost §2.1).
const (
	ExitOK       = 0
	ExitUsage    = 2
	ExitPlugin   = 3
	exitNoTool   = 4
	exitBadStdin = 5
)

// Single is a single-shot mode.
type Single struct {
	Registry *Registry
	// Timeout bounds the tool, unless it has a limit of its own. 0: 30 s.
	Timeout time.Duration
	// Unusable is shown by the mode list, beside the tools that can be run.
	Unusable []Unusable
	// Exec is the mode tool_exec, else run: they differ in their texts (toolhost §2.1).
	Exec bool
}

// List returns the line of the mode list. Its last member is what cannot be run, with the reasons.
func (s *Single) List() []byte {
	dst := s.Registry.appendList(nil, false, s.Unusable)
	if len(s.Unusable) > 0 {
		dst = append(jsonx.Builder(dst).Name("unusable"), '[')
		for _, u := range s.Unusable {
			dst = jsonx.Build(jsonx.AppendComma(dst)).Text("aid", u.AID).Text("why", u.Why).End()
		}
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// Run runs a tool on the request in stdin and returns the line of the reply and the exit code. It
// leaves nothing running but a built-in tool that missed its deadline.
func (s *Single) Run(aid string, stdin io.Reader) (line []byte, code int) {
	e := s.Registry.find([]byte(aid))
	if e == nil && !s.Exec {
		return appendFaultAbout(nil, "tool not found in plugin: ", []byte(aid), requestID{}), exitNoTool
	}
	text, err := io.ReadAll(io.LimitReader(stdin, MaxLine+1))
	switch {
	case len(text) > MaxLine:
		return appendFault(nil, "stdin exceeds 10MB limit", requestID{}), exitBadStdin
	case err != nil:
		return appendFault(nil, s.badJSON(), requestID{}), exitBadStdin
	}
	var c call
	id, fault := s.read(&c, aid, jsonx.TrimBOM(text))
	if fault != "" {
		if line = appendFault(nil, fault, id); len(line) > maxReply {
			line = appendFault(nil, errTooLarge, id)
		}
		return line, exitBadStdin
	}
	c.req.applyState(&c.after)
	c.after = c.after.Clone()
	var o outcome
	if e == nil {
		o = outcome{status: tool.ToolError, err: "MISSING_TOOL: " + aid}
	} else {
		r := s.run(e, &c)
		o = outcomeOf(r)
	}
	// A caller looks for diagnostics in what a failed tool left; an abandoned one left the input.
	o.after = &c.after
	line = o.appendWithin(nil, id, true)
	return line, ExitOK
}

func (s *Single) badJSON() string {
	if s.Exec {
		return "invalid JSON on stdin"
	}
	return "invalid JSON request on stdin"
}

func (s *Single) read(c *call, aid string, text []byte) (id requestID, fault string) {
	fault = c.req.scan(bytes.TrimRight(text, " \t\r\n"), nil)
	switch id, _ = c.req.requestID(); fault {
	case "":
	case errInvalidJSON, errMissingAID:
		return id, s.badJSON()
	default:
		return id, fault
	}
	if m := &c.req.members[nameAID]; m.Kind != jsonx.Absent && (!c.req.readAID() || string(c.req.aid) != aid) {
		return id, "invalid field: aid: does not match command line"
	}
	return id, c.req.read(new(sessionstate.State))
}

func (s *Single) run(e *Entry, c *call) tool.Result {
	limit := s.Timeout
	limit = cmp.Or(max(limit, 0), DefaultToolTimeout)
	if e.Timeout > 0 {
		limit = e.Timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(limit, MaxToolTimeout))
	defer cancel()
	state := c.after
	in := tool.Call{AID: e.AID, Input: c.req.input, State: &state, Now: time.Now}
	done := make(chan tool.Result, 1)
	go func() { done <- runRecovered(ctx, e, &in, slog.New(slog.DiscardHandler)) }()
	late := ctx.Done()
	if e.External {
		late = nil // a worker ends by itself, with a better error
	}
	select {
	case r := <-done:
		c.after = state
		return r
	case <-late:
	}
	return tool.Broken(e.AID, tool.Timeout, 0, "")
}
