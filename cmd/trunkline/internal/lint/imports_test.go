package lint

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// doors lists, for every room, which of our rooms its code (tests aside) may import. The first row
// that fits a package counts; a package that fits no row is a room without a plan.
var doors = []struct {
	room string
	may  []string
	why  string
}{
	{"codec/wire", nil, "the leaf of the codecs"},
	{"codec/transcode", []string{"codec/jsonx", "codec/mpack", "codec/wire"}, "turns the texts of two codecs into each other: it needs both and nothing else"},
	{"codec", []string{"codec/wire"}, "codecs are bytes in, bytes out: they share limits and codes, and know neither each other nor the engine"},
	{"engine/link", []string{"codec/wire"}, "a leaf, so that everything may import it"},
	{"engine/internal", []string{"engine/internal", "engine/link", "codec/wire"}, "tools of the engine, below its rooms"},
	{"engine/table", []string{"engine/internal"}, "generic: knows no protocol and no other table"},
	{"engine/idem", []string{"codec/mpack", "engine/table", "engine/link", "engine/internal"}, "a table with a rule, and its changes as records: no protocol, no tool"},
	{"engine/journal/embedded", []string{"engine/journal", "engine/internal"}, "one store among several: it keeps blocks and never looks into them"},
	{"engine/journal/memstore", []string{"engine/journal"}, "a store for tests: it must not share code with what it stands for"},
	{"engine/journal", []string{"codec/wire", "engine/internal"}, "records bytes; knows nothing of what they mean"},
	{"engine/obs", nil, "everything may be observed, so observing may depend on nothing"},
	{"engine/stream", []string{"engine/link", "engine/obs", "engine/internal"}, "moves bytes for sessions it knows nothing about"},
	{"engine/reactor", []string{"engine/stream", "engine/link", "engine/obs", "engine/internal"}, "moves bytes for sessions it knows nothing about"},
	{"engine/kernel", []string{"engine/table", "engine/journal", "engine/link", "engine/internal"}, "pure decisions: no protocol, no socket"},
	{"engine/bus", []string{"engine/table", "engine/link", "engine/internal"}, "fan-out of opaque bodies: no protocol, no socket"},
	{"engine/envelope", []string{"codec/jsonx", "codec/mpack", "codec/wire"}, "one model over the texts of two codecs: it stores nothing, so it needs no table and no clock of the loop"},
	{"engine/orchestration", []string{"codec/jsonx", "codec/mpack", "codec/transcode", "codec/wire", "engine/envelope", "engine/table", "engine/link"},
		"plans and their envelopes, kept and answered as encoded bytes: no socket, and JSON only where a request brings an envelope as text"},
	{"handlers/ops", []string{"engine/obs"}, "shows what obs holds"},
	{"handlers/exchange", []string{"codec/jsonx", "engine/envelope"}, "one envelope in, one out, nothing kept: a command must not drag the kernel, the bus or the event loops along"},
	{"handlers/ipc/message", []string{"codec/mpack"}, "a leaf: the maps of the protocol, for the server and its callers alike"},
	{"handlers/ipc/client", []string{"codec", "handlers/ipc/message"}, "the caller's side: it must not depend on the server's rooms"},
	{"handlers/ipc/ipctest", []string{"codec", "engine", "handlers/ipc"}, "drives sessions for tests, the fuzzer and benchmarks"},
	{"handlers/ipc/crashtest", []string{"codec", "engine", "handlers/ipc"}, "tests only: breaks a whole endpoint, from the frames of its clients down to the store"},
	{"handlers/toolhost/dsstate", []string{"codec/jsonx"}, "a leaf: eight slots and their JSON, for the server, its tools and their callers alike"},
	{"handlers/toolhost/procgroup", nil, "a leaf: ends a program and what it started, for the server and its callers alike"},
	{"handlers/toolhost/selector", []string{"handlers/toolhost/tool", "handlers/toolhost/dsstate", "handlers/toolhost/procgroup", "handlers/toolhost/shim", "codec/jsonx"}, "decides from a goal, a state and what tools say of themselves: it runs no tool and knows no session"},
	{"handlers/toolhost/tool", []string{"handlers/toolhost/dsstate", "codec/jsonx"}, "what a tool is: it knows no tool, no worker and no transport"},
	{"handlers/toolhost/manifest", []string{"handlers/toolhost/tool", "codec/jsonx"}, "reads what a toolpack declares: it runs nothing"},
	{"handlers/toolhost/shim", nil, "a leaf: the first code of a worker's process, which must not wait for other packages"},
	{"handlers/toolhost/workers", []string{"handlers/toolhost/shim", "handlers/toolhost/tool", "handlers/toolhost/dsstate", "codec/jsonx"}, "runs one external tool each: it knows no session, no lease and no manifest"},
	{"handlers/toolhost/tools", []string{"handlers/toolhost/tool", "handlers/toolhost/dsstate", "codec/jsonx"}, "tools: each knows files, texts and its caller's state, none the server that runs it"},
	{"handlers", []string{"codec", "engine"}, "handlers never import handlers: what two protocols share moves down to engine"},
	{"cmd/trunkline/internal/journaltool", []string{"codec/jsonx", "codec/transcode", "engine/envelope", "engine/idem", "engine/journal", "engine/kernel", "engine/orchestration", "handlers/ipc"},
		"reads what a server wrote and shows it: no setting, no socket, no running server"},
	{"cmd/trunkline/internal/benchview/screen", nil, "a terminal for tests: it knows nothing that is painted on it"},
	{"cmd/trunkline/internal/benchview", []string{"cmd/trunkline/internal/cli", "cmd/trunkline/internal/loadgen"},
		"shows what a run did: it knows no server, no connection and no flag"},
	{"cmd/trunkline/internal/loadgen", []string{"codec", "handlers/ipc/client"}, "the callers' side of three protocols: it must measure any server, so it knows none of ours"},
	{"cmd", []string{"codec", "engine", "handlers", "cmd"}, "wires everything"},
	{"fuzz", []string{"codec", "engine", "handlers"}, "feeds everything but the program"},
	{"bench/internal/goal", nil, "compares figures with goals: it knows no server, no load and no clock"},
	{"bench", []string{"codec", "engine", "handlers", "bench"}, "measures everything but the program"},
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
	{"github.com/cockroachdb/pebble", []string{"engine/journal/embedded"}, false, "one room knows which store runs, so that another can take its place"},
	{"github.com/valyala/bytebufferpool", []string{"engine/internal/bufpool"}, false, "its pools have no size cap; bufpool adds it"},
	{"github.com/prometheus", []string{"engine/obs", "handlers/ops", "cmd/trunkline/internal/app"}, false, "hot paths count in atomics; obs reads them when scraped"},
	{"github.com/spf13", []string{"cmd"}, false, "the command line ends in cmd"},
	{"github.com/knadh/koanf", []string{"cmd/trunkline/internal/config"}, false, "settings are read in one place and handed down as a struct"},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"cmd/trunkline/internal/loadgen", "cmd/trunkline/internal/benchview", "bench"}, true, "the server counts in histograms of its own; these are for measuring from outside"},
	{"github.com/lmittmann/tint", []string{"engine/obs"}, false, "log formats are chosen in one place"},
	{"github.com/tinylib/msgp", []string{"codec/mpack", "codec/transcode", "handlers/ipc/message", "handlers/ipc/client", "bench", "fuzz"}, false, "the serving path has views of its own; msgp serves the client and cold replies"},
	{"github.com/tetratelabs/wazero", []string{"handlers/toolhost/workers"}, true, "one room runs modules, so that what they may touch is decided in one place"},
	{"unsafe", []string{"codec/jsonx", "engine/internal", "engine/kernel", "handlers/toolhost/procgroup", "handlers/toolhost/shim"}, false, "conversions without a copy, and pointers for the kernel, live in few named files with their rules"},
	{"net/http", []string{"handlers", "cmd", "bench", "fuzz"}, false, "HTTP is a protocol, and protocols are handlers"},
	{ours + "handlers", []string{"handlers", "cmd", "fuzz", "bench"}, false, "doors go one way: cmd, handlers, engine, codec"},
	{ours + "cmd", []string{"cmd"}, true, "nothing depends on the program"},
}

// outsideOfCodec lists what codec must not import: no clock, no I/O, no logger.
var outsideOfCodec = []string{"time", "net", "os", "io/fs", "log", "context", "runtime", "math/rand", "crypto/rand", "bufio", "fmt"}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range repository(t).files {
		if f.test {
			continue
		}
		may, why, ok := door(f.dir)
		if !ok {
			t.Errorf("%s: no row of doors fits room %s: add it, with what it may import and why", f.path, f.dir)
			continue
		}
		for _, imp := range imports(f) {
			to, isOurs := strings.CutPrefix(imp, ours)
			if isOurs && !under(to, f.dir) && !anyUnder(to, may) {
				t.Errorf("%s imports %s: %s may import only %v (%s)", f.path, imp, f.dir, may, why)
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

// door returns what the room of dir may import.
func door(dir string) (may []string, why string, ok bool) {
	for _, d := range doors {
		if under(dir, d.room) {
			return d.may, d.why, true
		}
	}
	return nil, "", false
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
