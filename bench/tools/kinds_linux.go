package tools

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"trunkline/bench/internal/load"
)

// The tools that requests name.
const (
	noopAID    = "AID.NOOP.v1"
	echoAID    = "AID.TEST.ECHO.v1"
	keptAID    = "AID.BENCH.KEPT.v1"
	perCallAID = "AID.BENCH.ONESHOT.v1"
	keptPyAID  = "AID.BENCH.KEPT.PYTHON.v1"
	oncePyAID  = "AID.BENCH.ONESHOT.PYTHON.v1"
)

// kind is one kind of requests. They have one length, and so have their replies once primed.
type kind struct {
	name    string
	line    string // # is the number of the request
	variety int    // how many different ones a connection sends, at most ten
	good    string // what a good reply holds, beside its beginning
	// What is asked of the requests/s beside an echo over many connections, and over pipes; 0 is
	// reported.
	must, moonshot, pipes float64
}

// hot are the kinds that are pipelined, in the order of the table. Those of slot differ from one to
// the next, so that each changes the state.
func hot() []kind {
	return []kind{
		{"noop", `{"aid":"` + noopAID + `"}`, 1, `"slots":{},`, 0.6, 0.8, 0.5},
		{"hit", `{"aid":"` + noopAID + `","idempotency_key":"bench-key-#"}`, 8, `"idempotent_hit":true`, 0.35, 0.5, 0},
		{"slot", `{"aid":"` + echoAID + `","input_json":"{\"x\":#}"}`, 8, `"slots":{"6":{`, 0.25, 0.4, 0},
	}
}

// external is the kind that calls an external tool.
func external(name, aid string) kind {
	return kind{name: name, line: `{"aid":"` + aid + `"}`, variety: 1, good: `"slots":{},`}
}

// began is how every good reply begins.
const began = `{"ok":true,"status":"OK",`

// requests returns the lines of a kind.
func (k *kind) requests() (lines [][]byte) {
	for i := range k.variety {
		lines = append(lines, []byte(strings.ReplaceAll(k.line, "#", strconv.Itoa(i))+"\n"))
	}
	return lines
}

// tapes encodes the requests for a number of connections.
func (k *kind) tapes(conns int) (list []*load.Tape) {
	for range conns {
		list = append(list, load.TapeOf(k.requests()...))
	}
	return list
}

// prime sends every request twice, checks the second replies, and returns their length.
func (k *kind) prime(c io.ReadWriter) (size int, err error) {
	in := bufio.NewReader(c)
	for turn := range 2 {
		for _, line := range k.requests() {
			if _, err := c.Write(line); err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", k.name, err)
			}
			reply, err := in.ReadString('\n')
			if err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", k.name, err)
			}
			if turn == 0 {
				continue
			}
			if err := k.check(reply); err != nil {
				return 0, err
			}
			if size != 0 && size != len(reply) {
				return 0, fmt.Errorf("cannot measure %s: replies have %d and %d bytes", k.name, size, len(reply))
			}
			size = len(reply)
		}
	}
	return size, nil
}

// check evaluates the reply of a primed request.
func (k *kind) check(reply string) error {
	for _, part := range []string{began, k.good} {
		if !strings.Contains(reply, part) {
			return fmt.Errorf("cannot measure %s: %s is not in the reply %q", k.name, part, reply)
		}
	}
	return nil
}

// toolJSON is an entry of the manifest (toolhost §4.10).
const toolJSON = `{"aid":%q,"name":%q,"deterministic":false,"tags":["tag.bench"],"estimate_model":{"mode":"ConservativeBound"},` +
	`"inputs_schema":{},"outputs_schema":{},"side_effects":["none"],"exec":%s}`

// pythonTool is the external tool in the language of most tools.
//
//go:embed worker/worker.py
var pythonTool []byte

func (b *bench) writeManifest() error {
	// The interpreter itself: what the PATH has may be a script that looks for it at every start.
	if out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		b.python = strings.TrimSpace(string(out))
	}
	process := func(mode string, command ...string) string {
		list, _ := json.Marshal(command) // strings always can be
		return fmt.Sprintf(`{"kind":"process","command":%s,"mode":%q}`, list, mode)
	}
	tools := []string{
		fmt.Sprintf(toolJSON, echoAID, "echo", `{"kind":"builtin","name":"`+echoAID+`"}`),
		fmt.Sprintf(toolJSON, keptAID, "kept", process("serve", b.worker)),
		fmt.Sprintf(toolJSON, perCallAID, "once", process("oneshot", b.worker)),
	}
	if b.python != "" {
		script := filepath.Join(b.Rig.Dir, "worker.py")
		if err := os.WriteFile(script, pythonTool, 0o600); err != nil {
			return fmt.Errorf("cannot write the tool: %w", err)
		}
		tools = append(tools, fmt.Sprintf(toolJSON, keptPyAID, "kept python3", process("serve", b.python, script)),
			fmt.Sprintf(toolJSON, oncePyAID, "python3 once", process("oneshot", b.python, script)))
	}
	text := `{"toolpack_id":"toolpack.bench","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[` + strings.Join(tools, ",") + "]}"
	b.manifest = filepath.Join(b.Rig.Dir, "bench.json")
	if err := os.WriteFile(b.manifest, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	return nil
}
