package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"trunkline/bench/internal/load"
)

// primeTimeout bounds the requests before a cell.
const primeTimeout = 10 * time.Second

// bench is what all cells share.
type bench struct {
	o        options
	dir      string // binaries and the manifest; removed at the end
	self     string // this program, to be the peer
	manifest string
	trunk    *load.Server // nil where no part needs it
	echo     *load.Server
	scanTest string // the benchmark of the field scan, built
}

// newBench builds what is missing and starts the tool server that lives for the whole run.
func newBench(o options) (b *bench, err error) {
	b = &bench{o: o}
	if b.dir, err = os.MkdirTemp("", "toolhost-bench-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	if b.o.server, err = load.FindBinary(o.server, "./cmd/trunkline", b.dir); err != nil {
		return nil, err
	}
	if b.o.worker, err = load.FindBinary(o.worker, "./bench/toolhost/worker", b.dir); err != nil {
		return nil, err
	}
	if err = b.writeManifest(); err != nil {
		return nil, err
	}
	if o.wants(partScan) {
		if err = b.buildScan(); err != nil {
			return nil, err
		}
	}
	err = b.startServer()
	return b, err
}

func (b *bench) close() {
	for _, s := range []*load.Server{b.trunk, b.echo} {
		if s != nil {
			s.Stop()
		}
	}
	_ = os.RemoveAll(b.dir)
}

// listening is the line by which the tool server says where it listens.
func listening() *regexp.Regexp { return regexp.MustCompile(`toolhost listening on tcp://(\S+)`) }

// startServer starts the tool server where a part needs it.
func (b *bench) startServer() (err error) {
	if b.o.wants(partTCP) || b.o.wants(partWorker) {
		b.trunk, err = load.StartServer(load.Command{Name: trunkline, Path: b.o.server, Listening: listening(),
			Args: append(b.serveArgs(), "--listen", "tcp://127.0.0.1:0"), Env: b.env()})
	}
	return err
}

// startEcho starts the peer over TCP, in a process of this program, where a part needs it.
func (b *bench) startEcho() (err error) {
	if b.o.wants(partTCP) {
		b.echo, err = load.StartServer(load.Command{Name: echo, Path: b.self, Args: []string{"-peer", partTCP}, Listening: load.PeerListening})
	}
	return err
}

// serveArgs serves the built-in tools and those of the manifest. What is kept outlives the run, so that every hit is one.
func (b *bench) serveArgs() []string {
	return []string{"--serve", "builtin", "--plugin", b.manifest, "--idemp-ttl-ms", "3600000"}
}

func (b *bench) env() []string { return []string{"MACHINA_ROOT=" + b.dir, "MACHINA_API_TOKEN="} }

// toolJSON is an entry of the manifest (toolhost §4.10).
const toolJSON = `{"aid":%q,"name":%q,"deterministic":false,"tags":["tag.bench"],"estimate_model":{"mode":"ConservativeBound"},` +
	`"inputs_schema":{},"outputs_schema":{},"side_effects":["none"],"exec":%s}`

func (b *bench) writeManifest() error {
	command, err := json.Marshal([]string{b.o.worker})
	if err != nil {
		return err
	}
	process := func(mode string) string {
		return fmt.Sprintf(`{"kind":"process","command":%s,"mode":%q}`, command, mode)
	}
	tools := []string{
		fmt.Sprintf(toolJSON, echoAID, "echo", `{"kind":"builtin","name":"`+echoAID+`"}`),
		fmt.Sprintf(toolJSON, keptAID, "kept", process("serve")),
		fmt.Sprintf(toolJSON, perCallAID, "once", process("oneshot")),
	}
	text := `{"toolpack_id":"toolpack.bench","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[` + strings.Join(tools, ",") + "]}"
	b.manifest = filepath.Join(b.dir, "bench.json")
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
