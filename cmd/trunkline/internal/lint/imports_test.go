package lint

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// room is a row of doors.
type room struct {
	room string
	may  []string
	why  string
}

// doors lists, for every room, which of our rooms its code (tests aside) may import. The first row
// that fits a package counts; a package that fits no row is a room without a plan.
var doors = []room{
	{"codec/wire", nil, "limits and error codes: a leaf"},
	{"codec/transcode", []string{"codec/jsonx", "codec/mpack", "codec/wire"}, "turns JSON into MessagePack and back"},
	{"codec/jsonx/document", []string{"codec/jsonx"}, "whole documents, by a library"},
	{"codec", []string{"codec/wire"}, "bytes in, bytes out: no codec needs another one"},
	{"engine/link", nil, "the seam between protocols and connections: a leaf"},
	{"engine/internal", []string{"engine/internal", "engine/link"}, "buffers, sockets, test helpers: below all of the engine"},
	{"engine/table", nil, "bounded tables: generic, without a protocol"},
	{"engine/idem", []string{"codec/mpack", "engine/link", "engine/store"}, "idempotency keys: a table and its records, without a protocol"},
	{"engine/journal/embedded", []string{"engine/journal", "engine/internal"}, "blocks on disk: it never looks into one"},
	{"engine/journal/memstore", []string{"engine/journal"}, "for tests"},
	{"engine/journal/replicated", []string{"engine/journal"}, "blocks that several nodes keep"},
	{"engine/journal", []string{"engine/internal"}, "the log: bytes without a meaning"},
	{"engine/cluster", []string{"engine/link"}, "membership, owners, placement, forwarding"},
	{"engine/smallfile", []string{"codec/jsonx"}, "files of settings"},
	{"engine/obs", nil, "metrics and logs, for every room"},
	{"engine/stream", []string{"engine/link", "engine/internal", "engine/obs"}, "connections on goroutines, for any session"},
	{"engine/reactor", []string{"engine/stream", "engine/link", "engine/internal", "engine/obs"}, "connections on event loops, for any session"},
	{"engine/store/rows", []string{"engine/journal", "engine/internal"}, "rows derived from the journal"},
	{"engine/store", []string{"engine/journal"}, "state machines in one journal"},
	{"engine/procgroup", nil, "ends a program and what it started: a leaf"},
	{"engine/kernel", []string{"engine/link", "engine/store"}, "the process table: pure decisions"},
	{"engine/bus", []string{"engine/internal/poison"}, "fan-out of opaque bodies: no protocol, no socket"},
	{"engine/envelope", []string{"codec/jsonx", "codec/mpack", "codec/wire"}, "the model of an envelope: it stores nothing"},
	{"engine/orchestration", []string{"codec/jsonx", "codec/mpack", "codec/transcode", "codec/wire", "engine/envelope", "engine/table", "engine/link", "engine/store"},
		"pipelines and sessions: no socket"},
	{"engine/threads", []string{"codec/jsonx", "engine/store", "engine/journal"}, "agent threads: pure decisions"},
	{"engine/exacta/fault", nil, "errors of projects: a leaf"},
	{"engine/exacta/relpath", nil, "paths of projects: no disk"},
	{"engine/exacta/secret", nil, "credentials in text: a leaf"},
	{"engine/exacta/diff", []string{"engine/exacta/fault", "engine/exacta/relpath"}, "diffs of one file: no disk"},
	{"engine/exacta", []string{"codec/jsonx", "engine/exacta"}, "projects: pure decisions"},
	{"handlers/internal", []string{"engine/link", "engine/obs", "engine/stream"}, "HTTP servers use it"},
	{"handlers/ops", []string{"engine/obs", "engine/reactor", "handlers/internal"}, "the admin listener shows what obs holds"},
	{"handlers/console", []string{"engine/obs"}, "the web console, over a source"},
	{"handlers/exchange", []string{"codec/jsonx", "engine/envelope", "engine/link", "engine/obs", "handlers/internal"}, "one envelope in, one out"},
	{"handlers/ipc/message", []string{"codec/mpack"}, "the maps of the protocol: a leaf"},
	{"handlers/ipc/client", []string{"codec", "handlers/ipc/message"}, "the caller's side"},
	{"handlers/ipc/route", []string{"codec", "engine", "handlers/ipc"}, "clients over several partitions"},
	{"handlers/ipc/ipctest", []string{"codec", "engine", "handlers/ipc"}, "drives sessions for tests"},
	{"handlers/ipc/crashtest", nil, "tests only: an endpoint over a disk that fails"},
	{"handlers/toolhost/sessionstate", []string{"codec/jsonx"}, "a leaf"},
	{"handlers/toolhost/selector", []string{"handlers/toolhost/tool", "handlers/toolhost/sessionstate", "engine/procgroup", "handlers/toolhost/workerexec", "codec/jsonx"}, "picks the next tool: it runs none"},
	{"handlers/toolhost/tool", []string{"handlers/toolhost/sessionstate", "codec/jsonx"}, "what a tool is"},
	{"handlers/toolhost/manifest", []string{"handlers/toolhost/tool", "handlers/toolhost/workerexec", "codec/jsonx"}, "reads what a toolpack declares"},
	{"handlers/toolhost/workerexec", nil, "a worker's first code"},
	{"handlers/toolhost/workers", []string{"engine/procgroup", "handlers/toolhost/workerexec", "handlers/toolhost/tool", "handlers/toolhost/sessionstate", "codec/jsonx"}, "external tools"},
	{"handlers/toolhost/tools", []string{"handlers/toolhost/tool", "handlers/toolhost/sessionstate", "codec/jsonx"}, "the built-in tools"},
	{"handlers/threads/web", []string{"codec/jsonx", "engine/link", "engine/obs", "handlers/internal", "handlers/threads/method", "handlers/threads/token"}, "agent threads over HTTP"},
	{"handlers/threads/mcp", []string{"codec/jsonx", "engine/link", "engine/obs", "handlers/internal", "handlers/threads/method", "handlers/threads/token"}, "agent threads over MCP"},
	{"handlers/threads/bridge", []string{"codec/jsonx", "engine/smallfile", "handlers/threads/mcp",
		"handlers/threads/method"}, "MCP on stdin and stdout"},
	{"handlers/threads/token", []string{"codec/jsonx", "engine/smallfile"}, "tokens and their keys"},
	{"handlers/threads/method", []string{"codec/jsonx", "engine/obs", "handlers/threads/token"}, "the table of methods"},
	{"handlers/threads/lines", []string{"codec/jsonx", "codec/ndjson", "engine/link", "engine/obs", "handlers/threads/method", "handlers/threads/token"}, "a surface"},
	{"handlers/threads/route", []string{"codec/ndjson", "engine", "handlers/internal", "handlers/threads"}, "clients over several partitions"},
	{"handlers/threads/supervisor", []string{"engine/procgroup"}, "wakes agents"},
	{"handlers/threads", []string{"codec/jsonx", "engine/threads", "handlers/threads"}, "the work of the methods"},
	{"handlers/exacta/workspace", []string{"codec/jsonx", "engine/exacta"}, "the disk of projects"},
	{"handlers/exacta/web", []string{"engine/link", "engine/obs", "engine/stream", "handlers/exacta", "handlers/internal"}, "projects for browsers"},
	{"handlers/exacta/external", []string{"codec/jsonx", "codec/ndjson", "engine/exacta", "engine/procgroup",
		"handlers/exacta/workspace"}, "planners"},
	{"handlers/exacta/client", []string{"codec/jsonx", "codec/ndjson", "engine/exacta"}, "the caller's side of projects"},
	{"handlers/exacta", []string{"codec/jsonx", "codec/ndjson", "engine/exacta", "engine/link", "engine/obs", "engine/procgroup", "engine/stream", "handlers/exacta/workspace", "handlers/exacta/external"}, "projects over lines"},
	{"handlers", []string{"codec", "engine"}, "no handler imports a handler: what two share moves to engine"},
	{"cmd/trunkline/internal/journaltool", []string{"codec/jsonx", "codec/transcode", "engine/envelope", "engine/idem", "engine/journal", "engine/kernel", "engine/orchestration", "engine/store", "engine/threads", "codec/mpack"},
		"shows what a server wrote: no socket"},
	{"cmd/trunkline/internal/storesocket", []string{"engine/reactor"}, "asks for a checkpoint: no store"},
	{"cmd/trunkline/internal/crashfs", nil, "tests only: a disk without power"},
	{"cmd/trunkline/loadgen/chart", nil, "draws and writes figures, those of bench too: a leaf"},
	{"cmd/trunkline/internal/benchview", []string{"cmd/trunkline/internal/cli", "cmd/trunkline/loadgen"},
		"shows what a run did: no server"},
	{"cmd/trunkline/internal/topview", []string{"cmd/trunkline/internal/benchview", "cmd/trunkline/internal/cli", "engine/obs"},
		"shows a server"},
	{"cmd/trunkline/loadgen", []string{"codec", "handlers/ipc/client"}, "loads any server: it needs none of ours"},
	{"cmd", []string{"codec", "engine", "handlers", "cmd"}, "wires everything"},
	{"fuzz/natstest", []string{"engine/journal", "fuzz/kit"}, "tests only: NATS servers"},
	{"fuzz", nil, "tests only: whole sessions against a model"},
	{"bench/internal/goal", []string{"cmd/trunkline/loadgen/chart"}, "compares figures: no load, no clock"},
	{"bench", []string{"codec", "engine", "handlers", "bench", "cmd/trunkline/loadgen"}, "measures all but the program"},
}

// keepers lists packages that only some rooms may import. Tests may use them as an independent
// judge, unless tests is set.
var keepers = []struct {
	pkg   string
	rooms []string
	tests bool
	why   string
}{
	{"github.com/panjf2000/gnet", []string{"engine/reactor"}, true, "handlers and tables must not see the event loop; a missing method belongs in engine/link"},
	{"github.com/bytedance/sonic", []string{"codec/jsonx"}, true, "one room knows which JSON library runs, so that the standard one can take its place"},
	{"github.com/cockroachdb/pebble", []string{"engine/journal/embedded", "engine/internal/pebbledir", "engine/store/rows"}, false, "the log, the rows and their directories know which store runs, so that another can take its place"},
	{"github.com/hanwen/go-fuse", []string{"cmd/trunkline/internal/crashfs"}, true, "one room has the disk that tests take the power of; no program has it"},
	{"github.com/nats-io/nats-server", []string{"engine/cluster/node", "fuzz/natstest"}, false, "one room runs the server of a node and knows its version"},
	{"github.com/nats-io", []string{"engine/cluster/node", "engine/journal/replicated", "fuzz/natstest"}, false, "the log and membership know what replicates it, so that another can take its place"},
	{"github.com/valyala/bytebufferpool", []string{"engine/internal/bufpool"}, false, "its pools have no size cap; bufpool adds it"},
	{"github.com/prometheus", []string{"engine/obs", "handlers/ops", "cmd/trunkline/internal/app"}, false, "hot paths count in atomics; obs reads them when scraped"},
	{"github.com/spf13", []string{"cmd"}, false, "the command line ends in cmd"},
	{"github.com/knadh/koanf", []string{"cmd/trunkline/internal/config"}, false, "settings are read in one place and handed down as a struct"},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"cmd/trunkline/loadgen", "cmd/trunkline/internal/benchview", "bench"}, true, "the server counts in histograms of its own; these are for measuring from outside"},
	{"github.com/lmittmann/tint", []string{"engine/obs"}, false, "log formats are chosen in one place"},
	{"github.com/tinylib/msgp", []string{"codec/mpack", "codec/transcode", "engine/threads", "handlers/ipc/message", "handlers/ipc/client", "bench", "fuzz"}, false, "the serving path has views of its own; msgp serves the client and cold replies"},
	{"github.com/bluekeyes/go-gitdiff", []string{"engine/exacta/diff"}, true, "one room checks diffs before it applies them"},
	{"github.com/aymanbagabas/go-udiff", []string{"engine/exacta/diff"}, true, "one room makes the diffs of the server, in one form"},
	{"github.com/tetratelabs/wazero", []string{"handlers/toolhost/workers"}, true, "one room runs modules, so that what they may touch is decided in one place"},
	{"github.com/coreos/go-systemd", []string{"cmd/trunkline/internal/app"}, true, "one place knows the supervisor of the process"},
	{"github.com/coder/websocket", []string{"handlers/exacta/web"}, false, "one room speaks WebSocket"},
	{"charm.land/bubbletea", []string{"cmd/trunkline/internal/topview"}, true, "one room has a screen with keys; what is painted once needs no library"},
	{"github.com/charmbracelet/x/vt", []string{"cmd/trunkline"}, true, "a terminal for the tests of the program"},
	{"unsafe", []string{"codec/jsonx", "engine/cluster/node", "engine/internal", "engine/kernel", "engine/procgroup", "handlers/toolhost/workerexec"}, false, "conversions without a copy, and pointers for the kernel, live in few named files with their rules"},
	{"net/http", []string{"handlers", "cmd", "bench", "fuzz"}, false, "HTTP is a protocol, and protocols are handlers"},
	{ours + "handlers", []string{"handlers", "cmd", "fuzz", "bench"}, false, "doors go one way: cmd, handlers, engine, codec"},
	{ours + "cmd", []string{"cmd", "bench"}, true, "nothing depends on the program; its load generator measures it as well"},
}

// outsideOfCodec lists what codec must not import: no clock, no I/O, no logger.
var outsideOfCodec = []string{"time", "net", "os", "io/fs", "log", "context", "runtime", "math/rand", "crypto/rand", "bufio", "fmt"}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range repository(t).files {
		if f.test {
			continue
		}
		d, ok := door(f.dir)
		if !ok {
			t.Errorf("%s: no row of doors fits room %s: add it, with what it may import and why", f.path, f.dir)
			continue
		}
		for _, imp := range imports(f) {
			to, isOurs := strings.CutPrefix(imp, ours)
			if isOurs && !under(to, f.dir) && !anyUnder(to, d.may) {
				t.Errorf("%s imports %s: %s may import only %v (%s)", f.path, imp, f.dir, d.may, d.why)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, f := range repository(t).files {
		for _, imp := range imports(f) {
			for _, k := range keepers {
				if !under(imp, k.pkg) || anyUnder(f.dir, k.rooms) {
					continue
				}
				if f.test && !k.tests {
					continue
				}
				t.Errorf("%s imports %s, which belongs to %v: %s", f.path, imp, k.rooms, k.why)
			}
		}
	}
}

func TestCodecIsPure(t *testing.T) {
	for _, f := range repository(t).files {
		if f.test || !under(f.dir, "codec") {
			continue
		}
		for _, imp := range imports(f) {
			if anyUnder(imp, outsideOfCodec) {
				t.Errorf("%s imports %s: codec has no clock, goroutine, I/O, logger or formatting", f.path, imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a goroutine in codec", repository(t).at(f, g))
			}
			return true
		})
	}
}

func TestEveryRoomHasANoun(t *testing.T) {
	vague := map[string]bool{"util": true, "utils": true, "common": true, "types": true, "models": true, "helpers": true, "misc": true}
	seen := make(map[string]bool)
	for _, f := range repository(t).files {
		base := f.dir[strings.LastIndex(f.dir, "/")+1:]
		if vague[base] && !seen[f.dir] {
			t.Errorf("%s: %q says nothing about what is in it; name the noun", f.dir, base)
		}
		seen[f.dir] = true
	}
}

// door returns the row of doors for dir.
func door(dir string) (d room, ok bool) {
	for _, d := range doors {
		if under(dir, d.room) {
			return d, true
		}
	}
	return room{}, false
}

func imports(f goFile) []string {
	var out []string
	for _, s := range f.ast.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
