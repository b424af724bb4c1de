package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// manyConns is the connection count of the cell that stands for many idle-ish clients (goal G4).
const manyConns = 1000

// Server names as they stand in the table.
const (
	trunkline = "trunkline"
	baregnet  = "baregnet"
	netconn   = "netconn"
	grpcgo    = "grpc-go"
	also      = "also"
)

// field is everything that is measured: the server processes and the requests for them.
type field struct {
	*load.Rig
	o        options
	bin      string // folder of the peers' binaries
	replies  map[string]int
	trunk    *load.Server
	bare     map[int]*load.Server // by reply size
	net      *load.Server
	get      *load.Server
	grpc     *load.Server
	tapes    map[string][]*load.Tape // of trunkline at full depth, by method: a tape remembers where its server's rows stand
	loadCPUs []int
}

// startField builds what is missing and starts every server. After an error nothing is left running.
func startField(o options) (*field, error) {
	rig, err := load.NewRig("", "wire-bench-")
	if err != nil {
		return nil, err
	}
	f := &field{Rig: rig, o: o, bin: o.peersBin, bare: map[int]*load.Server{}, tapes: map[string][]*load.Tape{}, replies: defaultReplies}
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
	if !f.o.peersOnly {
		if err := f.startTrunkline(); err != nil {
			return err
		}
	}
	return f.startPeers()
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
	f.trunk, err = f.Trunkline("kernel.loops="+strconv.Itoa(f.o.loops), fmt.Sprintf("kernel.max_connections=%d", 2*manyConns),
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

// startPeers starts one baregnet per reply size, so that each method is compared with a constant reply as long as its own.
func (f *field) startPeers() error {
	var err error
	for _, size := range f.replies {
		if f.bare[size] != nil {
			continue
		}
		if f.bare[size], err = f.peer(baregnet, "-reply", strconv.Itoa(size), "-loops", strconv.Itoa(f.o.loops)); err != nil {
			return err
		}
	}
	size := strconv.Itoa(f.replies["GetProcess"])
	if f.net, err = f.peer(netconn, "-reply", size); err != nil {
		return err
	}
	if f.grpc, err = f.peer("grpcunary", "-reply", size); err != nil {
		return err
	}
	if f.get, err = f.startGet(); err != nil {
		return err
	}
	if err := storeRows(f.get.Addr, f.o.rows); err != nil {
		return err
	}
	if f.o.also != "" {
		return load.CreateRows(f.o.also, 0, f.o.rows)
	}
	return nil
}

// startGet starts the peer for GET: redis-server, or redcon where it is not installed.
func (f *field) startGet() (*load.Server, error) {
	path, err := exec.LookPath("redis-server")
	if f.o.redis == "redcon" || err != nil && f.o.redis == "auto" {
		return f.peer("redconget")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start redis: %w", err)
	}
	return f.Redis("redis", path, "--save", "", "--appendonly", "no")
}

// peer starts a program of bench/peers.
func (f *field) peer(name string, args ...string) (*load.Server, error) {
	return f.Peer(name, filepath.Join(f.bin, name), args...)
}

// steps lists the cells of one round.
func (f *field) steps() []goal.Step {
	o := f.o
	steps := []goal.Step{
		goal.One(deep(grpcgo, "unary", o), f.grpcCell),
		f.loadStep(f.get, f.get.Name, "GET", load.RESP, redisTapes(o.rows, o.conns), o.depth),
		f.kernelStep(f.net, netconn, "GetProcess", o.conns, o.depth),
	}
	for _, method := range methods {
		steps = append(steps, f.pair(method, o.conns, o.depth)...)
	}
	if o.also != "" {
		steps = append(steps, f.alsoStep(kernelTapes("GetProcess", o.rows, o.conns)))
	}
	for _, at := range [][2]int{{o.conns, 1}, {manyConns, 1}, {1, 1}, {1, o.depth}, {manyConns, o.depth}} {
		steps = append(steps, f.pair("GetProcess", at[0], at[1])...)
	}
	return steps
}

// pair returns the cells of baregnet and trunkline that a goal compares.
func (f *field) pair(method string, conns, depth int) []goal.Step {
	steps := []goal.Step{f.kernelStep(f.bare[f.replies[method]], baregnet, method, conns, depth)}
	if f.trunk != nil {
		steps = append(steps, f.kernelStep(f.trunk, trunkline, method, conns, depth))
	}
	return steps
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

// alsoStep measures the server that somebody else started: no process to read CPU time from.
func (f *field) alsoStep(tapes []*load.Tape) goal.Step {
	cfg := f.config(f.o.also, load.Kernel, tapes, f.o.depth)
	return goal.One(cell(also, "GetProcess", len(tapes), f.o.depth), func() (goal.Sample, error) { return load.Measure(cfg, nil, f.o.warmup, f.o.window) })
}

// config is a load at a depth. With one request in flight the generator sleeps, as real clients do.
func (f *field) config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: f.o.workers, CPUs: f.loadCPUs, Spin: f.o.spin && depth > 1}
}
