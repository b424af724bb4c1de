package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"

	"trunkline/bench/internal/load"
)

// manyConns is the connection count of the goals that are about many clients.
const manyConns = 1024

// Server names as they stand in the table.
const (
	always        = "always"
	interval      = "interval"
	memory        = "memory"
	loopAlways    = "bare loop, always"
	loopEverysec  = "bare loop, everysec"
	redisAlways   = "redis, always"
	redisEverysec = "redis, everysec"
)

// bench is a run: the folder with all stores, the server binary, and every process that was
// started.
type bench struct {
	*load.Rig
	o        options
	loadCPUs []int
	stores   int
	files    int
}

func newBench(o options) (*bench, error) {
	rig, err := storeRig(o.dir)
	if err != nil {
		return nil, err
	}
	b := &bench{Rig: rig, o: o}
	if err = b.FindServer(o.server); err == nil && o.pin {
		b.loadCPUs, err = b.Divide()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// trunkline starts the server in a mode, with room for the load. dir is its store; settings come on
// top.
func (b *bench) trunkline(mode, dir string, settings ...string) (*load.Server, error) {
	return b.Trunkline(b.settings(mode, dir, settings...)...)
}

func (b *bench) settings(mode, dir string, more ...string) []string {
	return append([]string{"store.mode=" + mode, "store.dir=" + dir, "kernel.loops=" + strconv.Itoa(b.o.loops),
		"kernel.max_connections=" + strconv.Itoa(2*manyConns), "kernel.max_processes=10000000", "kernel.max_envelopes=100000"}, more...)
}

// newStore names a directory that is not there yet.
func (b *bench) newStore() string {
	b.stores++
	return filepath.Join(b.Dir, "store-"+strconv.Itoa(b.stores))
}

// startPeer starts the bare loop: this program, as a process of its own.
func (b *bench) startPeer(name, mode string) (*load.Server, error) {
	b.files++
	return b.Peer(name, "", "-peer", mode, "-peer-file", filepath.Join(b.Dir, "peer-"+strconv.Itoa(b.files)))
}

// redisPath returns the binary of redis-server, empty if redis is not measured.
func (b *bench) redisPath() (string, error) {
	switch b.o.redis {
	case "off":
		return "", nil
	case "auto":
		path, err := exec.LookPath("redis-server")
		if errors.Is(err, exec.ErrNotFound) {
			return "", nil
		}
		return path, err
	}
	return b.o.redis, nil
}

// startRedis starts redis with an append-only file and nothing else that writes.
func (b *bench) startRedis(path, name, fsync string) (*load.Server, error) {
	return b.Redis(name, path, "--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0",
		"--maxclients", strconv.Itoa(2*manyConns))
}

func (b *bench) config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: b.o.workers, CPUs: b.loadCPUs, Spin: b.o.spin}
}
