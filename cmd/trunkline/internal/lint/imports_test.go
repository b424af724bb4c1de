package lint

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// direction is one rule of what the packages of some rooms import.
type direction struct {
	rooms []string // the rule holds for the packages under them
	may   []string // what they import besides their own room
	why   string
}

// directions are the rules of imports of our code, tests aside. The first one that fits a package
// counts. What stands under the same room (own) may always be imported: Go has no circles.
var directions = []direction{
	{[]string{"codec/wire", "engine/connection", "engine/table", "engine/obs", "engine/procgroup"}, nil,
		"leaves: they import nothing of ours"},
	{[]string{"codec"}, []string{"codec"}, "bytes in, bytes out: no clock, goroutine, I/O, logger"},
	{[]string{"engine/internal"}, nil, "buffers, sockets, directories: below all of the engine"},
	{[]string{"engine/cluster/control"}, []string{"engine/journal", "engine/connection", "engine/obs", "engine/store", "engine/stream"},
		"a node: orders, leases, copies, the journal of a partition"},
	{[]string{"engine/stream", "engine/reactor", "engine/cluster"},
		[]string{"engine/connection", "engine/internal", "engine/obs", "engine/stream"},
		"connections and nodes: they know no protocol"},
	{[]string{"engine/journal", "engine/store"}, []string{"engine/internal", "engine/journal"},
		"the log and what stands in it: bytes without a meaning"},
	{[]string{"engine/runtime"}, []string{"codec", "engine"}, "the state of a process: it puts the machines together"},
	{[]string{"engine"},
		[]string{"codec", "engine/internal", "engine/connection", "engine/table", "engine/store", "engine/journal", "engine/envelope"},
		"state machines: they decide; none knows a connection or another state machine"},
	{[]string{"handlers"}, []string{"codec", "engine", "handlers/internal"},
		"protocols: none knows another; what two share moves down"},
	{[]string{"cmd/trunkline/loadgen"}, []string{"codec", "handlers/ipc/ipcclient"}, "loads any server, ours or not"},
	{[]string{"cmd"}, []string{"codec", "engine", "handlers", "cmd"}, "the program wires everything"},
	{[]string{"bench"}, []string{"codec", "engine", "handlers", "bench", "cmd/trunkline/loadgen"},
		"measures all but the program"},
	{[]string{"fuzz"}, []string{"codec", "engine", "handlers/ipc", "fuzz"}, "support of tests; tests may import anything"},
}

// own returns the room of a package: the directory below that of its storey.
func own(dir string) string {
	if parts := strings.SplitN(dir, "/", 3); len(parts) > 2 && parts[0] != "cmd" {
		return parts[0] + "/" + parts[1]
	}
	return dir
}

// keepers lists packages that only some rooms may import. Tests may use them as an independent
// judge, unless tests is set.
var keepers = []struct {
	pkg   string
	rooms []string
	tests bool
	why   string
}{
	{"github.com/panjf2000/gnet", []string{"engine/reactor"}, true, "handlers and tables must not see the event loop; a missing method belongs in engine/connection"},
	{"github.com/bytedance/sonic", []string{"codec/jsonx"}, true, "one room knows which JSON library runs, so that the standard one can take its place"},
	{"github.com/cockroachdb/pebble", []string{"engine/journal/embedded", "engine/internal/pebbledir", "engine/store/rows", "fuzz/kit/memdisk"}, false, "the log, the rows and their directories know which store runs, so that another can take its place"},
	{"github.com/hanwen/go-fuse", []string{"cmd/trunkline"}, true, "one room has the disk that tests take the power of; no program has it"},
	{"github.com/nats-io/nats-server", []string{"engine/cluster/node", "fuzz/kit/natstest"}, false, "one room runs the server of a node and knows its version"},
	{"github.com/nats-io", []string{"engine/cluster/node", "engine/journal/replicated", "fuzz/kit/natstest"}, false, "the log and membership know what replicates it, so that another can take its place"},
	{"github.com/valyala/bytebufferpool", []string{"engine/internal/bufpool"}, false, "its pools have no size cap; bufpool adds it"},
	{"github.com/prometheus", []string{"engine/obs", "handlers/ops", "cmd/trunkline/internal/app"}, false, "hot paths count in atomics; obs reads them when scraped"},
	{"github.com/spf13", []string{"cmd"}, false, "the command line ends in cmd"},
	{"github.com/knadh/koanf", []string{"cmd/trunkline/internal/config"}, false, "settings are read in one place and handed down as a struct"},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"cmd/trunkline/loadgen", "cmd/trunkline/internal/benchview", "bench"}, true, "the server counts in histograms of its own; these are for measuring from outside"},
	{"github.com/lmittmann/tint", []string{"engine/obs"}, false, "log formats are chosen in one place"},
	{"github.com/tinylib/msgp", []string{"codec/mpack", "codec/transcode", "engine/threadstore", "handlers/ipc/message", "handlers/ipc/ipcclient", "bench", "fuzz"}, false, "the serving path has views of its own; msgp serves the client and cold replies"},
	{"github.com/bluekeyes/go-gitdiff", []string{"engine/projects/diff"}, true, "one room checks diffs before it applies them"},
	{"github.com/robfig/cron", []string{"engine/threadstore/cadence"}, false, "one room reads expressions, with zones that are linked"},
	{"github.com/aymanbagabas/go-udiff", []string{"engine/projects/diff"}, true, "one room makes the diffs of the server, in one form"},
	{"github.com/tetratelabs/wazero", []string{"handlers/toolhost/workers"}, true, "one room runs modules, so that what they may touch is decided in one place"},
	{"github.com/coreos/go-systemd", []string{"cmd/trunkline/internal/systemd"}, true, "one place knows the supervisor of the process"},
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
		d, ok := directionOf(f.dir)
		if !ok {
			t.Errorf("%s: no direction fits %s: add it, with what it may import and why", f.path, f.dir)
			continue
		}
		for _, imp := range imports(f) {
			to, isOurs := strings.CutPrefix(imp, ours)
			if isOurs && !under(to, own(f.dir)) && !anyUnder(to, d.may) {
				t.Errorf("%s imports %s: %v may import only %v (%s)", f.path, imp, d.rooms, d.may, d.why)
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

// directionOf returns the direction for dir.
func directionOf(dir string) (d direction, ok bool) {
	for _, d := range directions {
		if anyUnder(dir, d.rooms) {
			return d, true
		}
	}
	return direction{}, false
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
