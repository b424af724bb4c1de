package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// Builtin is one tool of the server: what it is and how it runs.
type Builtin struct {
	tool.Descriptor
	tool.Tool
	// Hidden tools can be run only if a manifest binds them (toolhost §4.7).
	Hidden bool
}

// trait is what a tool is beside its texts.
type trait uint8

const (
	deterministic trait = 1 << iota
	fast
	hidden
)

// specs lists the tools of the server (toolhost §4.7). Tags and side effects are words.
var specs = [...]struct {
	aid, name, tags, effects, replay string
	traits                           trait
	run                              runFunc
}{
	{"AID.NOOP.v1", "noop", "tag.meta", "none", "", deterministic | fast, noop},
	{"AID.ASK_SUP.v1", "ask_user_for_clarification", "tag.meta", "none", "",
		deterministic | fast, askSup},
	{"AID.TEST.ECHO.v1", "Test Echo Tool", "tag.test", "none", "",
		deterministic | fast | hidden, testEcho},
	{"AID.ERROR_SCAN.v1", "error_scan_csv", "tag.log tag.scan tag.error", "filesystem_read",
		"input_path_fingerprint", deterministic, errorScan},
	{"AID.REPORT_SUMMARY.v1", "report_summary", "tag.report tag.error", "none", "",
		deterministic, reportSummary},
	{"AID.FILE.READ.v1", "file_read", "tag.fs tag.meta", "filesystem_read",
		"path_fingerprint", deterministic, fileRead},
	{"AID.FILE.WRITE.v1", "file_write", "tag.fs tag.meta", "filesystem_write", "", 0, fileWrite},
	{"AID.HASH.DIGEST.v1", "hash_digest", "tag.meta tag.hash", "filesystem_read", "",
		deterministic, hashDigest},
	{"AID.PROC.SELF_METRICS.v1", "proc_self_metrics", "tag.meta tag.debug tag.ops",
		"process_introspection", "", 0, selfMetrics},
	{EmbedAID, "embed_text", "tag.embed tag.meta", "none", "", deterministic | fast, embedText},
	{"AID.MEMORY.APPEND.v1", "memory_append", "tag.memory tag.fs tag.meta", "filesystem_write",
		"", 0, memoryAppend},
	{"AID.MEMORY.SEARCH.v1", "memory_search", "tag.memory tag.fs tag.meta", "filesystem_read",
		"", 0, memorySearch},
	{"AID.MEMORY.QUERY.v1", "memory_query", "tag.memory tag.fs tag.meta", "filesystem_read",
		"", 0, memoryQuery},
	{"AID.VECDB.UPSERT.v1", "vectordb_upsert", "tag.vectordb tag.memory tag.fs",
		"filesystem_write", "", 0, vecdbUpsert},
	{"AID.VECDB.QUERY.v1", "vectordb_query", "tag.vectordb tag.memory tag.fs", "filesystem_read",
		"", 0, vecdbQuery},
}

// Builtins returns all built-in tools, sorted by AID. They use e, which must not change any more.
// The slice and its strings belong to the caller.
func Builtins(e *Env) []Builtin {
	list := make([]Builtin, len(specs))
	for i, s := range specs {
		if s.aid == EmbedAID && e.Embed.Program != nil {
			s.traits = 0 // a program need not give the same twice, and the tool waits for it
		}
		d := tool.Descriptor{
			AID: s.aid, Name: s.name, Tags: strings.Fields(s.tags), SideEffects: strings.Fields(s.effects),
			ReplayInputs: strings.Fields(s.replay), Deterministic: s.traits&deterministic != 0, Fast: s.traits&fast != 0,
		}
		d.Tier = tool.TierOf(d.AID, d.SideEffects)
		list[i] = Builtin{Descriptor: d, Tool: &bound{e, s.run}, Hidden: s.traits&hidden != 0}
	}
	slices.SortFunc(list, func(a, b Builtin) int { return cmp.Compare(a.AID, b.AID) })
	return list
}

// runFunc runs a tool. The text of err is that of the reply; after ctx has ended it is ignored.
type runFunc func(ctx context.Context, e *Env, c *tool.Call) (output []byte, err error)

// bound is a tool with what it works on.
type bound struct {
	env *Env
	run runFunc
}

// Run implements tool.Tool.
func (b *bound) Run(ctx context.Context, c *tool.Call) tool.Result {
	output, err := b.run(ctx, b.env, c)
	if err == nil {
		return tool.Result{Output: output}
	}
	if ctx.Err() != nil && !errors.Is(err, errNotIndexed) {
		err = context.Cause(ctx)
	}
	return tool.Fail(err.Error())
}

// noop does nothing; its output is {}.
func noop(context.Context, *Env, *tool.Call) ([]byte, error) { return nil, nil }

// askSup passes a question to the supervisor: it leaves its input in DS1 and returns it.
func askSup(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	c.State.Set(1, dsstate.Artifact{
		Type: "ask_sup", Provenance: "ask_sup", Content: string(c.Input), Size: int64(len(c.Input)),
	})
	return bytes.Clone(c.Input), nil
}

// testEcho leaves its input in DS6. It is for tests of callers.
func testEcho(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	content := string(jsonx.Build(make([]byte, 0, len(`{"echo":}`)+len(c.Input))).Raw("echo", c.Input).End())
	c.State.Set(6, dsstate.Artifact{
		Type: "text", Provenance: "test_plugin", Content: content, Size: int64(len(content)),
	})
	return []byte(`{"ok":true}`), nil
}
