package toolset

import (
	"context"
	"math"

	"trunkline/handlers/toolhost/procgroup"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/tools"
	"trunkline/handlers/toolhost/workers"
)

// embedder returns what runs the operator's embedding program, nil if there is none (toolhost §11).
// It is one process, which is kept: loading a model takes long, and its limits are those that the
// operator gives it.
func (s *Set) embedder(o *Options) (tool.Tool, error) {
	if s.Env.Embed.Command == "" {
		return nil, nil
	}
	argv, err := s.command("MACHINA_EMBED_CMD", s.Env.Embed.Command)
	if err != nil {
		return nil, err
	}
	t := s.process(o, tools.EmbedAID, workers.ProcessConfig{Command: argv, Dir: s.Env.Root, Env: procgroup.Environ(s.lookup, nil), Plain: true,
		Pool: workers.PoolConfig{Min: 1, Max: 1, MaxRequests: math.MaxInt}})
	return &guarded{t, tool.NewBreaker(o.breaker(tools.EmbedAID))}, nil
}

// guarded is a tool with a breaker of its own, for what a server does not know as a tool.
type guarded struct {
	tool.Tool
	breaker *tool.Breaker
}

// Run implements tool.Tool.
func (g *guarded) Run(ctx context.Context, c *tool.Call) tool.Result {
	probe, ok := g.breaker.Allow()
	if !ok {
		return tool.Fail("circuit breaker open for " + c.AID)
	}
	g.breaker.Start(probe)
	r := g.Tool.Run(ctx, c)
	g.breaker.Done(probe, r.Dispatch())
	return r
}
