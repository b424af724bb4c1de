package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// field is everything that is measured: the server processes and the requests for them.
type field struct {
	*load.Rig
	o        options
	bin      string         // folder of the peers' binaries
	replies  map[string]int // bytes of trunkline's reply, by method
	trunk    *load.Server
	bare     map[int]*load.Server    // by reply size
	entrants []entrant               // in the order of the table
	tapes    map[string][]*load.Tape // of trunkline at full depth, by method: a tape remembers where its server's rows stand
	loadCPUs []int
	missing  []string // cells that the peer at -peer could not be measured in, and why
}

// startField builds what is missing and starts every server. After an error nothing is left
// running.
func startField(o options) (*field, error) {
	rig, err := load.NewRig("", "wire-bench-")
	if err != nil {
		return nil, err
	}
	f := &field{Rig: rig, o: o, bin: o.peersBin, bare: map[int]*load.Server{}, tapes: map[string][]*load.Tape{}}
	if err := f.start(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *field) start() (err error) {
	if f.o.pin {
		if f.loadCPUs, err = f.Divide(); err != nil {
			return err
		}
	}
	if f.bin == "" {
		if err := f.buildPeers(); err != nil {
			return err
		}
	}
	if err := f.startTrunkline(); err != nil {
		return err
	}
	return f.enter()
}

func (f *field) buildPeers() error {
	f.bin = f.Dir
	cmd := exec.Command("go", "build", "-o", f.bin+"/", "./...")
	cmd.Dir = f.o.peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the peers in %s: %w\n%s", f.o.peers, err, out)
	}
	return nil
}

func (f *field) startTrunkline() (err error) {
	if err := f.FindServer(f.o.server); err != nil {
		return err
	}
	f.trunk, err = f.Trunkline("kernel.loops="+strconv.Itoa(f.o.loops), fmt.Sprintf("kernel.max_connections=%d", 2*f.o.many),
		fmt.Sprintf("kernel.max_processes=%d", max(1_000_000, 2*f.o.rows)), "admin.pprof="+strconv.FormatBool(f.o.profile != ""))
	if err != nil {
		return err
	}
	if err := load.CreateRows(f.trunk.Addr, 0, f.o.rows); err != nil {
		return err
	}
	f.replies, err = probeReplies(f.trunk.Addr)
	return err
}

// peer starts a program of bench/peers.
func (f *field) peer(name string, args ...string) (*load.Server, error) {
	return f.Peer(name, filepath.Join(f.bin, name), args...)
}

// kernelStep gives every server tapes of its own: a tape remembers where its server's rows stand.
func (f *field) kernelStep(s *load.Server, name, method string, conns, depth int) goal.Step {
	tapes := kernelTapes(method, f.o.rows, conns)
	if s == f.trunk && depth == f.o.depth && conns == f.o.conns {
		f.tapes[method] = tapes
	}
	return f.loadStep(s, name, method, load.Kernel, tapes, depth)
}

func (f *field) loadStep(s *load.Server, name, method string, p load.Protocol, tapes []*load.Tape, depth int) goal.Step {
	cfg := f.config(s.Addr, p, tapes, depth)
	return goal.One(cell(name, method, len(tapes), depth), func() (goal.Sample, error) { return load.Measure(cfg, s, f.o.warmup, f.o.window) })
}

// config is a load at a depth. With one request in flight the generator sleeps, as real clients do.
func (f *field) config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: f.o.workers, CPUs: f.loadCPUs, Spin: f.o.spin && depth > 1, Full: true}
}
