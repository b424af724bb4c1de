package tools

import (
	"context"
	"slices"
	"strings"

	"trunkline/handlers/toolhost/tool"
)

// Builtin is one tool of the server: what it is and how it runs.
type Builtin struct {
	tool.Descriptor
	tool.Tool
	// Hidden tools can be run only if a manifest binds them (toolhost §4.7).
	Hidden bool
}

// Builtins returns all built-in tools, sorted by AID. They use e, which must not change any more. The slice and its strings belong
// to the caller.
func Builtins(e *Env) []Builtin {
	list := append(memoryTools(e),
		noop(),
		askSup(),
		errorScan(e),
		reportSummary(),
		fileRead(e),
		fileWrite(e),
		selfMetrics(),
		hashDigest(e),
		testEcho(),
	)
	slices.SortFunc(list, func(a, b Builtin) int { return strings.Compare(a.AID, b.AID) })
	return list
}

// runFunc makes a tool of a function.
type runFunc func(ctx context.Context, c *tool.Call) tool.Result

// Run calls f.
func (f runFunc) Run(ctx context.Context, c *tool.Call) tool.Result { return f(ctx, c) }

// builtin returns the tool that d describes and run does. Its tier is what its name and side effects say (toolhost §4.4).
func builtin(d tool.Descriptor, run runFunc) Builtin {
	d.Tier = tool.TierOf(d.AID, d.SideEffects)
	return Builtin{Descriptor: d, Tool: run}
}

// canceled returns the result of a tool that stopped because nobody waits for it any more.
func canceled(ctx context.Context) tool.Result { return tool.Fail(context.Cause(ctx).Error()) }
