// Package builtin holds the tools that are part of the server (toolhost §4.7).
//
//	Env        what they work on: directories, limits, the clock, from MACHINA_* (toolhost §6)
//	Builtins   all of them with their descriptors, sorted by AID
//
// Every file a caller names is opened through a root, a directory that no name leaves: not by "..",
// an absolute path, or a symbolic link. Names are opened component by component, and the system
// never follows a link; a link inside the root may lead on inside it, one as the last component is
// refused, and so is anything but a regular file. A hard link to a file from outside counts as
// inside; so do file systems mounted there. Files that the kernel makes up (/proc, /sys and the
// like) are not regular here: to read one may take for ever, or do something.
//
// Integers by value are taken however they are spelled (3, 3.0, 3e0); others count as absent, as
// members of the wrong type do (toolhost §4.7). Of repeated members the last counts (§2.4).
package builtin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
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

// Builtins returns all built-in tools, sorted by AID, for the caller. e must not change any more.
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

func noop(context.Context, *Env, *tool.Call) ([]byte, error) { return nil, nil }

// askSup passes a question to the supervisor: it leaves its input in DS1 and returns it.
func askSup(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	c.State.Set(1, sessionstate.Artifact{
		Type: "ask_sup", Provenance: "ask_sup", Content: string(c.Input), Size: int64(len(c.Input)),
	})
	return bytes.Clone(c.Input), nil
}

// testEcho leaves its input in DS6. It is for tests of callers.
func testEcho(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	content := `{"echo":` + string(c.Input) + `}` // one allocation, unlike that of a builder
	c.State.Set(6, sessionstate.Artifact{
		Type: "text", Provenance: "test_plugin", Content: content, Size: int64(len(content)),
	})
	return []byte(`{"ok":true}`), nil
}

// args are the members of a tool's input that the tool knows. They point into the input.
type args struct {
	names  []string
	values []jsonx.Value
}

// pick reads members of input, a checked object; the last of one name counts (toolhost §2.4).
func pick(input []byte, names ...string) args {
	a := args{names, make([]jsonx.Value, len(names))}
	jsonx.Pick(input, names, a.values)
	return a
}

// value returns the member name, one of those picked; its Kind is jsonx.End if it is absent.
func (a args) value(name string) jsonx.Value { return a.values[slices.Index(a.names, name)] }

// text returns the string name, unescaped; ok is false if there is none.
func (a args) text(name string) (s string, ok bool) {
	text, ok := a.value(name).Text()
	return string(text), ok
}

func (a args) integer(name string, absent int64) int64 {
	if v := a.value(name); v.Kind == jsonx.Number {
		if n, ok := jsonx.Integral(v.Raw); ok {
			return n
		}
	}
	return absent
}

// clamped returns the integer name brought between low and high, or absent if there is none.
func (a args) clamped(name string, low, high, absent int64) int64 {
	return min(max(a.integer(name, absent), low), high)
}

// positive returns the integer name, at most high; absent stands for none and for those below 1.
func (a args) positive(name string, high, absent int64) int64 {
	if n := a.integer(name, absent); n > 0 {
		return min(n, high)
	}
	return absent
}

// number returns the number name, or absent if there is none in the range of float64.
func (a args) number(name string, absent float64) float64 {
	v := a.value(name)
	if x, err := strconv.ParseFloat(string(v.Raw), 64); err == nil && v.Kind == jsonx.Number {
		return x
	}
	return absent
}

func (a args) boolean(name string, absent bool) bool {
	switch a.value(name).Kind {
	case jsonx.True:
		return true
	case jsonx.False:
		return false
	}
	return absent
}

// maxStatus bounds what is read of the system's page about the process; it has about 1.5 KiB.
const maxStatus = 64 << 10

func selfMetrics(context.Context, *Env, *tool.Call) ([]byte, error) {
	return appendMetrics(nil, os.Getpid(), readStatus("/proc/self/status"), countEntries("/dev/fd")), nil
}

// appendMetrics appends the output; what the system does not report is 0.
func appendMetrics(dst []byte, pid int, status []byte, fds int64) []byte {
	return jsonx.Build(dst).Bool("ok", true).Int("pid", int64(pid)).Int("rss_kb", statusValue(status, "VmRSS:")).
		Int("vmsize_kb", statusValue(status, "VmSize:")).Int("threads", statusValue(status, "Threads:")).
		Int("open_fds", fds).End()
}

func readStatus(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	status, _ := io.ReadAll(io.LimitReader(f, maxStatus)) // what was read before a fault is good
	return status
}

// statusValue returns the number in the line of status that begins with name, 0 if there is none.
func statusValue(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
				return max(n, 0)
			}
		}
	}
	return 0
}

// countEntries returns the entries of a directory but for its own descriptors, 0 if unreadable.
func countEntries(path string) (n int64) {
	d, err := openDir(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return 0
	}
	defer d.close()
	_ = d.names(func(string) bool { n++; return true })
	return max(n-2, 0) // d, and the second one that names reads with
}
