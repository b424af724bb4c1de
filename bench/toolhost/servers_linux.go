package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"trunkline/bench/internal/load"
)

// primeTimeout bounds the requests before a cell.
const primeTimeout = 10 * time.Second

// bench is what all cells share. Its folder holds the binaries and the manifest.
type bench struct {
	*load.Rig
	o        options
	worker   string // binary of the external tool
	python   string // the interpreter, empty where there is none
	peer     string // this program, to be the peer
	manifest string
	trunk    *load.Server // nil where no part needs it
	echo     *load.Server
	scanTest string // the benchmark of the field scan, built
}

// newBench builds what is missing and starts the tool server that lives for the whole run.
func newBench(o options) (*bench, error) {
	rig, err := load.ServerRig("toolhost-bench-", o.server)
	if err != nil {
		return nil, err
	}
	b := &bench{Rig: rig, o: o}
	if err := b.prepare(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *bench) prepare() (err error) {
	if b.peer, err = os.Executable(); err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if b.worker, err = load.FindBinary(b.o.worker, "./bench/toolhost/worker", b.Dir); err != nil {
		return err
	}
	b.findPython()
	if err := b.writeManifest(); err != nil {
		return err
	}
	if b.o.wants(partScan) {
		if err := b.buildScan(); err != nil {
			return err
		}
	}
	return b.startServer()
}

// listening is the line by which the tool server reports where it listens.
func listening() *regexp.Regexp { return regexp.MustCompile(`toolhost listening on tcp://(\S+)`) }

// startServer starts the tool server where a part needs it.
func (b *bench) startServer() (err error) {
	if b.o.wants(partTCP) || b.o.wants(partWorker) {
		b.trunk, err = b.Start(load.Command{Name: trunkline, Path: b.Binary, Listening: listening(),
			Args: append(b.serveArgs(), "--listen", "tcp://127.0.0.1:0"), Env: b.env()})
	}
	return err
}

// startEcho starts the peer over TCP, in a process of this program, where a part needs it.
func (b *bench) startEcho() (err error) {
	if b.o.wants(partTCP) {
		b.echo, err = b.Peer(echo, b.peer, "-peer", partTCP)
	}
	return err
}

// serveArgs serves the built-in tools and those of the manifest. What is kept outlives the run, so
// that every hit is one.
func (b *bench) serveArgs() []string {
	return []string{"--serve", "builtin", "--plugin", b.manifest, "--idemp-ttl-ms", "3600000"}
}

func (b *bench) env() []string { return []string{"MACHINA_ROOT=" + b.Dir, "MACHINA_API_TOKEN="} }

// toolJSON is an entry of the manifest (toolhost §4.10).
const toolJSON = `{"aid":%q,"name":%q,"deterministic":false,"tags":["tag.bench"],"estimate_model":{"mode":"ConservativeBound"},` +
	`"inputs_schema":{},"outputs_schema":{},"side_effects":["none"],"exec":%s}`

// pythonTool is the external tool in the language of most tools.
//
//go:embed worker/worker.py
var pythonTool []byte

// findPython looks for the interpreter itself: what the PATH has may be a script that looks for it
// at every start.
func (b *bench) findPython() {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no python3: its tools are not measured:", err)
		return
	}
	b.python = strings.TrimSpace(string(out))
}

func (b *bench) writeManifest() error {
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
		script := filepath.Join(b.Dir, "worker.py")
		if err := os.WriteFile(script, pythonTool, 0o600); err != nil {
			return fmt.Errorf("cannot write the tool: %w", err)
		}
		tools = append(tools, fmt.Sprintf(toolJSON, keptPyAID, "kept python3", process("serve", b.python, script)),
			fmt.Sprintf(toolJSON, oncePyAID, "python3 once", process("oneshot", b.python, script)))
	}
	text := `{"toolpack_id":"toolpack.bench","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[` + strings.Join(tools, ",") + "]}"
	b.manifest = filepath.Join(b.Dir, "bench.json")
	if err := os.WriteFile(b.manifest, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	return nil
}

// primeAt primes a kind over a connection of its own.
func primeAt(addr, kind string) (size int, err error) {
	c, err := net.DialTimeout("tcp", addr, primeTimeout)
	if err != nil {
		return 0, fmt.Errorf("cannot prime %s: %w", kind, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(primeTimeout)); err != nil {
		return 0, err
	}
	return prime(c, kind)
}
